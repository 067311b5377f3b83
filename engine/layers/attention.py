"""Scaled dot-product attention inside each text (Vaswani et al. 2017, section 3.2), all heads at once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.plan import Graph, ReferenceRun, Value

if TYPE_CHECKING:
    from engine.kernels.native import Compiler


@dataclass(frozen=True)
class Attention:
    """qkv: (tokens, 3 * heads * head_dim), queries, then keys, then values; out: (tokens, heads * head_dim)."""

    qkv: Value
    out: Value
    heads: int
    scale: float

    @property
    def inputs(self) -> tuple[Value, ...]:
        return (self.qkv,)

    def reference(self, run: ReferenceRun) -> NDArray[np.float32]:
        tokens, width = run.batch.tokens, self.out.width
        q, k, v = run[self.qkv].reshape(tokens, 3, self.heads, width // self.heads).transpose(1, 2, 0, 3)
        out = np.empty((self.heads, tokens, width // self.heads), np.float32)
        for start, end in zip(run.batch.starts[:-1], run.batch.starts[1:], strict=True):
            scores = q[:, start:end] @ k[:, start:end].transpose(0, 2, 1) * np.float32(self.scale)
            weights = np.exp(scores - scores.max(axis=2, keepdims=True))
            weights /= weights.sum(axis=2, keepdims=True)
            out[:, start:end] = weights @ v[:, start:end]
        return out.transpose(1, 0, 2).reshape(tokens, width)

    def compile(self, compiler: Compiler) -> None:
        compiler.attention(self.qkv, self.out, self.heads, self.scale)


def attention(g: Graph, qkv: Value, *, heads: int) -> Value:
    """Full attention of every text over its own tokens: (tokens, hidden)."""
    width = qkv.width // 3
    return g.add(Attention(qkv, g.value(width), heads, 1.0 / math.sqrt(width // heads)))
