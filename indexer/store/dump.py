"""A canonical picture of the index, to compare one that was killed often with one that was built in peace.

It goes by root, path and ordinal and leaves out all that may differ between equals: row ids, times, generations, queue.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from indexer.store.reader import Reader


def dump(reader: Reader) -> Iterator[dict[str, Any]]:
    """One JSON-ready dict a document, chunk, failure, in canonical order, and last what must be empty in a sound "
    "index."""
    with reader.snapshot():
        yield from list(_documents(reader))
        yield from list(_failures(reader))
        yield {"strays": _strays(reader)}


def digest(reader: Reader) -> str:
    """One hash of the whole picture."""
    return hashlib.blake2b(repr(list(dump(reader))).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def _documents(reader: Reader) -> Iterator[dict[str, Any]]:
    for root, path, size, content_id, content_hash, extractor, title, chars, complete in reader.rows(
        "SELECT r.path, d.path, d.size, c.content_id, c.content_hash, c.extractor, c.title, c.char_count, c.complete "
        "FROM documents d JOIN roots r USING (root_id) LEFT JOIN contents c ON c.content_id = d.content_id ORDER BY "
        "r.path, d.path"
    ):
        yield {
            "root": root.decode("utf-8", "surrogateescape"),
            "path": path.decode("utf-8", "surrogateescape"),
            "size": size,
            "content": None if content_hash is None else content_hash.hex(),
            "extractor": extractor,
            "title": title,
            "chars": chars,
            "complete": complete,
            "chunks": [] if content_id is None else _chunks(reader, content_id),
        }


def _chunks(reader: Reader, content_id: int) -> list[dict[str, Any]]:
    rows = reader.rows(
        "SELECT ordinal, start_char, end_char, page, line, k.text, embed, length, counts, vector, bits, "
        "EXISTS (SELECT 1 FROM segments s JOIN segment_ids i USING (segment_id) WHERE s.generation = v.generation "
        "AND s.first_id <= v.vector_id AND s.last_id >= v.vector_id) "
        "FROM chunks k LEFT JOIN term_counts t USING (chunk_id) LEFT JOIN vectors v ON v.text_hash = k.text_hash "
        "AND v.generation = (SELECT generation FROM generations WHERE state = 'active') "
        "LEFT JOIN token_bits USING (vector_id) WHERE k.content_id = ? ORDER BY ordinal",
        content_id,
    )
    names = ("ordinal", "start", "end", "page", "line", "text", "embed", "terms", "counts", "vector", "bits", "scanned")
    return [{name: _short(value) for name, value in zip(names, row, strict=True)} for row in rows]


def _failures(reader: Reader) -> Iterator[dict[str, Any]]:
    for root, path, kind in reader.rows(
        "SELECT r.path, f.path, kind FROM failures f JOIN roots r USING (root_id) ORDER BY r.path, f.path"
    ):
        yield {
            "root": root.decode("utf-8", "surrogateescape"),
            "failed": path.decode("utf-8", "surrogateescape"),
            "kind": kind,
        }


def _strays(reader: Reader) -> dict[str, int]:
    """Rows that nothing points to; each count is 0 once the orphans are purged."""
    queries = {
        "contents": "SELECT count(*) FROM contents WHERE uses <> (SELECT count(*) FROM documents d WHERE "
        "d.content_id = contents.content_id) OR uses = 0",
        "chunks": "SELECT count(*) FROM chunks WHERE content_id NOT IN (SELECT content_id FROM contents)",
        "term_counts": "SELECT count(*) FROM term_counts WHERE chunk_id NOT IN (SELECT chunk_id FROM chunks)",
        "pending": "SELECT count(*) FROM pending WHERE chunk_id NOT IN (SELECT chunk_id FROM chunks)",
        "vectors": "SELECT count(*) FROM vectors WHERE text_hash NOT IN (SELECT text_hash FROM chunks WHERE embed = 1)",
        "token_bits": "SELECT count(*) FROM token_bits WHERE vector_id NOT IN (SELECT vector_id FROM vectors)",
        "segment_ids": "SELECT count(*) FROM segment_ids WHERE segment_id NOT IN (SELECT segment_id FROM segments)",
        "live_codes": "SELECT (SELECT coalesce(sum(rows - dead), 0) FROM segments JOIN segment_ids USING "
        "(segment_id)) - (SELECT count(*) FROM vectors)",
        "names": "SELECT count(*) FROM name_texts WHERE document_id NOT IN (SELECT document_id FROM documents)",
    }
    return {name: int(reader.rows(sql)[0][0]) for name, sql in queries.items()}


def _short(value: object) -> object:
    """Blobs by their hash."""
    return hashlib.blake2b(value, digest_size=8).hexdigest() if isinstance(value, bytes) else value
