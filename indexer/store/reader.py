"""The read-only connection: status for people, candidates for searches. It never writes nor leaves a cursor open.

Searching itself lives in engine/search; candidates.py gives it what it needs from here.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import apsw

from indexer.store.documents import ROOT_COLUMNS, root_of
from indexer.store.maintenance import COUNTS
from indexer.store.open import explain, index_path, is_bug, open_reader
from indexer.store.queue import FAILURE_COLUMNS, failure_of
from indexer.store.records import Counts, Failure, Generation, Root
from indexer.store.vectors import GENERATION_COLUMNS, generation_of


@dataclass(frozen=True, slots=True)
class TextPart:
    """A stretch of a document's extracted text. start_char: where in the whole text it begins."""

    start_char: int
    text: str
    total_chars: int
    complete: bool  # False while the document is still being written to the index


class Reader:
    """Reads the index while the indexer writes it. Thread-safe by one lock, held within `snapshot()`."""

    def __init__(self, connection: apsw.Connection, data_dir: Path) -> None:
        self.db = connection
        self.path = index_path(data_dir)
        self._lock = threading.RLock()
        self._depth = 0

    @classmethod
    def open(cls, data_dir: Path) -> Self:
        """Open the index of a data folder. Raises StoreError, with a sentence, where there is none."""
        return cls(open_reader(data_dir), data_dir)

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self.db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All reads within see the index as it was at the first of them. Keep it short: it holds the WAL back.

        Raises StoreBusyError, StoreDamagedError or StoreError where SQLite reports trouble with the file.
        """
        with self._lock:
            try:
                if self._depth == 0:
                    self.db.execute("BEGIN")
                self._depth += 1
                try:
                    yield
                finally:
                    self._depth -= 1
                    if self._depth == 0 and not self.db.get_autocommit():
                        self.db.execute("ROLLBACK")
            except apsw.Error as error:
                if is_bug(error):
                    raise
                raise explain(error, self.path) from error

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Execute one statement and fetch all that it yields."""
        with self.snapshot():
            return self.db.execute(sql, values).fetchall()

    def data_version(self) -> int:
        """A number that changes with every commit of another connection."""
        return int(self.rows("PRAGMA data_version")[0][0])

    def roots(self) -> list[Root]:
        """All watched folders, in the order in which they were added."""
        return [root_of(row) for row in self.rows(f"SELECT {ROOT_COLUMNS} FROM roots ORDER BY root_id")]

    def counts(self) -> Counts:
        """Figures of the status line."""
        with self.snapshot():
            return Counts(*(int(self.rows(sql)[0][0]) for sql in COUNTS.values()))

    def document_counts(self) -> dict[int, int]:
        """Documents by root_id."""
        return {row[0]: row[1] for row in self.rows("SELECT root_id, count(*) FROM documents GROUP BY root_id")}

    def failures(self) -> list[Failure]:
        """Every file that could not be read, by path."""
        return [failure_of(row) for row in self.rows(f"SELECT {FAILURE_COLUMNS} FROM failures ORDER BY root_id, path")]

    def active_generation(self) -> Generation | None:
        """The model whose vectors answer searches; None before the first model was used."""
        rows = self.rows(f"SELECT {GENERATION_COLUMNS} FROM generations WHERE state = 'active'")
        return generation_of(rows[0]) if rows else None

    def building_generation(self) -> Generation | None:
        """The model whose vectors are being made and will take over; None mostly."""
        rows = self.rows(f"SELECT {GENERATION_COLUMNS} FROM generations WHERE state = 'building'")
        return generation_of(rows[0]) if rows else None

    def stamp(self, name: str) -> str | None:
        """A value that the indexer keeps from one run to the next."""
        rows = self.rows("SELECT value FROM stamps WHERE name = ?", name)
        return str(rows[0][0]) if rows else None

    def index_size_bytes(self) -> int:
        """Bytes on the disk, the WAL included."""
        files = (self.path, self.path.with_name(self.path.name + "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def versions(self) -> dict[str, str]:
        """Versions of the parts below, for the doctor."""
        return {
            "sqlite": apsw.sqlite_lib_version(),
            "apsw": apsw.apsw_version(),
            "sqlite-vec": self.rows("SELECT vec_version()")[0][0],
        }

    def document_text(self, document_id: int, start_char: int = 0, end_char: int | None = None) -> TextPart | None:
        """The extracted text of a document from `start_char` up to `end_char`, put together from its chunks.

        Chunks may overlap; what lies between them is white space and comes back as line ends. None when the document is
        gone or has no text.
        """
        rows = self.rows(
            "SELECT k.start_char, k.end_char, k.text, c.char_count, c.complete FROM documents d "
            "JOIN contents c ON c.content_id = d.content_id JOIN chunks k ON k.content_id = d.content_id "
            "WHERE d.document_id = ?1 AND k.end_char > ?2 AND (?3 IS NULL OR k.start_char < ?3) ORDER BY k.ordinal",
            document_id,
            start_char,
            end_char,
        )
        if not rows:
            return None
        parts: list[str] = []
        at = start_char
        for begin, end, text, _, _ in rows:
            if begin > at:
                parts.append("\n" * (begin - at))
                at = begin
            parts.append(text[at - begin :])
            at = max(at, end)
        joined = "".join(parts)
        if end_char is not None:
            joined = joined[: max(0, end_char - start_char)]
        return TextPart(start_char, joined, max(rows[-1][3], at), bool(rows[-1][4]))
