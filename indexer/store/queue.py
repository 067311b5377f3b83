"""The dirty queue and the failures: both outlive the process."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from indexer.store.records import Failure, QueueItem
from indexer.store.transaction import Transactions

FAILURE_COLUMNS = "root_id, path, kind, message, attempts, retry_at_s, quarantined, size, mtime_ns, failed_at_s"


class QueueTables(Transactions):
    """Part of the writer: `queue` and `failures`."""

    def enqueue(
        self, root_id: int, paths: Iterable[bytes], *, kind: str = "file", priority: int = 0, not_before_s: float = 0.0
    ) -> None:
        """Queue relative paths (b'' is the root itself). A path already queued moves to the end of its priority,
        keeps the higher priority of the two, and gets a new queue_id: a `done` under way does not lose this event.
        """
        with self.transaction():
            # REPLACE, not UPDATE: the row gets a new queue_id, and AUTOINCREMENT never gives one twice.
            self._many(
                "INSERT OR REPLACE INTO queue (root_id, path, kind, priority, not_before_s) VALUES (?1, ?2, ?3, "
                "max(?4, coalesce((SELECT priority FROM queue WHERE root_id = ?1 AND path = ?2), ?4)), ?5)",
                [(root_id, path, kind, priority, not_before_s) for path in paths],
            )

    def peek(self, limit: int = 1, *, now_s: float | None = None) -> list[QueueItem]:
        """The next items whose time has come, by priority and then age. Roots that are paused or offline are left "
        "out."""
        rows = self._all(
            "SELECT queue_id, root_id, queue.path, kind, priority, attempts FROM queue JOIN roots USING (root_id) "
            "WHERE not_before_s <= ? AND paused = 0 AND status = 'online' ORDER BY priority DESC, queue_id LIMIT ?",
            time.time() if now_s is None else now_s,
            limit,
        )
        return [_queue_item(row) for row in rows]

    def take(self, limit: int = 1, *, now_s: float | None = None) -> list[QueueItem]:
        """`peek`, counting an attempt for each item first: were the process killed by the work, the count tells."""
        with self.transaction():
            items = self.peek(limit, now_s=now_s)
            self._many(
                "UPDATE queue SET attempts = attempts + 1 WHERE queue_id = ?", [(item.queue_id,) for item in items]
            )
        return [
            QueueItem(item.queue_id, item.root_id, item.path, item.kind, item.priority, item.attempts + 1)
            for item in items
        ]

    def count_attempt(self, item: QueueItem) -> QueueItem:
        """Count an attempt for one item of `peek`, as `take` does for the first."""
        with self.transaction():
            self._run("UPDATE queue SET attempts = attempts + 1 WHERE queue_id = ?", item.queue_id)
        return replace(item, attempts=item.attempts + 1)

    def done(self, items: Iterable[QueueItem]) -> None:
        """Remove items; one that was queued anew meanwhile stays."""
        with self.transaction():
            self._many("DELETE FROM queue WHERE queue_id = ?", [(item.queue_id,) for item in items])

    def postpone(self, item: QueueItem, not_before_s: float) -> None:
        """Leave the item queued, but not before a time (unix seconds). Its attempts stay counted."""
        with self.transaction():
            self._run("UPDATE queue SET not_before_s = ? WHERE queue_id = ?", not_before_s, item.queue_id)

    def queue_length(self, *, root_id: int | None = None) -> int:
        """How many paths wait, whether or not their time has come."""
        return self._int("SELECT count(*) FROM queue WHERE ?1 IS NULL OR root_id = ?1", root_id)

    def next_due_s(self) -> float | None:
        """When the next item of an online root comes due (unix seconds); None when nothing waits."""
        row = self._row(
            "SELECT min(not_before_s) FROM queue JOIN roots USING (root_id) WHERE paused = 0 AND status = 'online'"
        )
        value = row[0] if row else None
        return float(value) if isinstance(value, int | float) else None

    def record_failure(
        self,
        root_id: int,
        path: bytes,
        kind: str,
        message: str,
        *,
        retry_at_s: float | None = None,
        quarantined: bool = False,
        size: int | None = None,
        mtime_ns: int | None = None,
    ) -> Failure:
        """Note that a file could not be read; counts its attempts on from an earlier failure of the same path."""
        with self.transaction():
            self._run(
                f"INSERT INTO failures ({FAILURE_COLUMNS}) VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?, ?) "
                "ON CONFLICT (root_id, path) DO UPDATE SET kind = excluded.kind, message = excluded.message, "
                "attempts = attempts + 1, retry_at_s = excluded.retry_at_s, quarantined = excluded.quarantined, "
                "size = excluded.size, mtime_ns = excluded.mtime_ns, failed_at_s = excluded.failed_at_s",
                root_id,
                path,
                kind,
                message,
                retry_at_s,
                int(quarantined),
                size,
                mtime_ns,
                time.time(),
            )
            rows = self._all(f"SELECT {FAILURE_COLUMNS} FROM failures WHERE root_id = ? AND path = ?", root_id, path)
        return failure_of(rows[0])

    def clear_failure(self, root_id: int, path: bytes) -> None:
        """Forget the failure of a path, if there is one: it was read, or it is gone."""
        with self.transaction():
            self._run("DELETE FROM failures WHERE root_id = ? AND path = ?", root_id, path)

    def failure(self, root_id: int, path: bytes) -> Failure | None:
        """The failure of a path, None when it has none."""
        rows = self._all(f"SELECT {FAILURE_COLUMNS} FROM failures WHERE root_id = ? AND path = ?", root_id, path)
        return failure_of(rows[0]) if rows else None

    def failures(self, *, root_id: int | None = None) -> list[Failure]:
        """All failures, or those of one root, by path."""
        rows = self._all(
            f"SELECT {FAILURE_COLUMNS} FROM failures WHERE ?1 IS NULL OR root_id = ?1 ORDER BY root_id, path", root_id
        )
        return [failure_of(row) for row in rows]

    def failure_count(self) -> int:
        """How many files could not be read."""
        return self._int("SELECT count(*) FROM failures")

    def failures_due(self, limit: int, *, now_s: float | None = None) -> list[Failure]:
        """Failures whose retry time has come, quarantined ones left out."""
        rows = self._all(
            f"SELECT {FAILURE_COLUMNS} FROM failures WHERE retry_at_s <= ? AND quarantined = 0 ORDER BY retry_at_s "
            f"LIMIT ?",
            time.time() if now_s is None else now_s,
            limit,
        )
        return [failure_of(row) for row in rows]


def _queue_item(row: tuple[Any, ...]) -> QueueItem:
    return QueueItem(*row)


def failure_of(row: tuple[Any, ...]) -> Failure:
    """A row of FAILURE_COLUMNS as a record."""
    root_id, path, kind, message, attempts, retry_at_s, quarantined, size, mtime_ns, failed_at_s = row
    return Failure(root_id, path, kind, message, attempts, retry_at_s, bool(quarantined), size, mtime_ns, failed_at_s)
