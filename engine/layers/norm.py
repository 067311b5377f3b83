"""Normalisation of rows: LayerNorm with an optional residual added first (Ba et al. 2016), and unit length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.plan import Graph, ReferenceRun, Value

if TYPE_CHECKING:
    from engine.kernels.native import Compiler

# The floor under a vector's length before the division, as torch.nn.functional.normalize has it.
MIN_LENGTH = 1e-12


@dataclass(frozen=True)
class LayerNorm:
    """out = (x + residual - mean) / sqrt(variance + eps) * weight + bias, mean and biased variance over the row."""

    x: Value
    residual: Value | None
    out: Value
    name: str
    eps: float

    @property
    def inputs(self) -> tuple[Value, ...]:
        return (self.x,) if self.residual is None else (self.x, self.residual)

    def reference(self, run: ReferenceRun) -> NDArray[np.float32]:
        x = run[self.x] if self.residual is None else run[self.x] + run[self.residual]
        centred = x - x.mean(axis=1, keepdims=True, dtype=np.float32)
        variance = np.square(centred).mean(axis=1, keepdims=True, dtype=np.float32)
        weight, bias = run.weights[f"{self.name}.weight"].dense(), run.weights[f"{self.name}.bias"].dense()
        scaled: NDArray[np.float32] = centred / np.sqrt(variance + np.float32(self.eps)) * weight + bias
        return scaled

    def compile(self, compiler: Compiler) -> None:
        compiler.layer_norm(self.x, self.residual, self.out, self.name, self.eps)


def layer_norm(g: Graph, x: Value, name: str, eps: float, residual: Value | None = None) -> Value:
    """LayerNorm over the last axis of x (+ residual): same shape."""
    return g.add(LayerNorm(x, residual, g.value(x.width, x.rows), name, eps))


@dataclass(frozen=True)
class UnitLength:
    """out = x / max(|x|, 1e-12), row by row."""

    x: Value
    out: Value

    @property
    def inputs(self) -> tuple[Value, ...]:
        return (self.x,)

    def reference(self, run: ReferenceRun) -> NDArray[np.float32]:
        x = run[self.x]
        length = np.sqrt(np.square(x).sum(axis=1, keepdims=True, dtype=np.float32))
        unit: NDArray[np.float32] = x / np.maximum(length, np.float32(MIN_LENGTH))
        return unit

    def compile(self, compiler: Compiler) -> None:
        compiler.unit_length(self.x, self.out)


def unit_length(g: Graph, x: Value) -> Value:
    """Rows of x scaled to length 1."""
    return g.add(UnitLength(x, g.value(x.width, x.rows)))
