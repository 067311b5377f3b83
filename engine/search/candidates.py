"""What a search needs from a store, as a Protocol: the pipeline knows no SQL, and a store no ranking."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Filters:
    """Which documents may be found. Empty means all.

    folders: absolute paths, or names of folders anywhere below a root; one of them must hold.
    types: lower-case file suffixes without the dot. after_ns, before_ns: file times in unix nanoseconds; from after_ns
    on, and earlier than before_ns.
    """

    folders: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    after_ns: int | None = None
    before_ns: int | None = None

    @property
    def empty(self) -> bool:
        """Nothing is filtered."""
        return self == Filters()


NO_FILTERS = Filters()


@dataclass(frozen=True, slots=True)
class Scope:
    """The candidates that a query allows; each array ascending, None where everything is allowed.

    contents: content ids that the filters leave. chunks: chunk ids that hold all required phrases.
    excluded: content ids that hold an excluded word.
    """

    filters: Filters
    contents: I64 | None
    chunks: I64 | None
    excluded: I64

    @property
    def open(self) -> bool:
        """Everything is allowed."""
        return self.contents is None and self.chunks is None and not self.excluded.size

    def allows(self, chunk_ids: I64, content_ids: I64) -> NDArray[np.bool_]:
        """(n,) bool for n candidates given by their chunk and content ids."""
        allowed = np.ones(chunk_ids.shape, np.bool_)
        if self.contents is not None:
            allowed &= np.isin(content_ids, self.contents)
        if self.chunks is not None:
            allowed &= np.isin(chunk_ids, self.chunks)
        if self.excluded.size:
            allowed &= ~np.isin(content_ids, self.excluded)
        return allowed


@dataclass(frozen=True, slots=True)
class Statistics:
    """Of the whole store. average_length: terms in a chunk."""

    chunks: int
    average_length: float


@dataclass(frozen=True, slots=True)
class TermCounts:
    """Word statistics of n candidates for t stems.

    content_ids: (n,) int64; lengths: (n,) float32, terms in the chunk; counts: (n, t) float32.
    A chunk that is gone has content id -1 and no counts.
    """

    content_ids: I64
    lengths: F32
    counts: F32


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk as it is shown."""

    chunk_id: int
    content_id: int
    start_char: int
    end_char: int
    page: int | None
    line: int | None
    text: str


@dataclass(frozen=True, slots=True)
class FoundDocument:
    """A document that has a found content. root: absolute bytes of the watched folder; path: relative to it."""

    document_id: int
    content_id: int
    root: bytes
    path: bytes
    title: str
    mtime_ns: int
    online: bool
    complete: bool


class CandidateSource(Protocol):
    """A store as a search sees it. All calls of one search happen within one `snapshot()`."""

    def snapshot(self) -> AbstractContextManager[None]:
        """Everything read within belongs to one state of the store."""

    def statistics(self) -> Statistics:
        """Totals for BM25."""

    def stems(self, text: str) -> list[str]:
        """The stems of prepared text, in order."""

    def frequencies(self, stems: Sequence[str]) -> list[int]:
        """In how many chunks each stem occurs."""

    def scope(self, filters: Filters, required: Sequence[str], excluded: Sequence[str]) -> Scope:
        """Apply filters, expressions that must all match a chunk, and expressions that must not match a document."""

    def few_chunks(self, scope: Scope) -> I64 | None:
        """All chunks that the scope allows, if they are few enough to be scored one by one; None otherwise."""

    def contents_of(self, chunk_ids: I64) -> I64:
        """The content of each chunk, -1 for one that is gone or whose content no document uses."""

    def match(self, expression: str, limit: int, *, stemmed: bool) -> I64:
        """Chunk ids, newest first, that match an expression of the word index (stemmed: single words only)."""

    def match_names(self, expression: str, limit: int) -> I64:
        """Content ids of documents whose file name or title matches an expression, newest first."""

    def first_chunks(self, content_ids: I64) -> I64:
        """The first chunk of each content that has one."""

    def nearest(self, query: F32, limit: int, scope: Scope) -> tuple[I64, F32]:
        """The chunks nearest to a unit query vector: ids (n,) and cosines (n,) descending, out of all that `scope`
        allows. Chunks of one text count once towards the limit.
        """

    def similarities(self, chunk_ids: I64, query: F32) -> F32:
        """Cosine of each chunk's vector with the query, NaN where it has none yet."""

    def term_counts(self, chunk_ids: I64, stems: Sequence[str]) -> TermCounts:
        """Word statistics of candidates."""

    def token_bits(self, chunk_ids: I64) -> tuple[U8, I64]:
        """Sign bits of the candidates' tokens back to back, and where each begins: (n + 1,)."""

    def passages(self, chunk_ids: I64) -> list[Passage]:
        """The texts of chunks, in the order asked for; those that are gone are left out."""

    def documents(self, content_ids: I64, filters: Filters) -> list[FoundDocument]:
        """The documents that have these contents and pass the filters, by content and path."""
