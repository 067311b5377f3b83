"""The store as a search sees it: the CandidateSource of engine/search, in SQL.

The compact code of all vectors stays in memory, read once by (segment_id, version); while indexing goes on only new
segments are read. Everything else is asked of SQLite for a few hundred candidates at a time.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray

from engine.kernels import scan_int8
from engine.search.candidates import (
    F32,
    I64,
    U8,
    Filters,
    FoundDocument,
    Passage,
    Scope,
    Statistics,
    TermCounts,
)
from indexer.store.reader import Reader
from indexer.store.records import path_key
from indexer.store.terms import stemmer, term_key, unpack_counts

SMALL_SCOPE_CHUNKS = 3_000  # up to so many, all are scored: distances of record in SQL instead of scanning the code
OVERSAMPLE = 1.25  # candidates of the int8 scan for each one wanted, rescored from the record
EMPTY = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Segment:
    """A cached run of the compact code. ids: (n,) int64, -1 deleted; codes: (n, dim) int8; scales: (n,) float32."""

    version: int
    ids: I64
    codes: NDArray[np.int8]
    scales: F32


class StoreCandidates:
    """Implements engine.search.candidates.CandidateSource on a Reader."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._stems = stemmer(reader.db)
        self._segments: dict[int, Segment] = {}
        self._seen_version = -1
        self._ids = EMPTY
        self._frequencies: dict[str, int] = {}

    def snapshot(self) -> AbstractContextManager[None]:
        """Everything read within belongs to one state of the store."""
        return self._reader.snapshot()

    def statistics(self) -> Statistics:
        """Totals for BM25."""
        totals = dict(self._reader.rows("SELECT name, value FROM totals"))
        chunks = int(totals.get("chunks", 0))
        return Statistics(chunks, int(totals.get("terms", 0)) / max(chunks, 1))

    def stems(self, text: str) -> list[str]:
        """The stems of prepared text, in order."""
        return self._stems(text)

    def frequencies(self, stems: Sequence[str]) -> list[int]:
        """In how many chunks each stem occurs. Remembered until the store grows by a tenth: counting reads a list."""
        chunks = self.statistics().chunks
        if abs(chunks - self._frequencies.get("", 0)) > 0.1 * chunks:
            self._frequencies = {"": chunks}  # no stem is empty
        for stem in stems:
            if stem not in self._frequencies or self._frequencies[stem] < 1000:
                rows = self._reader.rows("SELECT doc FROM stem_frequencies WHERE term = ?", stem)
                self._frequencies[stem] = rows[0][0] if rows else 0
        return [self._frequencies[stem] for stem in stems]

    def scope(self, filters: Filters, required: Sequence[str], excluded: Sequence[str]) -> Scope:
        """Apply filters, expressions that must all match a chunk, and expressions that must not match a document."""
        contents: I64 | None = None
        if not filters.empty:
            where, values = _document_filter(filters)
            contents = self._ids_of(
                f"SELECT DISTINCT content_id FROM documents d JOIN roots r USING (root_id) WHERE {where} "
                "AND content_id IS NOT NULL ORDER BY content_id",
                *values,
            )
        chunks: I64 | None = None
        if required:
            expression = " AND ".join(f"({part})" for part in required)
            chunks = self._ids_of("SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid", expression)
        unwanted = EMPTY
        if excluded:
            unwanted = self._ids_of(
                "SELECT DISTINCT t.content_id FROM words w JOIN term_counts t ON t.chunk_id = w.rowid WHERE words "
                "MATCH ? "
                "ORDER BY t.content_id",
                " OR ".join(f"({part})" for part in excluded),
            )
        return Scope(filters, contents, chunks, unwanted)

    def few_chunks(self, scope: Scope) -> I64 | None:
        """All chunks that the scope allows, if they are few enough to be scored one by one; None otherwise."""
        if scope.chunks is not None:
            if scope.chunks.size > SMALL_SCOPE_CHUNKS:
                return None
            return scope.chunks[scope.allows(scope.chunks, self.contents_of(scope.chunks))]
        if scope.contents is None:
            return None
        chunks = self._ids_of(
            "SELECT chunk_id FROM carray(?) a CROSS JOIN chunks k ON k.content_id = a.value LIMIT ?",
            _array(np.setdiff1d(scope.contents, scope.excluded)),
            SMALL_SCOPE_CHUNKS + 1,
        )
        return chunks if chunks.size <= SMALL_SCOPE_CHUNKS else None

    def contents_of(self, chunk_ids: I64) -> I64:
        """The content of each chunk, -1 for one that is gone or whose content no document uses."""
        found = dict(
            self._reader.rows(
                "SELECT t.chunk_id, t.content_id FROM carray(?) a CROSS JOIN term_counts t ON t.chunk_id = a.value "
                "CROSS JOIN contents c ON c.content_id = t.content_id WHERE c.uses > 0",
                _array(chunk_ids),
            )
        )
        return np.array([found.get(chunk_id, -1) for chunk_id in chunk_ids.tolist()], np.int64)

    def match(self, expression: str, limit: int, *, stemmed: bool) -> I64:
        """Chunk ids, newest first, that match an expression of the word index (stemmed: single words only)."""
        table = "stems" if stemmed else "words"
        return self._ids_of(
            f"SELECT rowid FROM {table} WHERE {table} MATCH ? ORDER BY rowid DESC LIMIT ?", expression, limit
        )

    def match_names(self, expression: str, limit: int) -> I64:
        """Content ids of documents whose file name or title matches an expression, newest first."""
        return self._ids_of(
            "SELECT content_id FROM names n JOIN documents d ON d.document_id = n.rowid WHERE names MATCH ? "
            "AND content_id IS NOT NULL ORDER BY n.rowid DESC LIMIT ?",
            expression,
            limit,
        )

    def first_chunks(self, content_ids: I64) -> I64:
        """The first chunk of each content that has one."""
        return self._ids_of(
            "SELECT chunk_id FROM carray(?) a CROSS JOIN chunks k ON k.content_id = a.value AND k.ordinal = 0",
            _array(content_ids),
        )

    def nearest(self, query: F32, limit: int, scope: Scope) -> tuple[I64, F32]:
        """The chunks nearest to a unit query vector: ids (n,) and cosines (n,) descending, out of all that `scope`
        allows. Chunks of one text count once towards the limit.
        """
        generation = self._reader.active_generation()
        if generation is None or limit < 1:
            return EMPTY, np.empty(0, np.float32)
        small = self.few_chunks(scope)
        if small is not None:
            cosines = self.similarities(small, query)
            known = ~np.isnan(cosines)
            return _best(small[known], cosines[known], limit)
        self._refresh(generation.generation, generation.stamp.dim)
        scores = self._scan(query)
        wanted = int(limit * OVERSAMPLE)
        while True:  # a filter that leaves little of the best takes more of them, up to all: it acts before the limit
            vector_ids = self._top(scores, wanted)
            chunk_ids, content_ids, cosines = self._chunks_of(vector_ids, query)
            allowed = scope.allows(chunk_ids, content_ids)
            if int(np.unique(cosines[allowed]).size) >= limit or vector_ids.size < min(wanted, self._ids.size):
                return _best(chunk_ids[allowed], cosines[allowed], limit)
            if wanted >= self._ids.size:
                return _best(chunk_ids[allowed], cosines[allowed], limit)
            wanted *= 8

    def similarities(self, chunk_ids: I64, query: F32) -> F32:
        """Cosine of each chunk's vector of record with the query, measured by sqlite-vec; NaN where it has none yet."""
        cosines = np.full(chunk_ids.shape, np.nan, np.float32)
        if not chunk_ids.size:
            return cosines
        rows = self._reader.rows(
            "SELECT k.chunk_id, 1.0 - vec_distance_cosine(v.vector, ?) FROM carray(?) a "
            "CROSS JOIN chunks k ON k.chunk_id = a.value CROSS JOIN vectors v ON v.text_hash = k.text_hash "
            "AND v.generation = (SELECT generation FROM generations WHERE state = 'active')",
            query.astype("<f4").tobytes(),
            _array(chunk_ids),
        )
        found = dict(rows)
        for at, chunk_id in enumerate(chunk_ids.tolist()):
            if chunk_id in found:
                cosines[at] = found[chunk_id]
        return cosines

    def term_counts(self, chunk_ids: I64, stems: Sequence[str]) -> TermCounts:
        """Word statistics of candidates."""
        content_ids = np.full(chunk_ids.shape, -1, np.int64)
        lengths = np.zeros(chunk_ids.shape, np.float32)
        counts = np.zeros((chunk_ids.size, len(stems)), np.float32)
        at = {chunk_id: i for i, chunk_id in enumerate(chunk_ids.tolist())}
        rows = self._reader.rows(
            "SELECT t.chunk_id, t.content_id, length, counts FROM carray(?) a CROSS JOIN term_counts t ON t.chunk_id = "
            "a.value "
            "CROSS JOIN contents c ON c.content_id = t.content_id WHERE c.uses > 0",
            _array(chunk_ids),
        )
        if not rows:
            return TermCounts(content_ids, lengths, counts)
        order = np.array([at[row[0]] for row in rows], np.int64)
        content_ids[order] = [row[1] for row in rows]
        lengths[order] = [row[2] for row in rows]
        sizes, all_keys, all_counts = unpack_counts([row[3] for row in rows])
        owners = np.repeat(order, sizes)
        for column, stem in enumerate(stems):
            hits = all_keys == term_key(stem)
            counts[owners[hits], column] = all_counts[hits]
        return TermCounts(content_ids, lengths, counts)

    def token_bits(self, chunk_ids: I64) -> tuple[U8, I64]:
        """Sign bits of the candidates' tokens back to back, and where each begins: (n + 1,)."""
        generation = self._reader.active_generation()
        width = generation.stamp.token_dim // 8 if generation else 1
        rows: dict[int, bytes] = dict(
            self._reader.rows(
                "SELECT k.chunk_id, b.bits FROM carray(?) a CROSS JOIN chunks k ON k.chunk_id = a.value "
                "CROSS JOIN vectors v ON v.text_hash = k.text_hash AND v.generation = ? "
                "CROSS JOIN token_bits b USING (vector_id)",
                _array(chunk_ids),
                generation.generation if generation else -1,
            )
        )
        parts = [rows.get(chunk_id, b"") for chunk_id in chunk_ids.tolist()]
        starts = np.concatenate([[0], np.cumsum([len(part) // width for part in parts])]).astype(np.int64)
        return np.frombuffer(b"".join(parts), np.uint8).reshape(-1, width), starts

    def passages(self, chunk_ids: I64) -> list[Passage]:
        """The texts of chunks, in the order asked for; those that are gone are left out."""
        rows = self._reader.rows(
            "SELECT k.chunk_id, content_id, start_char, end_char, page, line, text FROM carray(?) a "
            "CROSS JOIN chunks k ON k.chunk_id = a.value",
            _array(chunk_ids),
        )
        found = {row[0]: Passage(*row) for row in rows}
        return [found[chunk_id] for chunk_id in chunk_ids.tolist() if chunk_id in found]

    def documents(self, content_ids: I64, filters: Filters) -> list[FoundDocument]:
        """The documents that have these contents and pass the filters, by content and path."""
        where, values = _document_filter(filters)
        rows = self._reader.rows(
            "SELECT d.document_id, d.content_id, r.path, d.path, c.title, d.mtime_ns, r.status, c.complete FROM "
            "carray(?) a "
            "CROSS JOIN documents d ON d.content_id = a.value JOIN contents c ON c.content_id = d.content_id "
            f"JOIN roots r USING (root_id) WHERE {where} ORDER BY d.content_id, r.root_id, d.path",
            _array(content_ids),
            *values,
        )
        return [
            FoundDocument(document_id, content_id, root, path, title, mtime_ns, status == "online", bool(complete))
            for document_id, content_id, root, path, title, mtime_ns, status, complete in rows
        ]

    def _refresh(self, generation: int, dim: int) -> None:
        """Bring the cached segments to the state of this snapshot; cheap when nothing was committed since."""
        version = self._reader.data_version()
        if version == self._seen_version:
            return
        wanted = dict(
            self._reader.rows(
                "SELECT segment_id, version FROM segments JOIN segment_ids USING (segment_id) WHERE generation = ?",
                generation,
            )
        )
        kept: dict[int, Segment] = {}
        for segment_id, ids_version in sorted(wanted.items()):
            known = self._segments.get(segment_id)
            if known is None:
                codes, scales, ids = self._reader.rows(
                    "SELECT codes, scales, ids FROM segments JOIN segment_ids USING (segment_id) WHERE segment_id = ?",
                    segment_id,
                )[0]
                known = Segment(
                    ids_version,
                    np.frombuffer(ids, "<i8"),
                    np.frombuffer(codes, np.int8).reshape(-1, dim),
                    np.frombuffer(scales, "<f4"),
                )
            elif known.version != ids_version:
                ids = self._reader.rows("SELECT ids FROM segment_ids WHERE segment_id = ?", segment_id)[0][0]
                known = Segment(ids_version, np.frombuffer(ids, "<i8"), known.codes, known.scales)
            kept[segment_id] = known
        self._segments = kept
        self._ids = np.concatenate([segment.ids for segment in kept.values()]) if kept else EMPTY
        self._seen_version = version

    def _scan(self, query: F32) -> F32:
        if not self._segments:
            return np.empty(0, np.float32)
        vector = np.ascontiguousarray(query, np.float32)
        scores = np.concatenate(
            [scan_int8(segment.codes, segment.scales, vector) for segment in self._segments.values()]
        )
        scores[self._ids < 0] = -np.inf
        return scores

    def _top(self, scores: F32, count: int) -> I64:
        """The ids of the `count` best scores, dead rows left out."""
        at = np.argpartition(-scores, count)[:count] if scores.size > count else np.arange(scores.size)
        ids = self._ids[at]
        return ids[ids >= 0]

    def _chunks_of(self, vector_ids: I64, query: F32) -> tuple[I64, I64, F32]:
        """Chunk ids, content ids and cosines of record for vectors; documents that are gone are left out."""
        rows = self._reader.rows(
            "SELECT k.chunk_id, k.content_id, v.cosine FROM (SELECT text_hash, 1.0 - vec_distance_cosine(vector, ?) "
            "AS cosine "
            "FROM carray(?) a CROSS JOIN vectors ON vector_id = a.value) v CROSS JOIN chunks k ON k.text_hash = "
            "v.text_hash "
            "JOIN contents c ON c.content_id = k.content_id WHERE k.embed = 1 AND c.uses > 0",
            query.astype("<f4").tobytes(),
            _array(vector_ids),
        )
        if not rows:
            return EMPTY, EMPTY, np.empty(0, np.float32)
        chunk_ids, content_ids, cosines = zip(*rows, strict=True)
        return np.array(chunk_ids, np.int64), np.array(content_ids, np.int64), np.array(cosines, np.float32)

    def _ids_of(self, sql: str, *values: Any) -> I64:
        return np.array([row[0] for row in self._reader.rows(sql, *values)], np.int64)


def _array(ids: I64) -> object:
    # SQLite takes no empty array; -1 is no row's id.
    return apsw.carray(np.ascontiguousarray(ids, np.int64) if ids.size else np.array([-1], np.int64))


def _best(chunk_ids: I64, cosines: F32, limit: int) -> tuple[I64, F32]:
    """The first `limit` by falling cosine, ties by id; equal texts have equal cosines and count once."""
    order = np.lexsort((chunk_ids, -cosines))
    chunk_ids, cosines = chunk_ids[order], cosines[order]
    fresh = np.concatenate([[True], cosines[1:] != cosines[:-1]]) if cosines.size else np.empty(0, np.bool_)
    kept = np.cumsum(fresh) <= limit
    return chunk_ids[kept], cosines[kept]


def _document_filter(filters: Filters) -> tuple[str, list[Any]]:
    """A condition on documents d and roots r, and its values."""
    parts: list[str] = ["1"]
    values: list[Any] = []
    if filters.types:
        parts.append(f"d.type IN ({', '.join('?' * len(filters.types))})")
        values += filters.types
    if filters.after_ns is not None:
        parts.append("d.mtime_ns >= ?")
        values.append(filters.after_ns)
    if filters.before_ns is not None:
        parts.append("d.mtime_ns < ?")
        values.append(filters.before_ns)
    if filters.folders:
        folders = [_folder_filter(folder) for folder in filters.folders]
        parts.append("(" + " OR ".join(part for part, _ in folders) + ")")
        values += [value for _, some in folders for value in some]
    return " AND ".join(parts), values


def _folder_filter(folder: str) -> tuple[str, list[Any]]:
    """An absolute path means that folder with all below; anything else the name of a folder, in any case."""
    if os.path.isabs(folder):
        path = os.path.abspath(folder)
        # Keyboards and shells compose letters, some disks take them apart: the path is meant as the disk has it.
        spellings = {path, unicodedata.normalize("NFC", path), unicodedata.normalize("NFD", path)}
        wanted = [os.fsencode(name).replace(os.sep.encode(), b"/").rstrip(b"/") for name in sorted(spellings)]
        whole = (
            "CAST(replace(CAST(r.path AS TEXT), '\\', '/') || '/' || d.path AS BLOB)"
            if os.sep == "\\"
            else ("CAST(rtrim(r.path, '/') || '/' || d.path AS BLOB)")
        )
        below = " OR ".join([f"({whole} >= ? AND {whole} < ?)"] * len(wanted))
        return f"({below})", [name + end for name in wanted for end in (b"/", b"0")]
    name = path_key(folder.strip("/\\").encode("utf-8", "surrogateescape")).replace("\\", "/")
    escaped = unicodedata.normalize("NFC", name).replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return "('/' || d.path_key LIKE ? ESCAPE '\\' OR r.path LIKE ? ESCAPE '\\')", [f"%/{escaped}/%", f"%/{escaped}"]
