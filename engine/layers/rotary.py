"""Rotary position embedding of the query and key heads (Su et al. 2021), halves paired as GPT-NeoX does."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.layers.heads import Heads
from engine.plan import Graph, ReferenceRun, Value

if TYPE_CHECKING:
    from engine.kernels.native import Compiler

F32 = NDArray[np.float32]


@dataclass(frozen=True)
class Rotary:
    """Query and key heads rotated by their position, after an RMSNorm of each head where the model has one.

    cosine, sine: (positions, width / 2) float32. norms: names of the query and key norm weights, each plus `offset`.
    """

    qkv: Value
    out: Value
    heads: Heads
    cosine: F32 = field(compare=False)
    sine: F32 = field(compare=False)
    norms: tuple[str, str] | None
    eps: float
    offset: float

    @property
    def inputs(self) -> tuple[Value, ...]:
        return (self.qkv,)

    def reference(self, run: ReferenceRun) -> F32:
        rows, (count, shared, width) = run.batch.tokens, (self.heads.query, self.heads.key_value, self.heads.width)
        out = run[self.qkv].reshape(rows, -1, width).copy()
        for part, name in ((slice(0, count), 0), (slice(count, count + shared), 1)):
            x = out[:, part]
            if self.norms is not None:
                mean = np.square(x).mean(axis=2, keepdims=True, dtype=np.float32)
                weight = run.weights[self.norms[name]].dense() + np.float32(self.offset)
                x = x / np.sqrt(mean + np.float32(self.eps)) * weight
            cosine, sine = (table[run.batch.positions][:, None, :] for table in (self.cosine, self.sine))
            first, second = x[:, :, : width // 2], x[:, :, width // 2 :]
            out[:, part] = np.concatenate([first * cosine - second * sine, second * cosine + first * sine], axis=2)
        return out.reshape(rows, -1)

    def compile(self, compiler: Compiler) -> None:
        norms = None
        if self.norms is not None:
            query, key = (compiler.weights[name].dense() + np.float32(self.offset) for name in self.norms)
            norms = query, key
        compiler.rotary(self.qkv, self.out, self.heads, self.cosine, self.sine, norms, self.eps)


def rotation_table(positions: int, width: int, theta: float, factor: float = 1.0) -> tuple[F32, F32]:
    """(positions, width / 2) float32 cosines and sines of position * theta^(-2i / width) / factor.

    Frequencies and angles are rounded to float32 on the way, as the reference classes compute them.
    """
    frequencies = 1.0 / theta ** (np.arange(0, width, 2).astype(np.float32) / np.float32(width))
    angles = np.outer(np.arange(positions, dtype=np.float32), (frequencies / factor).astype(np.float32))
    wide = angles.astype(np.float32).astype(np.float64)
    return np.cos(wide).astype(np.float32), np.sin(wide).astype(np.float32)


def rotary(
    g: Graph,
    qkv: Value,
    heads: Heads,
    table: tuple[F32, F32],
    *,
    norms: tuple[str, str] | None = None,
    eps: float = 0.0,
    offset: float = 0.0,
) -> Value:
    """(tokens, heads.columns) -> the same with query and key heads rotated."""
    return g.add(Rotary(qkv, g.value(qkv.width), heads, *table, norms, eps, offset))
