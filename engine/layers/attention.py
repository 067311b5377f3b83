"""Scaled dot-product attention inside each text (Vaswani et al. 2017, section 3.2), all heads at once."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.layers.heads import Heads
from engine.plan import Graph, ReferenceRun, Value

if TYPE_CHECKING:
    from engine.kernels.native import Compiler
    from engine.weights.loaded import Loaded

F32 = NDArray[np.float32]


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
    """qkv: (tokens, heads.columns); out: (tokens, query heads * width).

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

    @property
    def inputs(self) -> tuple[Value, ...]:
        return (self.qkv,)

    def reference(self, run: ReferenceRun) -> F32:
        tokens, (count, shared, width) = run.batch.tokens, (self.heads.query, self.heads.key_value, self.heads.width)
        columns = run[self.qkv].reshape(tokens, -1, width).transpose(1, 0, 2)
        q, k, v = columns[:count], columns[count : count + shared], columns[count + shared :]
        k, v = np.repeat(k, self.heads.group, axis=0), np.repeat(v, self.heads.group, axis=0)
        out = np.empty((count, tokens, width), np.float32)
        for i, (start, end) in enumerate(pairwise(run.batch.starts)):
            scores = q[:, start:end] @ k[:, start:end].transpose(0, 2, 1) * np.float32(self.scale)
            seen = int(end - start) if run.batch.visible is None else int(run.batch.visible[i])
            scores = self._mask(scores, int(end - start), seen, run.weights)
            top = scores.max(axis=2, keepdims=True, initial=-np.inf)
            weights = np.exp(scores - np.where(np.isfinite(top), top, 0))
            weights /= np.maximum(weights.sum(axis=2, keepdims=True), np.finfo(np.float32).tiny)
            out[:, start:end] = weights @ v[:, start:end]
        return out.transpose(1, 0, 2).reshape(tokens, count * width)

    def _mask(self, scores: F32, length: int, seen: int, weights: dict[str, Loaded]) -> F32:
        distance = np.arange(length)[None, :] - np.arange(length)[:, None]  # key - query
        if self.bias is not None:
            by_distance = self.bias.by_distance(weights)
            scores = scores + by_distance[:, distance + (by_distance.shape[1] - 1) // 2]
        hidden = np.repeat(np.arange(length)[None, :] >= seen, length, axis=0)
        if self.causal:
            hidden |= distance > 0
        if self.window is not None:
            hidden |= np.abs(distance) > self.window
        return np.where(hidden, np.float32(-np.inf), scores)

    def compile(self, compiler: Compiler) -> None:
        bias = None if self.bias is None else self.bias.by_distance(compiler.weights)
        compiler.attention(self.qkv, self.out, self.heads, self.scale, self.causal, self.window, bias)


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
