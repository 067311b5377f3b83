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


@dataclass(frozen=True)
class Lookup:
    """out[t] = table[mapping[ids[t]]] * weights[ids[t]]; without a mapping the ids are the rows."""

    out: Value
    table: str
    mapping: str | None
    weights: str | None
    inputs: tuple[Value, ...] = ()

    def reference(self, run: ReferenceRun) -> NDArray[np.float32]:
        ids = run.batch.ids
        rows = ids if self.mapping is None else run.weights[self.mapping].index()[ids]
        out = run.weights[self.table].rows(rows)
        return out if self.weights is None else out * run.weights[self.weights].dense()[ids][:, None]

    def compile(self, compiler: Compiler) -> None:
        compiler.lookup(self.out, self.table, self.mapping, self.weights)


def lookup(g: Graph, *, table: str, mapping: str | None = None, weights: str | None = None) -> Value:
    """The batch's tokens in a table whose rows may be shared: (tokens, hidden)."""
    return g.add(Lookup(g.value(g.shapes[table][1]), table, mapping, weights))
