"""Searching the index of a data folder, for the window and the command line alike. Synchronous; opens what it needs."""

from __future__ import annotations

import base64
import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from app import paths
from engine import Encoder
from engine.catalog import Catalog, model_path
from engine.errors import EngineError
from engine.search.calibrate import Noise, measure_noise
from engine.search.candidates import Filters
from engine.search.dense import QueryEncoder
from engine.search.lexical import Words
from engine.search.parse import date_span_ns, parse
from engine.search.pipeline import Cancelled, Hit, Mode, Request, search, telling_stems
from engine.search.snippet import WordMarker
from indexer.errors import IndexerError
from indexer.store.candidates import StoreCandidates
from indexer.store.reader import Reader
from indexer.store.records import ModelStamp

log = logging.getLogger(__name__)
Span = tuple[int, int]
EXCERPT_CHARS = 6_000  # shown before and after a passage

__all__ = ["Cancelled", "Excerpt", "SearchHit", "SearchRequest", "SearchResponse", "SearchService"]


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One question. limit: documents at most. folder: absolute path or a folder's name; types: file suffixes.

    after, before: a year, month or day (2024, 2024-05, 2024-05-17), local time: from its begin on, until its begin.
    """

    query: str
    limit: int = 20
    mode: Mode = "hybrid"
    rerank: bool = True
    folder: str | None = None
    types: tuple[str, ...] = ()
    after: str | None = None
    before: str | None = None


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A document by its best passage.

    path: absolute, as os.fsdecode gives it. highlights and passage_span: characters of `snippet`; start_char, end_char:
    the passage in the document's text. copies: paths of documents that say the same. more: further passages of the
    document that were ranked. weak: probably no answer. complete: False while the document is still being indexed.
    """

    document_id: int
    path: str
    title: str
    score: float
    page: int | None
    line: int | None
    start_char: int
    end_char: int
    snippet: str
    highlights: tuple[Span, ...]
    passage: str
    passage_span: Span
    copies: tuple[str, ...]
    more: int
    offline: bool
    complete: bool
    weak: bool

    def as_json(self) -> dict[str, Any]:
        """The object that `inkling search --json` prints; path_bytes only where the name is not UTF-8."""
        raw = os.fsencode(self.path)
        shown = raw.decode("utf-8", "replace")
        extra = {} if shown.encode("utf-8") == raw else {"path_bytes": base64.b64encode(raw).decode("ascii")}
        return {
            "path": shown,
            **extra,
            "title": self.title,
            "score": round(self.score, 5),
            "page": self.page,
            "line": self.line,
            "start_char": self.start_char,
            "end_char": self.end_char,
            "snippet": self.snippet,
            "highlights": [list(span) for span in self.highlights],
            "passage": self.passage,
            "weak": self.weak,
            "offline": self.offline,
        }


