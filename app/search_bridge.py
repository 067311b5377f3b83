"""The window's SearchClient: the search service on a thread of its own, answers as Qt signals.

The newest request wins twice over: one that still waits is replaced, and one that runs is given up at its next stage.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from app.worker import Worker
from ui.clients import Excerpt, ExcerptRequest, Hit, SearchRequest, SearchResponse

if TYPE_CHECKING:  # at run time it is imported on the search thread: the window shows first
    from app import search_service

log = logging.getLogger(__name__)

# When the full answer is expected to take longer than this, the words' own answer is shown first.
PATIENCE_MS = 90.0
# Then the window is left alone this long to draw it: loading a model at the same time, on another thread of the same
# interpreter, would make both late.
DRAWING_S = 0.03


class SearchBridge(QObject):
    """Lives in the GUI thread; every method returns at once."""

    answered = Signal(object)
    excerpt_ready = Signal(object)

    def __init__(
        self,
        data_dir: Path,
        workers: int | None,
        on_bug: Callable[[Exception], None],
        *,
        disk_weights: Path | None = None,
    ) -> None:
        super().__init__()
        self._newest = 0
        self._full_ms = float("inf")  # of the last full answer; before the first, the model must be loaded
        self._searches = _Services(data_dir, workers, disk_weights)
        # The text around a hit is read through a service of its own: it must not wait for a search to end.
        self._excerpts = _Services(data_dir, workers, disk_weights)
        self._search_worker = Worker("search", on_bug)
        self._excerpt_worker = Worker("excerpts", on_bug)

    def start(self) -> None:
        """Load the model before the first question needs it."""
        self._search_worker.post("warm", self._warm)

    def close(self) -> None:
        """End both threads; waits for the stage at hand."""
        self._newest = -1
        self._excerpt_worker.close(self._excerpts.close)
        self._search_worker.close(self._searches.close)

    def search(self, request: SearchRequest) -> None:
        self._newest = request.number
        self._search_worker.post("search", lambda: self._search(request))

    def read_excerpt(self, request: ExcerptRequest) -> None:
        self._excerpt_worker.post("excerpt", lambda: self._read_excerpt(request))

    # On the search thread

    def _warm(self) -> None:
        from indexer.errors import IndexerError

        try:
            self._searches.get().warm()
        except IndexerError as error:
            log.info("nothing to warm up: %s", error)

    def _search(self, request: SearchRequest) -> None:
        from app.search_service import Cancelled
        from engine.errors import EngineError
        from indexer.errors import IndexerError

        try:
            if request.mode == "hybrid" and not request.again and self._full_ms > PATIENCE_MS:
                self.answered.emit(self._ask(request, words_first=True))
                time.sleep(DRAWING_S)
            start = time.perf_counter()
            answer = self._ask(request)
            if request.mode == "hybrid":
                self._full_ms = (time.perf_counter() - start) * 1000
        except Cancelled:
            return
        except (EngineError, IndexerError) as error:
            answer = SearchResponse(request.number, (), error=str(error))
        self.answered.emit(answer)

    def _ask(self, request: SearchRequest, words_first: bool = False) -> SearchResponse:
        from app import search_service

        mode = "words" if words_first else request.mode
        asked = search_service.SearchRequest(request.text, limit=request.limit, mode=mode)
        found = self._searches.get().search(asked, cancelled=lambda: request.number != self._newest)
        # What is probably no answer stands behind what probably is one.
        hits = tuple(hit_view(hit) for hit in sorted(found.hits, key=lambda hit: hit.weak))
        return SearchResponse(request.number, hits, not words_first, took_ms=found.took_ms, note=found.note)

    # On the excerpt thread

    def _read_excerpt(self, request: ExcerptRequest) -> None:
        from indexer.errors import IndexerError

        try:
            service = self._excerpts.get()
            found = service.excerpt(request.document_id, request.start_char, request.end_char, request.query)
            answer = excerpt_view(request.number, found)
        except IndexerError as error:
            answer = Excerpt(request.number, "", error=str(error))
        self.excerpt_ready.emit(answer)


class _Services:
    """A search service, made on the thread that uses it."""

    def __init__(self, data_dir: Path, workers: int | None, disk_weights: Path | None) -> None:
        self._data_dir = data_dir
        self._workers, self._disk_weights = workers, disk_weights
        self._service: search_service.SearchService | None = None

    def get(self) -> search_service.SearchService:
        from app.search_service import SearchService

        if self._service is None:
            self._service = SearchService(
                self._data_dir, workers=self._workers, disk_weights=self._disk_weights
            )
        return self._service

    def close(self) -> None:
        if self._service is not None:
            self._service.close()


def hit_view(hit: search_service.SearchHit) -> Hit:
    """A hit as the window shows it."""
    return Hit(
        document_id=hit.document_id,
        path=hit.path,
        title=hit.title or os.path.basename(hit.path),
        snippet=hit.snippet,
        start_char=hit.start_char,
        end_char=hit.end_char,
        highlights=hit.highlights,
        passage=hit.passage_span if hit.passage_span[0] < hit.passage_span[1] else None,
        page=hit.page,
        line=hit.line,
        score=hit.score,
        offline=hit.offline,
        more=hit.more,
        copies=len(hit.copies),
        weak=hit.weak,
    )


def excerpt_view(number: int, found: search_service.Excerpt) -> Excerpt:
    """An excerpt that begins where a line or a word begins."""
    lead = _lead(found.text, found.passage[0]) if found.cut_before else 0

    def moved(span: tuple[int, int]) -> tuple[int, int]:
        return span[0] - lead, span[1] - lead

    return Excerpt(
        number=number,
        text=found.text[lead:],
        passage=moved(found.passage),
        highlights=tuple(moved(span) for span in found.highlights if span[0] >= lead),
        cut_before=found.cut_before,
        cut_after=found.cut_after,
    )


def _lead(text: str, latest: int) -> int:
    """Where the first whole line begins, else the first whole word; at the latest at the passage."""
    for mark in ("\n", " "):
        at = text.find(mark, 0, min(latest, 1000))
        if at >= 0:
            return at + 1
    return 0
