"""Roots and documents: which files there are, where, and which content each has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from engine.search.lexical import prepare_text
from indexer.store.records import Document, Root, RootStatus, file_type, path_key
from indexer.store.transaction import Transactions

ROOT_COLUMNS = "root_id, path, status, reason, paused, identity, settings, scanned_at"
DOCUMENT_COLUMNS = "document_id, root_id, path, size, mtime_ns, d.content_id, extractor, coalesce(complete, 0)"
DOCUMENTS = f"SELECT {DOCUMENT_COLUMNS} FROM documents d LEFT JOIN contents c ON c.content_id = d.content_id"
PAGE_ROWS = 1000


class DocumentTables(Transactions):
    """Part of the writer: `roots`, `documents` and the index of their names."""

    def add_root(self, path: bytes, *, identity: str = "", settings: str = "{}") -> Root:
        """Watch a folder (absolute os.fsencode bytes); one that is known already is returned as it is."""
        with self.transaction():
            self._run(
                "INSERT INTO roots (path, identity, settings) VALUES (?, ?, ?) ON CONFLICT (path) DO NOTHING",
                path,
                identity,
                settings,
            )
        return next(root for root in self.roots() if root.path == path)

    def roots(self) -> list[Root]:
        """All watched folders, in the order in which they were added."""
        return [root_of(row) for row in self._all(f"SELECT {ROOT_COLUMNS} FROM roots ORDER BY root_id")]

    def set_root_status(self, root_id: int, status: RootStatus, reason: str = "") -> None:
        """Online, or offline with the sentence why. Rows of an offline root stay."""
        with self.transaction():
            self._run("UPDATE roots SET status = ?, reason = ? WHERE root_id = ?", status, reason, root_id)

    def set_root_paused(self, root_id: int, paused: bool) -> None:
        """While paused, `take` gives out nothing of this root."""
        with self.transaction():
            self._run("UPDATE roots SET paused = ? WHERE root_id = ?", int(paused), root_id)

    def set_root_identity(self, root_id: int, identity: str) -> None:
        """Remember which volume the root lies on."""
        with self.transaction():
            self._run("UPDATE roots SET identity = ? WHERE root_id = ?", identity, root_id)

    def set_root_settings(self, root_id: int, settings: str) -> None:
        """Keep the indexer's own JSON for the root."""
        with self.transaction():
            self._run("UPDATE roots SET settings = ? WHERE root_id = ?", settings, root_id)

    def set_root_scanned(self, root_id: int, scanned_at_s: float) -> None:
        """Note when a scan of the whole root was complete (unix seconds)."""
        with self.transaction():
            self._run("UPDATE roots SET scanned_at = ? WHERE root_id = ?", scanned_at_s, root_id)

    def remove_root(self, root_id: int) -> None:
        """Forget a folder: its documents, queue and failures go at once, what only they used with `purge_orphans`."""
        with self.transaction():
            self._drop_names("root_id = ?", root_id)
            for table in ("documents", "queue", "failures", "roots"):
                self._run(f"DELETE FROM {table} WHERE root_id = ?", root_id)

    def documents(self, root_id: int, under: bytes = b"") -> Iterator[Document]:
        """The documents of a root in the byte order of their paths, below the folder `under` only if one is given.

        Read in pages, so that the store may be written between two of them.
        """
        low, high = (under + b"/", under + b"0") if under else (b"", None)
        after: bytes | None = None
        while True:
            rows = self._all(
                f"{DOCUMENTS} WHERE root_id = ?1 AND path >= ?2 AND (?3 IS NULL OR path < ?3) AND (?4 IS NULL OR "
                f"path > ?4) "
                "ORDER BY path LIMIT ?5",
                root_id,
                low,
                high,
                after,
                PAGE_ROWS,
            )
            page = [document_of(row) for row in rows]
            yield from page
            if len(page) < PAGE_ROWS:
                return
            after = page[-1].path

    def document(self, root_id: int, path: bytes) -> Document | None:
        """The document at an exact path."""
        rows = self._all(f"{DOCUMENTS} WHERE root_id = ? AND path = ?", root_id, path)
        return document_of(rows[0]) if rows else None

    def document_of_chunk(self, chunk_id: int) -> tuple[int, bytes] | None:
        """root_id and path of a document that holds a chunk; None where no document does any more."""
        row = self._row(
            "SELECT root_id, path FROM chunks JOIN documents USING (content_id) WHERE chunk_id = ? LIMIT 1", chunk_id
        )
        return (row[0], row[1]) if row and isinstance(row[0], int) and isinstance(row[1], bytes) else None

    def documents_like(self, root_id: int, path: bytes) -> list[Document]:
        """Documents whose path equals `path` but for case and Unicode normalisation."""
        rows = self._all(f"{DOCUMENTS} WHERE root_id = ? AND path_key = ? ORDER BY path", root_id, path_key(path))
        return [document_of(row) for row in rows]

    def document_count(self, root_id: int, under: bytes = b"") -> int:
        """How many documents a root has, below the folder `under` only if one is given."""
        low, high = (under + b"/", under + b"0") if under else (b"", None)
        return self._int(
            "SELECT count(*) FROM documents WHERE root_id = ?1 AND path >= ?2 AND (?3 IS NULL OR path < ?3)",
            root_id,
            low,
            high,
        )

    def put_document(self, root_id: int, path: bytes, *, size: int, mtime_ns: int, content_id: int | None) -> int:
        """Insert or update the document at a path; returns its document_id. content_id None: known by name only.

        What its earlier content alone used goes with `purge_orphans`.
        """
        with self.transaction():
            self._run(
                "INSERT INTO documents (root_id, path, path_key, type, size, mtime_ns, content_id) VALUES "
                "(?,?,?,?,?,?,?) "
                "ON CONFLICT (root_id, path) DO UPDATE SET size = excluded.size, mtime_ns = excluded.mtime_ns, "
                "content_id = excluded.content_id",
                root_id,
                path,
                path_key(path),
                file_type(path),
                size,
                mtime_ns,
                content_id,
            )
            document_id = self._int("SELECT document_id FROM documents WHERE root_id = ? AND path = ?", root_id, path)
            self._put_name(document_id)
        return document_id

    def touch_document(self, document_id: int, *, size: int, mtime_ns: int) -> None:
        """The file was written, but says the same as before."""
        with self.transaction():
            self._run("UPDATE documents SET size = ?, mtime_ns = ? WHERE document_id = ?", size, mtime_ns, document_id)

    def move_document(self, document_id: int, root_id: int, path: bytes) -> None:
        """The file was renamed or moved: one UPDATE; whatever stood at the new path is replaced."""
        with self.transaction():
            occupied = self._row(
                "SELECT document_id FROM documents WHERE root_id = ? AND path = ? AND document_id <> ?",
                root_id,
                path,
                document_id,
            )
            if occupied:
                self._drop_names("document_id = ?", _id(occupied[0]))
                self._run("DELETE FROM documents WHERE document_id = ?", occupied[0])
            self._run(
                "UPDATE documents SET root_id = ?, path = ?, path_key = ?, type = ? WHERE document_id = ?",
                root_id,
                path,
                path_key(path),
                file_type(path),
                document_id,
            )
            self._put_name(document_id)

    def move_directory(self, root_id: int, old: bytes, new_root_id: int, new: bytes) -> int:
        """A folder was renamed or moved: one UPDATE for all documents below it; returns how many there were."""
        with self.transaction():
            low, high = old + b"/", old + b"0"
            occupied = (
                "root_id = ?4 AND path IN (SELECT CAST(?5 || substr(path, ?6) AS BLOB) FROM documents "
                "WHERE root_id = ?1 AND path >= ?2 AND path < ?3)"
            )
            moved = (root_id, low, high, new_root_id, new, len(old) + 1)
            self._drop_names(occupied, *moved)
            self._run(f"DELETE FROM documents WHERE {occupied}", *moved)
            return self._run(
                "UPDATE documents SET root_id = ?4, path = CAST(?5 || substr(path, ?6) AS BLOB), "
                "path_key = ?7 || substr(path_key, ?8) WHERE root_id = ?1 AND path >= ?2 AND path < ?3",
                *moved,
                path_key(new),
                len(path_key(old)) + 1,
            )

    def delete_documents(self, document_ids: Iterable[int]) -> None:
        """Files are gone: never found again from now on. What only they used goes with `purge_orphans`."""
        with self.transaction():
            for document_id in document_ids:
                self._drop_names("document_id = ?", document_id)
                self._run("DELETE FROM documents WHERE document_id = ?", document_id)

    def delete_directory(self, root_id: int, path: bytes) -> int:
        """A folder is gone with all below it; returns how many documents that were."""
        with self.transaction():
            below = "root_id = ?1 AND path >= ?2 AND path < ?3"
            self._drop_names(below, root_id, path + b"/", path + b"0")
            return self._run(f"DELETE FROM documents WHERE {below}", root_id, path + b"/", path + b"0")

    def _put_name(self, document_id: int) -> None:
        """Keep the index of names in step with the document's file name and title; writes only where they changed."""
        row = self._row(
            "SELECT path, coalesce(title, ''), text FROM documents d LEFT JOIN contents c ON c.content_id = "
            "d.content_id "
            "LEFT JOIN name_texts n ON n.document_id = d.document_id WHERE d.document_id = ?",
            document_id,
        )
        assert row is not None and isinstance(row[0], bytes) and isinstance(row[1], str)
        name = row[0].rsplit(b"/", 1)[-1].decode("utf-8", "replace")
        text = prepare_text(f"{name}\n{row[1]}")
        if text == row[2]:
            return
        if row[2] is not None:
            self._drop_names("document_id = ?", document_id)
        self._run("INSERT INTO names (rowid, text) VALUES (?, ?)", document_id, text)
        self._run("INSERT INTO name_texts (document_id, text) VALUES (?, ?)", document_id, text)

    def _drop_names(self, where: str, *values: int | bytes) -> None:
        """Take the names of the documents that match `where` out of the index of names."""
        chosen = f"document_id IN (SELECT document_id FROM documents WHERE {where})"
        self._run(
            f"INSERT INTO names (names, rowid, text) SELECT 'delete', document_id, text FROM name_texts WHERE {chosen}",
            *values,
        )
        self._run(f"DELETE FROM name_texts WHERE {chosen}", *values)


def _id(value: object) -> int:
    assert isinstance(value, int)
    return value


def root_of(row: tuple[Any, ...]) -> Root:
    """A row of ROOT_COLUMNS as a record."""
    root_id, path, status, reason, paused, identity, settings, scanned_at_s = row
    return Root(root_id, path, status, reason, bool(paused), identity, settings, scanned_at_s)


def document_of(row: tuple[Any, ...]) -> Document:
    """A row of DOCUMENT_COLUMNS as a record."""
    document_id, root_id, path, size, mtime_ns, content_id, extractor, complete = row
    return Document(document_id, root_id, path, size, mtime_ns, content_id, extractor, bool(complete))
