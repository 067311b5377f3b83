"""Contents and their chunks: the words stage.

A small file is one transaction (`with writer.transaction():` around begin, add, finish and put_document). A big one
is committed in parts: begin_content, add_chunks as often as it takes, finish_content. Killed between, `begin_content`
of the same bytes and extractor finds the parts and says in chunk_count how many chunks to pass over.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw

from engine.search.lexical import prepare_text
from indexer.store.records import Content, NewChunk, text_hash
from indexer.store.terms import pack_counts, stemmer
from indexer.store.transaction import Transactions

CONTENT_COLUMNS = "content_id, extractor, title, note, chunk_count, complete"
CHUNKS_A_TURN = 64
STRAY_VECTORS_STAMP = "stray_vectors"  # there may be vectors of texts that no chunk has
WORD_TABLES = ("words", "stems")


class ContentTables(Transactions):
    """Part of the writer: `contents`, `chunks`, `term_counts` and the two word indexes."""

    def __init__(self, connection: apsw.Connection, data_dir: Path) -> None:
        super().__init__(connection, data_dir)
        self._stems = stemmer(connection)

    def find_content(self, content_hash: bytes, extractor: str) -> Content | None:
        """What these bytes said to this extractor earlier; check `complete` before reusing it as it is."""
        rows = self._all(
            f"SELECT {CONTENT_COLUMNS} FROM contents WHERE content_hash = ? AND extractor = ?", content_hash, extractor
        )
        return _content(rows[0]) if rows else None

    def begin_content(self, content_hash: bytes, extractor: str, *, title: str = "", note: str = "") -> Content:
        """Start a content, or go on with one that was started: its first `chunk_count` chunks are there already."""
        with self.transaction():
            self._run(
                "INSERT INTO contents (content_hash, extractor, title, note) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (content_hash, extractor) DO UPDATE SET title = excluded.title, note = excluded.note",
                content_hash,
                extractor,
                clean(title),
                clean(note),
            )
            found = self.find_content(content_hash, extractor)
        assert found is not None
        return found

    def add_chunks(self, content_id: int, chunks: Sequence[NewChunk]) -> None:
        """Append chunks in the order of the text: rows, word indexes, and the wait for vectors that are not there yet.

        Ordinals go on from those present. Lone surrogates and NULs become U+FFFD, one for one, so that offsets hold.
        """
        with self.transaction():
            ordinal = self._int("SELECT chunk_count FROM contents WHERE content_id = ?", content_id)
            terms = 0
            for chunk in chunks:
                terms += self._add_chunk(content_id, ordinal, chunk)
                ordinal += 1
            self._run("UPDATE contents SET chunk_count = ? WHERE content_id = ?", ordinal, content_id)
            self._count(len(chunks), terms)

    def finish_content(self, content_id: int, *, char_count: int, note: str | None = None) -> None:
        """The content is written to the end; char_count: length of the extracted text."""
        with self.transaction():
            self._run(
                "UPDATE contents SET complete = 1, char_count = ?, note = coalesce(?, note) WHERE content_id = ?",
                char_count,
                None if note is None else clean(note),
                content_id,
            )

    def _add_chunk(self, content_id: int, ordinal: int, chunk: NewChunk) -> int:
        text = clean(chunk.text)
        key = text_hash(text)
        self._run(
            "INSERT INTO chunks (content_id, ordinal, start_char, end_char, page, line, text, text_hash, embed) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            content_id,
            ordinal,
            chunk.start_char,
            chunk.end_char,
            chunk.page,
            chunk.line,
            text,
            key,
            int(chunk.embed),
        )
        chunk_id = self.db.last_insert_rowid()
        stems = self._add_words(chunk_id, text)
        self._run("INSERT INTO term_counts VALUES (?, ?, ?, ?)", chunk_id, content_id, len(stems), pack_counts(stems))
        if chunk.embed:
            self._run(
                "INSERT INTO pending SELECT ?1, ?2 WHERE NOT EXISTS (SELECT 1 FROM vectors WHERE text_hash = ?3 AND "
                "generation = "
                "(SELECT generation FROM generations WHERE state <> 'retired' ORDER BY state = 'building' DESC LIMIT "
                "1))",
                chunk_id,
                ordinal // CHUNKS_A_TURN,
                key,
            )
        return len(stems)

    def drop_chunks(self, content_id: int, limit: int) -> list[bytes]:
        """Remove the last `limit` chunks of a content and all that was derived from them but vectors; when none is
        left, the content too. Returns the removed chunks' text hashes.

        The word indexes are given the exact text that they were given before: only so do they forget it. What remains
        is an incomplete content: should its file come back meanwhile, `begin_content` goes on from there.
        """
        with self.transaction():
            chunks = self._all(
                "SELECT chunk_id, text, text_hash, length FROM chunks JOIN term_counts USING (chunk_id) "
                "WHERE chunks.content_id = ? ORDER BY ordinal DESC LIMIT ?",
                content_id,
                limit,
            )
            for chunk_id, text, _, _ in chunks:
                assert isinstance(text, str)
                prepared = prepare_text(text)
                for table in WORD_TABLES:
                    self._run(f"INSERT INTO {table} ({table}, rowid, text) VALUES ('delete', ?, ?)", chunk_id, prepared)
            for table in ("pending", "term_counts", "chunks"):
                self._many(f"DELETE FROM {table} WHERE chunk_id = ?", [(row[0],) for row in chunks])
            self._run(
                "UPDATE contents SET chunk_count = chunk_count - ?, complete = 0 WHERE content_id = ?",
                len(chunks),
                content_id,
            )
            if len(chunks) < limit:
                self._run("UPDATE documents SET content_id = NULL WHERE content_id = ?", content_id)
                self._run("DELETE FROM contents WHERE content_id = ?", content_id)
            self._count(-len(chunks), -sum(length for *_, length in chunks if isinstance(length, int)))
        return [key for _, _, key, _ in chunks if isinstance(key, bytes)]

    def drop_content(self, content_id: int) -> int:
        """Remove a content with all its chunks; returns how many it had. Vectors stay for when its file is read again;
        those that turn out to be of no use go with the next purge.
        """
        with self.transaction():
            self._run("INSERT OR IGNORE INTO stamps VALUES (?, '')", STRAY_VECTORS_STAMP)
            dropped = 0
            while gone := self.drop_chunks(content_id, 1000):
                dropped += len(gone)
        return dropped

    def rebuild_words(self) -> None:
        """Fill the word indexes anew from the stored text, after a change of how text is prepared."""
        with self.transaction():
            for table in WORD_TABLES:
                self._run(f"INSERT INTO {table} ({table}) VALUES ('delete-all')")
            terms, after = 0, 0
            while rows := self._all(
                "SELECT chunk_id, text FROM chunks WHERE chunk_id > ? ORDER BY chunk_id LIMIT 1000", after
            ):
                for chunk_id, text in rows:
                    assert isinstance(chunk_id, int) and isinstance(text, str)
                    stems = self._add_words(chunk_id, text)
                    self._run(
                        "UPDATE term_counts SET length = ?, counts = ? WHERE chunk_id = ?",
                        len(stems),
                        pack_counts(stems),
                        chunk_id,
                    )
                    terms += len(stems)
                    after = chunk_id
            self._run("UPDATE totals SET value = ? WHERE name = 'terms'", terms)

    def _add_words(self, chunk_id: int, text: str) -> list[str]:
        """Give a chunk's text to the word indexes; returns its stems."""
        prepared = prepare_text(text)
        for table in WORD_TABLES:
            self._run(f"INSERT INTO {table} (rowid, text) VALUES (?, ?)", chunk_id, prepared)
        return self._stems(prepared)

    def _count(self, chunks: int, terms: int) -> None:
        self._run(
            "UPDATE totals SET value = value + CASE name WHEN 'chunks' THEN ? ELSE ? END WHERE name IN ('chunks', "
            "'terms')",
            chunks,
            terms,
        )


def clean(text: str) -> str:
    """Text that SQLite and UTF-8 can hold: NULs and lone surrogates become U+FFFD; the length stays the same."""
    text = text.replace("\0", "\ufffd")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        text = "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)
    return text


def _content(row: tuple[Any, ...]) -> Content:
    content_id, extractor, title, note, chunk_count, complete = row
    return Content(content_id, extractor, title, note, chunk_count, bool(complete))
