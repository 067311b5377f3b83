"""The one write connection. Its methods come from one module a concern:

queue.py: enqueue, take, done, postpone, failures
documents.py: roots, documents, moves, deletions
contents.py: find_content, begin_content, add_chunks, finish_content
vectors.py: use_model, pending_chunks, add_vectors, forgo_vectors
segments.py: the compact code
maintenance.py: purge_orphans, tidy, quick_check, counts, stamps

A file's words are one transaction:

    with writer.transaction():
        content = writer.begin_content(content_hash, extractor, title=title)
        writer.add_chunks(content.content_id, chunks[content.chunk_count:])
        writer.finish_content(content.content_id, char_count=len(text))
        writer.put_document(root_id, path, size=size, mtime_ns=mtime_ns, content_id=content.content_id)
        writer.clear_failure(root_id, path)
        writer.done([item])

A big file has the same calls without the outer transaction, add_chunks in parts. Its meaning follows:

    generation = writer.use_model(stamp)
    while batch := writer.pending_chunks(limit):
        writer.add_vectors(generation.generation, embed(batch))
"""

from __future__ import annotations

import unicodedata
from pathlib import Path
from types import TracebackType
from typing import Self

from engine.search.lexical import PREPARE_VERSION
from indexer.store.documents import DocumentTables
from indexer.store.maintenance import MaintenanceTables
from indexer.store.open import open_writer
from indexer.store.queue import QueueTables

PREPARED_STAMP = "prepared_by"
# Normalisation follows the Unicode tables of the Python at hand.
PREPARED_BY = f"{PREPARE_VERSION} unicode {unicodedata.unidata_version}"


class Writer(QueueTables, DocumentTables, MaintenanceTables):
    """All writing to the index. Thread-safe: a transaction holds the lock to its end."""

    @classmethod
    def open(cls, data_dir: Path) -> Self:
        """Open or create the index of a data folder. Raises StoreError and its kin with a sentence.

        Where text is prepared otherwise than when the index was written, the word indexes are filled anew first.
        """
        writer = cls(open_writer(data_dir), data_dir)
        with writer.transaction():
            prepared = writer.stamp(PREPARED_STAMP)
            if prepared not in (None, PREPARED_BY):
                writer.rebuild_words()
            if prepared != PREPARED_BY:
                writer.set_stamp(PREPARED_STAMP, PREPARED_BY)
        return writer

    def close(self) -> None:
        """Close the connection; what was not committed is rolled back."""
        with self._lock:
            self.db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