@dataclass(frozen=True, slots=True)
class SearchResponse:
    """hits: best first. stages_ms: milliseconds by stage. note: a sentence to show beside the hits, '' mostly."""

    query: str
    took_ms: float
    stages_ms: dict[str, float]
    hits: tuple[SearchHit, ...]
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        """The object that `inkling search --json` prints."""
        found = {
            "query": self.query.encode("utf-8", "replace").decode("utf-8"),
            "took_ms": round(self.took_ms, 2),
            "stages_ms": self.stages_ms,
            "hits": [hit.as_json() for hit in self.hits],
        }
        return {**found, "note": self.note} if self.note else found


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Text of a document around a passage. Spans: characters of `text`, which begins at start_char of the document."""

    text: str
    start_char: int
    passage: Span
    highlights: tuple[Span, ...]
    cut_before: bool
    cut_after: bool


class SearchService:
    """Answers one question at a time; thread-safe by one lock. The first question by meaning loads the model."""

    def __init__(
        self,
        data_dir: Path,
        *,
        encoder: QueryEncoder | None = None,
        workers: int | None = None,
        disk_weights: Path | None = None,
    ) -> None:
        """encoder: one that is loaded already and fits the index; otherwise the index says which one to load.

        workers, disk_weights: as for Encoder.load.
        """
        self._data_dir = data_dir
        self._workers, self._disk_weights = workers, disk_weights
        self._given = encoder
        self._lock = threading.Lock()
        self._reader: Reader | None = None
        self._source: StoreCandidates | None = None
        self._file: tuple[int, int] | None = None
        self._loaded: tuple[str, Encoder] | None = None
        self._noise: tuple[QueryEncoder, int, Noise] | None = None  # with the encoder and chunks it was measured on
        self._refused: tuple[str, str] | None = None  # fingerprint and the sentence why its model could not be loaded

    def search(self, request: SearchRequest, *, cancelled: Callable[[], bool] = lambda: False) -> SearchResponse:
        """Find passages. Raises EngineError or IndexerError with a sentence, and Cancelled when `cancelled` says so."""
        start = time.perf_counter()
        filters = filters_of(request)
        with self._lock:
            source = self._open()
            encoder, note = (None, "") if request.mode == "words" else self._encoder()
            if encoder is None and request.mode == "meaning":
                raise EngineError(note or "Nothing can be found by meaning yet: no text has been embedded so far.")
            asked = Request(request.query, request.limit, request.mode, request.rerank, filters)
            noise = None if encoder is None else partial(self._noise_level, source, encoder)
            languages = () if encoder is None else self._languages()
            result = search(asked, source, encoder, languages=languages, noise=noise, cancelled=cancelled)
        hits = tuple(_search_hit(hit) for hit in result.hits)
        return SearchResponse(request.query, (time.perf_counter() - start) * 1000, result.stages_ms, hits, note)

    def excerpt(self, document_id: int, start_char: int, end_char: int, query: str = "") -> Excerpt:
        """The text around a passage, words of the query marked. Raises IndexerError when the document is gone."""
        with self._lock:
            source = self._open()
            assert self._reader is not None
            begin = max(0, start_char - EXCERPT_CHARS)
            with self._reader.snapshot():
                part = self._reader.document_text(document_id, begin, end_char + EXCERPT_CHARS)
                if part is None:
                    raise IndexerError(
                        "This document is no longer in the index; search again to see what is there now."
                    )
                asked = parse(query)
                stems = telling_stems(Words.of(asked, source), source.statistics())
                highlights = tuple(WordMarker(stems, asked.terms, source.stems)(part.text))
        end = begin + len(part.text)
        passage = (min(start_char - begin, len(part.text)), min(end_char - begin, len(part.text)))
        return Excerpt(part.text, begin, passage, highlights, begin > 0, end < part.total_chars)

    def warm(self) -> None:
        """Load model and compact code now rather than with the first question. Trouble is left for the question."""
        try:
            self.search(SearchRequest("warm", limit=1))
        except (EngineError, IndexerError) as error:
            log.info("The search could not be warmed up: %s", error)

    def close(self) -> None:
        """Let go of the index and of a model that was loaded here."""
        with self._lock:
            self._close_reader()
            if self._loaded is not None:
                self._loaded[1].close()
                self._loaded = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _languages(self) -> tuple[str, ...]:
        """The languages of the model that made the vectors; none where they are not known."""
        assert self._reader is not None
        generation = self._reader.active_generation()
        known = Catalog.load().find(generation.stamp.model) if generation else None
        return known.languages if known else ()

    def _noise_level(self, source: StoreCandidates, encoder: QueryEncoder) -> Noise:
        """What nonsense reaches with this model in this index; measured anew when the index has doubled."""
        chunks = source.statistics().chunks
        if self._noise is None or self._noise[0] is not encoder or chunks > 2 * self._noise[1]:
            self._noise = (encoder, chunks, measure_noise(source, encoder))
        return self._noise[2]

    def _open(self) -> StoreCandidates:
        """The index, opened anew if its file was replaced since."""
        path = self._data_dir / "index.db"
        try:
            status = path.stat()
            file = (status.st_dev, status.st_ino)
        except OSError:
            file = None
        if self._source is None or file != self._file:
            self._close_reader()
            self._reader = Reader.open(self._data_dir)
            self._source = StoreCandidates(self._reader)
            self._file = file
        return self._source

    def _close_reader(self) -> None:
        if self._reader is not None:
            self._reader.close()
        self._reader = self._source = None

    def _encoder(self) -> tuple[QueryEncoder | None, str]:
        """The encoder whose vectors the index holds, or None with the sentence why there is none."""
        if self._given is not None:
            return self._given, ""
        assert self._reader is not None
        generation = self._reader.active_generation()
        if generation is None:
            return None, "No text has been embedded yet, so only words were searched."
        stamp = generation.stamp
        if self._loaded is not None and self._loaded[0] == stamp.fingerprint:
            return self._loaded[1], ""
        if self._refused is not None and self._refused[0] == stamp.fingerprint:
            return None, self._refused[1]
        return self._load(stamp)

    def _load(self, stamp: ModelStamp) -> tuple[QueryEncoder | None, str]:
        try:
            folder = model_path(stamp.model, paths.folders(self._data_dir).models)
            encoder = Encoder.load(
                folder, precision=stamp.precision, workers=self._workers, disk_weights=self._disk_weights
            )
        except EngineError as error:
            self._refused = (
                stamp.fingerprint,
                f"Only words were searched, because the model could not be loaded: {error}",
            )
            return None, self._refused[1]
        if encoder.fingerprint != stamp.fingerprint:
            encoder.close()
            self._refused = (
                stamp.fingerprint,
                f"Only words were searched: the index was made with another version of the model {stamp.model}; "
                "indexing renews it.",
            )
            return None, self._refused[1]
        if self._loaded is not None:
            self._loaded[1].close()
        self._loaded = (stamp.fingerprint, encoder)
        return encoder, ""


def filters_of(request: SearchRequest) -> Filters:
    """The filters of a request. Raises EngineError for a date that is none."""
    return Filters(
        folders=(request.folder,) if request.folder else (),
        types=tuple(kind.strip().lstrip(".").lower() for kind in request.types if kind.strip(". ")),
        after_ns=_moment_ns(request.after),
        before_ns=_moment_ns(request.before),
    )


def _moment_ns(date: str | None) -> int | None:
    if not date:
        return None
    span = date_span_ns(date)
    if span is None:
        raise EngineError(f"{date!r} is not a date: write a year, month or day as 2024, 2024-05 or 2024-05-17.")
    return span[0]


def _search_hit(hit: Hit) -> SearchHit:
    paths = [os.fsdecode(document.root.rstrip(b"/\\") + b"/" + document.path) for document in hit.documents]
    first = hit.documents[0]
    return SearchHit(
        document_id=first.document_id,
        path=os.path.normpath(paths[0]) if os.sep != "/" else paths[0],
        title=first.title,
        score=hit.score,
        page=hit.page,
        line=hit.line,
        start_char=hit.start_char,
        end_char=hit.end_char,
        snippet=hit.snippet,
        highlights=hit.highlights,
        passage=hit.passage,
        passage_span=hit.passage_span,
        copies=tuple(paths[1:]),
        more=hit.more,
        offline=not first.online,
        complete=first.complete,
        weak=hit.weak,
    )
