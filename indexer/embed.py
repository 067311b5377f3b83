"""The meaning stage: texts that wait for a vector, in batches across files, through one forward pass each."""

from __future__ import annotations

import numpy as np

from engine import Encoder, EngineError
from engine.kernels import pack_sign_bits
from indexer.store.records import Generation, ModelStamp, NewVector, PendingChunk
from indexer.store.writer import Writer

CHARS_PER_TOKEN = 4  # to size a batch without tokenising twice
MOST_TEXTS = 128  # in one batch
EMBEDDED_STAMP = "texts_embedded"


class MeaningStage:
    """Owns the encoder and the generation that its vectors go to.

    Raises EngineError where the model cannot embed at all; the index is as it was then.
    """

    def __init__(self, writer: Writer, encoder: Encoder, model: str, batch_tokens: int) -> None:
        self._writer = writer
        self._encoder = encoder
        self._batch_tokens = batch_tokens
        self._leading, self._trailing = _special_rows(encoder)
        stamp = ModelStamp(encoder.fingerprint, model, encoder.precision, encoder.dim, encoder.hidden)
        self._generation: Generation = writer.use_model(stamp)
        self.last_chunk_id = 0  # of the batch that was embedded last

    def step(self) -> int:
        """Embed one batch and commit it; returns how many texts got a vector or were given up, 0 when none waits."""
        batch = self._take_batch()
        if not batch:
            return 0
        self.last_chunk_id = batch[-1].chunk_id
        vectors = self._embed(batch)
        embedded = int(self._writer.stamp(EMBEDDED_STAMP) or 0) + len(vectors)
        done = {vector.text_hash for vector in vectors}
        given_up = [chunk.chunk_id for chunk in batch if chunk.text_hash not in done]
        with self._writer.transaction():
            self._writer.add_vectors(self._generation.generation, vectors)
            if given_up:
                self._writer.forgo_vectors(given_up)
            self._writer.set_stamp(EMBEDDED_STAMP, str(embedded))
        return len(batch)

    def close(self) -> None:
        """Let go of the weights."""
        self._encoder.close()

    def _take_batch(self) -> list[PendingChunk]:
        batch: list[PendingChunk] = []
        chars_left = self._batch_tokens * CHARS_PER_TOKEN
        for chunk in self._writer.pending_chunks(MOST_TEXTS):
            chars_left -= len(chunk.text)
            if batch and chars_left < 0:
                break
            batch.append(chunk)
        return batch

    def _embed(self, batch: list[PendingChunk]) -> list[NewVector]:
        texts = [chunk.text for chunk in batch]
        try:
            pooled, tokens = self._encoder.encode_all(texts, role="document")
        except EngineError:
            if len(batch) == 1:
                return []  # the one text that the model cannot take; it stays found by its words
            return [vector for chunk in batch for vector in self._embed([chunk])]
        vectors: list[NewVector] = []
        for chunk, vector, token in zip(batch, pooled, tokens, strict=True):
            rows = token.vectors[self._leading : len(token.ids) - self._trailing]
            vectors.append(NewVector(chunk.text_hash, vector, pack_sign_bits(np.ascontiguousarray(rows))))
        return vectors


def _special_rows(encoder: Encoder) -> tuple[int, int]:
    """How many rows of a text's token vectors come before and after its own tokens: specials and the model's prefix."""
    empty, letter = (list(tokens.ids) for tokens in encoder.encode_tokens(["", "a"], role="document"))
    leading = 0
    while leading < len(empty) and empty[leading] == letter[leading]:
        leading += 1
    return leading, len(empty) - leading
