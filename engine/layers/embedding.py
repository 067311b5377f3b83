"""Embedding lookup: the sum of a word, a position and a token-type row for each token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.plan import Graph, ReferenceRun, Value

if TYPE_CHECKING:
    from engine.kernels.native import Compiler


@dataclass(frozen=True)
class Embedding:
    """out[t] = (word[ids[t]] + position[positions[t]] + token_type[types[t]]) * factor."""

    out: Value
    word: str
    position: str | None
    token_type: str | None
    factor: float
    inputs: tuple[Value, ...] = ()

    def reference(self, run: ReferenceRun) -> NDArray[np.float32]:
        out = run.weights[self.word].rows(run.batch.ids)
        if self.position is not None:
            out = out + run.weights[self.position].rows(run.batch.positions)
        if self.token_type is not None:
            out = out + run.weights[self.token_type].rows(run.batch.types)
        return out if self.factor == 1 else out * np.float32(self.factor)

    def compile(self, compiler: Compiler) -> None:
        compiler.embedding(self.out, self.word, self.position, self.token_type, self.factor)


def embedding(
    g: Graph, *, word: str, position: str | None = None, token_type: str | None = None, factor: float = 1.0
) -> Value:
    """Look up the batch's tokens: (tokens, hidden)."""
    return g.add(Embedding(g.value(g.shapes[word][1]), word, position, token_type, factor))
