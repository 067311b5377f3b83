from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from app import search_bridge, search_service
from app.search_bridge import SearchBridge, excerpt_view, hit_view
from app.search_service import Cancelled, Excerpt, SearchHit
from indexer.errors import IndexerError
from ui.clients import ExcerptRequest, SearchRequest, SearchResponse


def found(number: int = 1, **more: Any) -> SearchHit:
    values: dict[str, Any] = {
        "document_id": number, "path": f"/a/{number}.md", "title": "", "score": 1.0, "page": None, "line": 2,
        "start_char": 5, "end_char": 9, "snippet": "the tide", "highlights": ((4, 8),), "passage": "tide",
        "passage_span": (4, 8), "copies": ("/b/1.md",), "more": 2, "offline": False, "complete": True, "weak": False,
    }  # fmt: skip
    return SearchHit(**{**values, **more})


class FakeService:
    """Answers with what the test says; keeps what it was asked."""

    asked: list[tuple[str, str]]
    answer: Callable[[search_service.SearchRequest, Callable[[], bool]], tuple[SearchHit, ...]]

    def __init__(self, data_dir: Path, *, workers: int | None = None, disk_weights: Path | None = None) -> None:
        pass

    def search(
        self, request: search_service.SearchRequest, *, cancelled: Callable[[], bool]
    ) -> search_service.SearchResponse:
        FakeService.asked.append((request.query, request.mode))
        hits = FakeService.answer(request, cancelled)
        return search_service.SearchResponse(request.query, 1.5, {}, hits, "note")

    def excerpt(self, document_id: int, start_char: int, end_char: int, query: str = "") -> Excerpt:
        raise IndexerError("Gone.")

    def warm(self) -> None:
        FakeService.asked.append(("", "warm"))

    def close(self) -> None:
        FakeService.asked.append(("", "close"))


@pytest.fixture
def bridge(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SearchBridge]:
    monkeypatch.setattr(search_service, "SearchService", FakeService)
    FakeService.asked = []
    FakeService.answer = staticmethod(lambda request, cancelled: (found(),))
    bugs: list[Exception] = []
    made = SearchBridge(tmp_path, 1, bugs.append)
    yield made
    made.close()
    assert not bugs


@pytest.fixture
def answers(bridge: SearchBridge) -> list[SearchResponse]:
    heard: list[SearchResponse] = []
    bridge.answered.connect(heard.append)
    return heard


def test_while_the_model_is_not_loaded_words_come_first(
    qtbot: QtBot, bridge: SearchBridge, answers: list[SearchResponse]
) -> None:
    bridge.search(SearchRequest(1, "tide"))
    qtbot.waitUntil(lambda: len(answers) == 2)
    assert [answer.complete for answer in answers] == [False, True]
    assert FakeService.asked == [("tide", "words"), ("tide", "hybrid")]
    assert answers[1].note == "note" and answers[1].took_ms == 1.5


def test_once_answers_are_quick_there_is_only_one(
    qtbot: QtBot, bridge: SearchBridge, answers: list[SearchResponse]
) -> None:
    bridge.search(SearchRequest(1, "tide"))
    qtbot.waitUntil(lambda: len(answers) == 2)
    bridge.search(SearchRequest(2, "tides"))
    qtbot.waitUntil(lambda: len(answers) == 3)
    assert answers[2].complete and answers[2].number == 2


def test_a_repeated_question_has_no_first_part(
    qtbot: QtBot, bridge: SearchBridge, answers: list[SearchResponse]
) -> None:
    bridge.search(SearchRequest(1, "tide", again=True))
    qtbot.waitUntil(lambda: len(answers) == 1)
    assert FakeService.asked == [("tide", "hybrid")]


def test_a_newer_question_ends_the_one_that_runs(
    qtbot: QtBot, bridge: SearchBridge, answers: list[SearchResponse]
) -> None:
    running = threading.Event()

    def answer(request: search_service.SearchRequest, cancelled: Callable[[], bool]) -> tuple[SearchHit, ...]:
        if request.query == "old":
            running.set()
            while not cancelled():
                pass
            raise Cancelled
        return (found(),)

    FakeService.answer = staticmethod(answer)
    bridge.search(SearchRequest(1, "old", mode="meaning"))
    assert running.wait(10)
    bridge.search(SearchRequest(2, "new", mode="meaning"))
    qtbot.waitUntil(lambda: len(answers) == 1)
    assert answers[0].number == 2


def test_known_trouble_comes_as_a_sentence(qtbot: QtBot, bridge: SearchBridge, answers: list[SearchResponse]) -> None:
    def answer(request: search_service.SearchRequest, cancelled: Callable[[], bool]) -> tuple[SearchHit, ...]:
        raise IndexerError("The index is damaged.")

    FakeService.answer = staticmethod(answer)
    bridge.search(SearchRequest(1, "tide"))
    qtbot.waitUntil(lambda: len(answers) == 1)
    assert answers[0].error == "The index is damaged." and answers[0].hits == ()


def test_what_is_probably_no_answer_stands_behind_what_probably_is_one(
    qtbot: QtBot, bridge: SearchBridge, answers: list[SearchResponse]
) -> None:
    FakeService.answer = staticmethod(lambda request, cancelled: (found(1, weak=True), found(2)))
    bridge.search(SearchRequest(1, "tide", mode="words"))
    qtbot.waitUntil(lambda: len(answers) == 1)
    assert [(hit.document_id, hit.weak) for hit in answers[0].hits] == [(2, False), (1, True)]


def test_a_document_that_is_gone_gives_a_sentence_in_place_of_its_text(qtbot: QtBot, bridge: SearchBridge) -> None:
    with qtbot.waitSignal(bridge.excerpt_ready) as heard:
        bridge.read_excerpt(ExcerptRequest(4, 1, 0, 5))
    assert heard.args[0].number == 4 and heard.args[0].error == "Gone."


def test_a_hit_without_a_title_is_called_by_its_file() -> None:
    view = hit_view(found(title=""))
    assert (view.title, view.copies, view.more, view.passage) == ("1.md", 1, 2, (4, 8))
    assert hit_view(found(passage_span=(0, 0))).passage is None


def test_an_excerpt_begins_where_a_line_begins_and_its_spans_move_along() -> None:
    text = "f a cut line\nThe tide came in."
    view = excerpt_view(3, Excerpt(text, 100, (13, 30), ((0, 1), (17, 21)), True, False))
    assert view.text == "The tide came in."
    assert view.passage == (0, 17)
    assert [view.text[a:b] for a, b in view.highlights] == ["tide"]
    whole = excerpt_view(3, Excerpt(text, 0, (13, 30), (), False, False))
    assert whole.text == text


def test_patience_is_stated() -> None:
    assert search_bridge.PATIENCE_MS < 200
