"""Texts to vectors: a model folder, its tokenizer and a compiled plan behind one thread-safe object."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from engine.batch import Batch, cut
from engine.catalog import model_path
from engine.computation import Computation
from engine.errors import EngineError
from engine.folder import ModelFolder
from engine.modules import Dense
from engine.prompts import Role
from engine.reading import Reading, reader_of
from engine.weights.packed import load
from engine.weights.safetensors import Weights

F32 = NDArray[np.float32]

PRECISIONS = ("auto", "fp32", "int8")

# Goes into every fingerprint: raised when a change of the engine changes vectors beyond rounding.
NUMERICS = 1


@dataclass(frozen=True)
class TokenVectors:
    """ids: (t,) int32, special tokens included; vectors: (t, hidden) float32, not normalised."""

    ids: NDArray[np.int32]
    vectors: F32


class Encoder:
    """An embedding model. Thread-safe; results do not depend on batch, order or workers.

    name, dim (width of a vector), hidden (width of a token vector), max_tokens, special_tokens, precision ("fp32" or
    "int8", what is really computed), workers (threads at most), isa (the kernels in use).
    """

    def __init__(self, folder: ModelFolder, weights: Weights, precision: Literal["fp32", "int8"], workers: int):
        self.name, self.precision, self.workers = folder.name, precision, workers
        self._folder, self._weights = folder, weights
        offset = folder.config.get("position_offset")
        self._padding_id = None if offset is None else offset - 1
        self._tokenizer = folder.tokenizer()
        self._reader = reader_of(folder, self._tokenizer)
        self.max_tokens, self.special_tokens = self._reader.max_tokens, self._reader.special_tokens
        loaded = load(folder.parameters(), weights, precision, folder.backbone.family.prefixes)
        plan = folder.plan()
        self.dim, self.hidden = plan.pooled.width, plan.tokens.width
        self._computation = Computation(plan, loaded, workers)
        self.isa = self._computation.isa

    @classmethod
    def load(cls, model: str | Path, *, precision: str = "auto", workers: int | None = None) -> Encoder:
        """Load a model by catalog name or folder.

        precision: "fp32", "int8", or "auto" (int8). workers: threads at most; None leaves one core free.
        Raises ModelError (what cannot be loaded and why) and EngineError (arguments).
        """
        if precision not in PRECISIONS:
            raise EngineError(f"Precision {precision!r} is not one of {', '.join(PRECISIONS)}.")
        if workers is not None and workers < 1:
            raise EngineError(f"A worker count of {workers} is not possible; at least 1 is needed.")
        folder = ModelFolder.open(model_path(model))
        weights = folder.weights()
        chosen: Literal["fp32", "int8"] = "fp32" if precision == "fp32" else "int8"
        return cls(folder, weights, chosen, workers or max(1, (os.cpu_count() or 1) - 1))

    @cached_property
    def fingerprint(self) -> str:
        """Hex digest that changes whenever the model's vectors would change; two equal ones may be compared."""
        folder = self._folder
        parts: list[Any] = [NUMERICS, self._weights.fingerprint, self.precision, folder.pooling, folder.normalize]
        parts += [folder.max_tokens, folder.prompts["query"], folder.prompts["document"]]
        # Only where they are: a model without them keeps its fingerprint, and so its index.
        parts += [folder.head] * any(isinstance(module, Dense) for module in folder.head)
        parts += ["without prompt"] * (not folder.include_prompt) + [folder.late] * (folder.late is not None)
        tokenizer = hashlib.sha256(self._tokenizer.published()).hexdigest()
        return hashlib.sha256(repr([*parts, tokenizer]).encode()).hexdigest()[:32]

    @property
    def chunk_tokens(self) -> int:
        """Tokens of text that fit one document: max_tokens less the special tokens and the document prefix."""
        prefix = self._reader.prefix("document")
        return self.max_tokens - self.special_tokens - (self._tokenizer.count(prefix) if prefix else 0)

    def encode(self, texts: Sequence[str], *, role: Role | None = None, prompt: str | None = None) -> F32:
        """(n, dim) float32, one row a text, of unit length where the model says so.

        role adds the model's prefix for it, none the model's default one; prompt is a prefix to use instead.
        Raises EngineError where the model has token vectors only.
        """
        self._need_vectors()
        reading = self._reader.read(texts, role, prompt)
        rows = [pooled for pooled, _, _ in self._batches(reading, want_tokens=False)]
        return np.concatenate(rows) if rows else np.zeros((0, self.dim), np.float32)

    def encode_tokens(self, texts: Sequence[str], *, role: Role | None = None) -> list[TokenVectors]:
        """The last layer's token vectors of each text.

        Of a model of late interaction, which needs a role: the projected ones, of unit length; those of a query's mask
        tokens among them, those of tokens that do not count (a document's punctuation) not.
        """
        return self._encode_all(texts, role)[1]

    def encode_all(self, texts: Sequence[str], *, role: Role | None = None) -> tuple[F32, list[TokenVectors]]:
        """`encode` and `encode_tokens` from one forward pass."""
        self._need_vectors()
        return self._encode_all(texts, role)

    def token_spans(self, text: str) -> NDArray[np.int32]:
        """(t, 2) int32 start and end characters of the tokens of the whole text: nothing cut, no special tokens."""
        return self._tokenizer.spans(text)

    def close(self) -> None:
        """Let go of the weights; the encoder cannot be used afterwards."""
        self._computation.close()
        self._weights.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _need_vectors(self) -> None:
        if self._folder.late is not None:
            raise EngineError(f"{self.name} has a vector for every token and none for a whole text.")

    def _encode_all(self, texts: Sequence[str], role: Role | None) -> tuple[F32, list[TokenVectors]]:
        reading = self._reader.read(texts, role)
        rows, tokens = [np.zeros((0, self.dim), np.float32)], list[TokenVectors]()
        for pooled, states, batch in self._batches(reading, want_tokens=True):
            rows.append(pooled)
            for start, end in pairwise(batch.starts):
                part = slice(start, end) if reading.kept is None else start + np.flatnonzero(reading.kept[len(tokens)])
                tokens.append(TokenVectors(batch.ids[part], states[part]))
        return np.concatenate(rows), tokens

    def _batches(self, reading: Reading, *, want_tokens: bool) -> Iterator[tuple[F32, F32, Batch]]:
        if self._computation.closed:
            raise EngineError(f"The encoder of {self.name} was closed.")
        for part in cut([len(ids) for ids in reading.ids]):
            visible = None if reading.visible is None else reading.visible[part]
            batch = Batch.of(reading.ids[part], self._padding_id, reading.prompt, visible=visible)
            pooled, states = self._computation.run(batch, want_tokens=want_tokens)
            yield pooled, states, batch
