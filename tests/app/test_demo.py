"""The demo, through the real indexer process and the bundled model: questions find the sample that answers them."""

import json
import re
from pathlib import Path

import pytest

import resources
from app import cli
from app.cli import demo

# Words that say nothing of a subject; only these may a telling question share with the document that answers it.
LITTLE_WORDS = frozenset("a an after down for in is may my of our the to us who live".split())


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder in which the demo has run once."""
    folder = tmp_path_factory.mktemp("demo")
    assert cli.run(["demo", "--no-window", "--data-dir", str(folder)]) == 0
    return folder


@pytest.mark.parametrize("question", demo.TELLING_QUERIES)
def test_a_telling_question_finds_its_document_first(
    question: str, data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["demo", question, "--json", "--data-dir", str(data_dir)]) == 0
    (response,) = json.loads(capsys.readouterr().out)
    assert response["hits"][0]["path"].endswith(demo.TELLING_QUERIES[question])


@pytest.mark.parametrize("question", demo.TELLING_QUERIES)
def test_a_telling_question_shares_no_word_of_its_subject_with_the_answer(question: str) -> None:
    answer = resources.path("samples", demo.TELLING_QUERIES[question])
    source = Path(__file__).parents[2] / "packaging" / "samples" / f"{demo.TELLING_QUERIES[question]}.txt"
    text = (source if source.exists() else answer).read_text(encoding="utf-8").lower()
    words = set(re.findall(r"\w+", question.lower())) - LITTLE_WORDS
    assert not words & set(re.findall(r"\w+", text))


def test_the_demo_keeps_to_its_own_folder(data_dir: Path) -> None:
    assert {path.name for path in data_dir.iterdir()} == {"demo"}


def test_running_again_brings_changed_samples_back_and_leaves_the_others(data_dir: Path) -> None:
    documents = data_dir / "demo" / "documents"
    changed, kept = documents / "recipes" / "lentil-soup.md", documents / "recipes" / "sourdough-log.txt"
    changed.write_text("gone", encoding="utf-8")
    before = kept.stat().st_mtime_ns
    demo.copy_samples(resources.path("samples"), documents)
    assert "lentil" in changed.read_text(encoding="utf-8")
    assert kept.stat().st_mtime_ns == before


def test_without_a_display_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert "no display" in demo.no_window_because()
    monkeypatch.setenv("DISPLAY", ":77")
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    assert "nowhere visible" in demo.no_window_because()


def test_with_a_display_the_window_opens_on_the_samples(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from app import gui

    opened: list[tuple[Path, list[str], str]] = []

    def open_window(folder: Path, *, folders: list[str], query: str) -> int:
        opened.append((folder, folders, query))
        return 0

    monkeypatch.setattr(demo, "no_window_because", lambda: "")
    monkeypatch.setattr(gui, "run", open_window)
    assert cli.run(["demo", "missing", "luggage", "--data-dir", str(data_dir)]) == 0
    place = data_dir / "demo"
    assert opened == [(place / "index", [str(place / "documents")], "missing luggage")]
    assert capsys.readouterr().out == ""
