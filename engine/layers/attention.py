"""Scaled dot-product attention inside each text (Vaswani et al. 2017, section 3.2), all heads at once."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from engine.layers.heads import Heads
from engine.plan import Graph, ReferenceRun, Value

if TYPE_CHECKING:
    from engine.kernels.native import Compiler
    from engine.weights.loaded import Loaded

F32 = NDArray[np.float32]

# Which rows of a text are queries: all of them, or one.
QueryRow = Literal["every", "first", "after prompt", "last"]


@dataclass(frozen=True)
class RelativeBias:
    """A learned number for each head and distance: row `buckets[j - i + longest - 1]` of a table for query i, key j.

    name: the table's parameter, (buckets, query heads). buckets: (2 * longest - 1,) int32.
    """

    name: str
    buckets: NDArray[np.int32] = field(compare=False)

    def by_distance(self, weights: dict[str, Loaded]) -> F32:
        """(query heads, 2 * longest - 1) float32."""
        return np.ascontiguousarray(weights[self.name].rows(self.buckets).T)


@dataclass(frozen=True)
class Attention:
    """qkv: (tokens, heads.columns); out: (tokens, query heads * width), or (texts, ...) where one row is the query.

    causal: a query sees no later key. window: it sees keys at most that many tokens away, both ways.
    bias: added to the scaled scores, by distance. A query that sees no key at all attends to nothing: zeros.
    """

    qkv: Value
    out: Value
    heads: Heads
    scale: float
    causal: bool
    window: int | None
    bias: RelativeBias | None
    query_row: QueryRow = "every"

    @property
    def inputs(self) -> tuple[Value, ...]:
        return (self.qkv,)

    def reference(self, run: ReferenceRun) -> F32:
        tokens, (count, shared, width) = run.batch.tokens, (self.heads.query, self.heads.key_value, self.heads.width)
        columns = run[self.qkv].reshape(tokens, -1, width).transpose(1, 0, 2)
        q, k, v = columns[:count], columns[count : count + shared], columns[count + shared :]
        k, v = np.repeat(k, self.heads.group, axis=0), np.repeat(v, self.heads.group, axis=0)
        every = self.query_row == "every"
        out = np.empty((count, tokens if every else run.batch.texts, width), np.float32)
        for i, (start, end) in enumerate(pairwise(run.batch.starts)):
            queries = self._queries(int(end - start), run.batch.prompt)
            scores = q[:, start:end][:, queries] @ k[:, start:end].transpose(0, 2, 1) * np.float32(self.scale)
            seen = int(end - start) if run.batch.visible is None else int(run.batch.visible[i])
            scores = self._mask(scores, np.arange(end - start), queries, seen, run.weights)
            top = scores.max(axis=2, keepdims=True, initial=-np.inf)
            weights = np.exp(scores - np.where(np.isfinite(top), top, 0))
            weights /= np.maximum(weights.sum(axis=2, keepdims=True), np.finfo(np.float32).tiny)
            out[:, slice(start, end) if every else slice(i, i + 1)] = weights @ v[:, start:end]
        return out.transpose(1, 0, 2).reshape(-1, count * width)

    def _queries(self, length: int, prompt: int) -> slice:
        first = {"every": 0, "first": 0, "after prompt": prompt, "last": length - 1}[self.query_row]
        return slice(first, length if self.query_row == "every" else first + 1)

    def _mask(
        self, scores: F32, keys: NDArray[np.integer], queries: slice, seen: int, weights: dict[str, Loaded]
    ) -> F32:
        distance = keys[None, :] - keys[queries, None]
        if self.bias is not None:
            by_distance = self.bias.by_distance(weights)
            scores = scores + by_distance[:, distance + (by_distance.shape[1] - 1) // 2]
        hidden = np.repeat(keys[None, :] >= seen, len(distance), axis=0)
        if self.causal:
            hidden |= distance > 0
        if self.window is not None:
            hidden |= np.abs(distance) > self.window
        return np.where(hidden, np.float32(-np.inf), scores)

    def compile(self, compiler: Compiler) -> None:
        bias = None if self.bias is None else self.bias.by_distance(compiler.weights)
        compiler.attention(self.qkv, self.out, self.heads, self.scale, self.causal, self.window, bias, self.query_row)


def attention(
    g: Graph,
    qkv: Value,
    heads: Heads,
    *,
    scale: float | None = None,
    causal: bool = False,
    window: int | None = None,
    bias: RelativeBias | None = None,
) -> Value:
    """Attention of every text over its own tokens: (tokens, query heads * width); scale is 1 / sqrt(width) if None."""
    out = g.value(heads.query * heads.width)
    return g.add(Attention(qkv, out, heads, scale or 1.0 / math.sqrt(heads.width), causal, window, bias))
