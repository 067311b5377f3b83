"""An index made of a few words, and a model that understands a few synonyms."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from engine.kernels import pack_sign_bits
from engine.search.candidates import F32, I32
from indexer.store.records import ModelStamp, NewChunk, NewVector, text_hash
from indexer.store.writer import Writer

DIM = 64
STAMP = ModelStamp("toy-1", "toy", "fp32", DIM, DIM)
SYNONYMS = {"automobile": "car", "vehicle": "car", "physician": "doctor", "feline": "cat"}


@dataclass(frozen=True)
class ToyTokens:
    ids: NDArray[np.int32]
    vectors: F32


class ToyEncoder:
    """Every word is a random direction, synonyms share theirs; a text is the mean of its words."""

    calls = 0

    def encode_all(
        self, texts: Sequence[str], *, role: Literal["query", "document"] | None = None
    ) -> tuple[F32, list[ToyTokens]]:
        self.calls += 1
        tokens = [self._tokens(text) for text in texts]
        return np.stack([_unit(each.vectors[1:-1].sum(axis=0)) for each in tokens]), tokens

    def token_spans(self, text: str) -> I32:
        return np.array([match.span() for match in re.finditer(r"\w+", text)], np.int32).reshape(-1, 2)

    def _tokens(self, text: str) -> ToyTokens:
        words = ["<s>", *(text[start:end].lower() for start, end in self.token_spans(text)), "</s>"]
        ids = np.array([zlib.crc32(word.encode()) & 0xFFFF for word in words], np.int32)
        return ToyTokens(ids, np.stack([_direction(SYNONYMS.get(word, word)) for word in words]))


def _direction(word: str) -> F32:
    return _unit(np.random.default_rng(zlib.crc32(word.encode())).standard_normal(DIM).astype(np.float32))


def _unit(vector: F32) -> F32:
    return (vector / max(float(np.linalg.norm(vector)), 1e-9)).astype(np.float32)


def add_file(
    writer: Writer,
    root_id: int,
    path: str | bytes,
    *texts: str,
    title: str = "",
    mtime_ns: int = 0,
    extractor: str = "text/1",
    embed: bool = True,
) -> int:
    """The words of one file, a chunk for each text, in one transaction; returns its document_id."""
    name = path.encode() if isinstance(path, str) else path
    chunks, at = [], 0
    for text in texts:
        chunks.append(NewChunk(at, at + len(text), text, line=1, embed=embed))
        at += len(text) + 1
    with writer.transaction():
        content = writer.begin_content(text_hash(repr(texts)), extractor, title=title)
        if not content.complete:
            writer.add_chunks(content.content_id, chunks[content.chunk_count :])
            writer.finish_content(content.content_id, char_count=max(at - 1, 0))
        return writer.put_document(root_id, name, size=at, mtime_ns=mtime_ns, content_id=content.content_id)


def embed_pending(writer: Writer, stamp: ModelStamp = STAMP, *, limit: int = 100_000) -> int:
    """Vectors for what waits; returns how many texts were embedded."""
    generation = writer.use_model(stamp).generation
    waiting = writer.pending_chunks(limit)
    writer.add_vectors(generation, [new_vector(chunk.text) for chunk in waiting])
    return len(waiting)


def new_vector(text: str) -> NewVector:
    """What the toy model makes of a text."""
    vectors, tokens = ToyEncoder().encode_all([text], role="document")
    return NewVector(text_hash(text), vectors[0], pack_sign_bits(np.ascontiguousarray(tokens[0].vectors[1:-1])))


def rows_in(writer: Writer) -> dict[str, int]:
    """How many rows each table of ours holds, those of the word indexes left out."""
    names = writer.db.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' "
        "AND name NOT GLOB 'words_*' AND name NOT GLOB 'stems_*' AND name NOT GLOB 'names_*' "
        "AND name NOT LIKE 'sqlite%'"
    ).fetchall()
    return {name: writer.db.execute(f"SELECT count(*) FROM {name}").get for (name,) in names}
