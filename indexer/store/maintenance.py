"""Keeping the index small, whole and countable."""

from __future__ import annotations

from indexer.store.contents import ContentTables
from indexer.store.open import BUSY_TIMEOUT_MS
from indexer.store.records import Counts
from indexer.store.vectors import VectorTables


class MaintenanceTables(ContentTables, VectorTables):
    """Part of the writer: orphans, checks, counts, stamps."""

    def purge_orphans(self, limit: int = 64) -> int:
        """Remove up to `limit` contents that no document uses, with the vectors only they used, and vectors of retired
        generations. Returns how much went; 0 means that nothing is left to purge.

        Call it when the queue has drained and no content is being written: a move may show as a deletion first and a
        creation later, and then everything is still there.
        """
        with self.transaction():
            found = self._all("SELECT content_id FROM contents WHERE uses = 0 LIMIT ?", limit)
            keys: set[bytes] = set()
            for (content_id,) in found:
                assert isinstance(content_id, int)
                rows = self._all("SELECT text_hash FROM chunks WHERE content_id = ?", content_id)
                keys.update(key for (key,) in rows if isinstance(key, bytes))
                self.drop_content(content_id)
            self.drop_unused_vectors(sorted(keys))  # all at once: each segment's ids are rewritten once
            if found:
                self._finish_generation()
            return len(found) + self.drop_retired(limit * 16)

    def tidy(self) -> None:
        """Give freed pages back to the disk and move the WAL into the file; for moments when nothing else is to do."""
        with self._lock:
            self.db.execute("PRAGMA incremental_vacuum").fetchall()
            self.db.execute("PRAGMA optimize").fetchall()
            self.empty_wal()

    def empty_wal(self) -> None:
        """A checkpoint that also cuts the WAL to nothing, for it may hold text that was deleted since. Where a reader
        still needs it, it stays until the next time."""
        with self._lock:
            self.db.set_busy_timeout(0)
            try:
                self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            finally:
                self.db.set_busy_timeout(BUSY_TIMEOUT_MS)

    def checkpoint(self) -> None:
        """Move what the WAL holds into the file, as far as readers allow; never makes a reader wait."""
        with self._lock:
            self.db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def quick_check(self) -> list[str]:
        """What SQLite finds wrong with the file; empty when it is sound. For the start after an unclean stop."""
        return [str(row[0]) for row in self._all("PRAGMA quick_check(20)") if row[0] != "ok"]

    def counts(self) -> Counts:
        """Figures of the status line."""
        return Counts(*(self._int(sql) for sql in COUNTS.values()))

    def index_size_bytes(self) -> int:
        """Bytes on the disk, the WAL included."""
        return sum(
            file.stat().st_size for file in (self.path, self.path.with_name(self.path.name + "-wal")) if file.exists()
        )

    def stamp(self, name: str) -> str | None:
        """A value that outlives the process, for example whether the last stop was clean."""
        row = self._row("SELECT value FROM stamps WHERE name = ?", name)
        return str(row[0]) if row else None

    def set_stamp(self, name: str, value: str) -> None:
        """Keep a value that outlives the process."""
        with self.transaction():
            self._run(
                "INSERT INTO stamps VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", name, value
            )


COUNTS = {
    "documents": "SELECT count(*) FROM documents",
    "chunks": "SELECT value FROM totals WHERE name = 'chunks'",
    "vectors": "SELECT count(*) FROM vectors WHERE generation = (SELECT generation FROM generations WHERE state = "
    "'active')",
    "pending_chunks": "SELECT count(*) FROM pending",
    "pending_files": "SELECT count(*) FROM queue",
    "failed": "SELECT count(*) FROM failures",
    "partial": "SELECT count(*) FROM documents JOIN contents USING (content_id) WHERE complete = 0",
}
