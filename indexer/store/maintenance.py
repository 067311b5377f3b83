"""Keeping the index small, whole and countable."""

from __future__ import annotations

from indexer.store.contents import STRAY_VECTORS_STAMP, ContentTables
from indexer.store.open import BUSY_TIMEOUT_MS
from indexer.store.records import Counts
from indexer.store.vectors import PENDING_COUNT, VectorTables

VACUUM_PAGES = 8192


class MaintenanceTables(ContentTables, VectorTables):
    """Part of the writer: orphans, checks, counts, stamps."""

    def purge_orphans(self, limit: int = 1024) -> int:
        """Remove up to about `limit` chunks of contents that no document uses, with the vectors only they used, and as
        many vectors of retired generations. Returns how much went; 0 means that nothing is left to purge.

        Call it when the queue has drained and no content is being written: a move may show as a deletion first and a
        creation later, and then everything is still there.
        """
        with self.transaction():
            left = limit
            keys: set[bytes] = set()
            purged = 0
            for (content_id,) in self._all("SELECT content_id FROM contents WHERE uses = 0 LIMIT ?", limit):
                assert isinstance(content_id, int)
                gone = self.drop_chunks(content_id, left)
                keys.update(gone)
                purged += 1
                left -= len(gone)
                if left <= 0:
                    break
            keys.update(self._stray_keys())
            self.drop_unused_vectors(sorted(keys))  # all at once: each segment's ids are rewritten once
            if purged:
                self._finish_generation()
            return purged + self.drop_retired(limit)

    def _stray_keys(self) -> list[bytes]:
        """Text hashes of vectors whose chunks are gone; looks only after `drop_content` left some."""
        if self.stamp(STRAY_VECTORS_STAMP) is None:
            return []
        self._run("DELETE FROM stamps WHERE name = ?", STRAY_VECTORS_STAMP)
        rows = self._all(
            "SELECT text_hash FROM vectors v WHERE NOT EXISTS "
            "(SELECT 1 FROM chunks k WHERE k.text_hash = v.text_hash AND embed = 1)"
        )
        return [key for (key,) in rows if isinstance(key, bytes)]

    def tidy(self) -> None:
        """Give freed pages back to the disk, 64 MiB at most, and move the WAL into the file; for idle moments."""
        with self._lock:
            self.db.execute(f"PRAGMA incremental_vacuum({VACUUM_PAGES})").fetchall()
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
    "pending_chunks": PENDING_COUNT,
    "pending_files": "SELECT count(*) FROM queue",
    "failed": "SELECT count(*) FROM failures",
    "partial": "SELECT count(*) FROM documents JOIN contents USING (content_id) WHERE complete = 0",
}
