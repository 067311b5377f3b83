"""The base of the writer: one connection, one lock, and transactions that nest."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import apsw

from indexer.errors import StoreError
from indexer.store.open import explain, index_path, is_bug

Value: TypeAlias = int | float | str | bytes | None


class Transactions:
    """Owns the write connection. Every method that writes opens `transaction()`; within an open one it joins it."""

    def __init__(self, connection: apsw.Connection, data_dir: Path) -> None:
        self.db = connection
        self.path = index_path(data_dir)
        self._file = _file_key(self.path)
        self._lock = threading.RLock()
        self._depth = 0

    def is_in_place(self) -> bool:
        """Whether the file that was opened still stands under its name."""
        return _file_key(self.path) == self._file

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing: commits when the outermost block ends, rolls back when anything is raised through it.

        Raises StoreBusyError, StoreDamagedError or StoreError where SQLite reports trouble with the file.
        """
        with self._lock:
            try:
                if self._depth == 0:
                    self.db.execute("BEGIN IMMEDIATE")
                self._depth += 1
                try:
                    yield
                finally:
                    self._depth -= 1
                if self._depth == 0:
                    self.db.execute("COMMIT")
            except apsw.Error as error:
                self._roll_back()
                raise self._translate(error) from error
            except BaseException:
                self._roll_back()
                raise

    def _roll_back(self) -> None:
        if self._depth == 0 and not self.db.get_autocommit():
            self.db.execute("ROLLBACK")

    def _translate(self, error: apsw.Error) -> Exception:
        """Trouble with the file gets a sentence; an error in our own SQL stays what it is, a bug."""
        return error if is_bug(error) else explain(error, self.path)

    def _all(self, sql: str, *values: Value) -> list[tuple[Value, ...]]:
        with self._lock:
            try:
                return self.db.execute(sql, values).fetchall()
            except apsw.Error as error:
                if self._depth:
                    raise  # to the transaction, which rolls back
                raise self._translate(error) from error

    def _row(self, sql: str, *values: Value) -> tuple[Value, ...] | None:
        rows = self._all(sql, *values)
        return rows[0] if rows else None

    def _int(self, sql: str, *values: Value) -> int:
        """The single integer that `sql` yields; 0 for NULL."""
        row = self._row(sql, *values)
        if row is None:
            raise StoreError(f"The index {self.path} lacks a row that it must have; delete it and index again.")
        value = row[0]
        return value if isinstance(value, int) else 0

    def _run(self, sql: str, *values: Value) -> int:
        """Execute one statement; returns how many rows it changed."""
        with self._lock:
            self.db.execute(sql, values).fetchall()
            return self.db.changes()

    def _many(self, sql: str, rows: Sequence[tuple[Value, ...]]) -> None:
        with self._lock:
            self.db.executemany(sql, rows)


def _file_key(path: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino
