"""The progress line: drawn on a terminal, silent in a pipe, harmless whatever a file is called."""

import io

import pytest

from app.progress import Progress, Steps, clock, progress_text


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_pipe_sees_nothing() -> None:
    pipe = io.StringIO()
    with Progress("Indexing", 10, "files", pipe) as progress:
        progress.update(5)
        progress.update(10)
    assert pipe.getvalue() == ""


def test_a_terminal_sees_the_count_and_a_clean_line_afterwards() -> None:
    terminal = Terminal()
    with Progress("Indexing", None, "files", terminal) as progress:
        progress.update(5, total=10, note="a.txt")
    shown = terminal.getvalue()
    assert "5/10 files" in shown and "a.txt" in shown
    assert shown.endswith("\r\x1b[K")


def test_steps_are_one_line_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with Steps() as steps:
        steps.update("Copying", "MB", 1, 2)
        steps.update("Measuring", "texts", 3, 4, "int8")
        before = terminal.getvalue()
        steps.end_step()
        assert terminal.getvalue() == before + "\r\x1b[K"
    lines = before.split("\r\x1b[K")
    assert "Copying" in lines[1] and lines[2] == "" and "3/4 texts" in lines[3] and "int8" in lines[3]


def test_updates_are_drawn_ten_times_a_second_at_most_but_the_end_always() -> None:
    terminal = Terminal()
    with Progress("Indexing", 1000, "", terminal) as progress:
        for done in range(1001):
            progress.update(done)
    assert terminal.getvalue().count("\r") < 100
    assert "1,000/1,000" in terminal.getvalue()


def test_the_line_tells_rate_and_time_left() -> None:
    line = progress_text("Indexing", 120, 480, "files", 30.0, "notes.md")
    assert line == "Indexing  [######..................]  120/480 files  30.0/s  0:12 left  notes.md"


def test_without_a_total_there_is_no_bar() -> None:
    assert progress_text("Reading", 7, None, "files", 0.0, "") == "Reading  7 files"


def test_more_than_the_total_does_not_break_the_bar() -> None:
    assert "[########################]" in progress_text("x", 12, 10, "", 1.0, "")


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (7.4, "0:07"), (754, "12:34"), (10800, "3:00:00")])
def test_time_is_shown_as_on_a_clock(seconds: float, text: str) -> None:
    assert clock(seconds) == text


def test_a_file_name_cannot_steer_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    with Progress("Reading", unit="files", stream=terminal) as progress:
        progress.update(1, 2, "a\x1b]0;x\x07\nb\udcff")
    assert "a\\x1b]0;x\\x07\\nb\\udcff" in terminal.getvalue()
