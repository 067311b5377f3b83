import pytest
from PySide6.QtCore import QLocale

from ui import wording


@pytest.fixture(autouse=True)
def british() -> object:
    before = QLocale()
    QLocale.setDefault(QLocale("en_GB"))
    yield
    QLocale.setDefault(before)


def test_numbers_are_grouped_as_the_locale_does() -> None:
    assert wording.number(1234567) == "1,234,567"


@pytest.mark.parametrize(
    ("size_bytes", "text"), [(0, "0 B"), (1536, "1.5 KB"), (48_300_000, "46.1 MB"), (7 << 30, "7.0 GB")]
)
def test_sizes(size_bytes: int, text: str) -> None:
    assert wording.size(size_bytes) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(2, "a few seconds"), (48, "50 seconds"), (90, "2 minutes"), (7200, "2 hours"), (400_000, "5 days")],
)
def test_durations_are_rounded_as_people_say_them(seconds: float, text: str) -> None:
    assert wording.duration(seconds) == text


@pytest.mark.parametrize(
    ("done", "total", "text"), [(0, 0, ""), (1, 3, "33.3 %"), (9999, 10000, "99.9 %"), (3, 3, "100.0 %")]
)
def test_percent_never_says_all_before_the_end(done: int, total: int, text: str) -> None:
    assert wording.percent(done, total) == text


def test_place_prefers_the_page() -> None:
    assert wording.place(3, 8) == "Page 3"
    assert wording.place(None, 8) == "Line 8"
    assert wording.place(None, None) == ""


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/a/b.txt", "/a/b.txt"),
        ("/a/b\nc", "/a/b⏎c"),
        ("/a/\udcff\x01", "/a/\ufffd\ufffd"),
        ("/a/\u202egnp.exe", "/a/\ufffdgnp.exe"),
        ("/写真/🏠", "/写真/🏠"),
    ],
)
def test_shown_paths_hide_no_trick_and_break_no_line(path: str, shown: str) -> None:
    assert wording.shown_path(path) == shown


def test_the_home_folder_is_shown_as_a_tilde() -> None:
    assert wording.shown_folder("/home/ada/Notes/a.md", "/home/ada") == "~/Notes"
    assert wording.shown_folder("/home/adam/a.md", "/home/ada") == "/home/adam"
