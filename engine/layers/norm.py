"""Normalisation of rows: LayerNorm with an optional residual added first (Ba et al. 2016), and unit length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.plan import Graph, ReferenceRun, Value

if TYPE_CHECKING:
    from engine.kernels.native import Compiler
    from engine.weights.loaded import Loaded

# The floor under a vector's length before the division, as torch.nn.functional.normalize has it.
MIN_LENGTH = 1e-12


@dataclass(frozen=True)
class LayerNorm:
    """out = (x + residual - mean) / sqrt(variance + eps) * weight (+ bias), mean and biased variance over the row."""

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
        scaled: NDArray[np.float32] = centred / np.sqrt(variance + np.float32(self.eps))
        scaled = scaled * run.weights[f"{self.name}.weight"].dense()
        bias = run.weights.get(f"{self.name}.bias")
        return scaled if bias is None else scaled + bias.dense()

    def compile(self, compiler: Compiler) -> None:
        compiler.layer_norm(self.x, self.residual, self.out, self.name, self.eps)


def layer_norm(g: Graph, x: Value, name: str, eps: float, residual: Value | None = None) -> Value:
    """LayerNorm over the last axis of x (+ residual): same shape."""
    return g.add(LayerNorm(x, residual, g.value(x.width, x.rows), name, eps))


@dataclass(frozen=True)
class RmsNorm:
    """out = rms(x + residual), or with norm_first rms(x) + residual; rms(y) = y / sqrt(mean(y^2) + eps) * weight.

    weight is the parameter plus `offset` (Zhang and Sennrich 2019; Gemma stores its weights less one).
    """

    x: Value
    residual: Value | None
    out: Value
    name: str
    eps: float
    offset: float
    norm_first: bool

    @property
    def inputs(self) -> tuple[Value, ...]:
        return (self.x,) if self.residual is None else (self.x, self.residual)

    def reference(self, run: ReferenceRun) -> NDArray[np.float32]:
        x, added = run[self.x], 0.0 if self.residual is None else run[self.residual]
        if not self.norm_first:
            x = x + added
        mean = np.square(x).mean(axis=1, keepdims=True, dtype=np.float32)
        scaled: NDArray[np.float32] = x / np.sqrt(mean + np.float32(self.eps)) * self._weight(run.weights)
        return scaled + added if self.norm_first else scaled

    def _weight(self, weights: dict[str, Loaded]) -> NDArray[np.float32]:
        return weights[f"{self.name}.weight"].dense() + np.float32(self.offset)

    def compile(self, compiler: Compiler) -> None:
        weight = self._weight(compiler.weights)
        compiler.rms_norm(self.x, self.residual, self.out, weight, self.eps, self.norm_first)


def rms_norm(
    g: Graph,
    x: Value,
    name: str,
    eps: float,
    *,
    residual: Value | None = None,
    offset: float = 0.0,
    norm_first: bool = False,
) -> Value:
    """RMSNorm over the last axis: same shape."""
    return g.add(RmsNorm(x, residual, g.value(x.width, x.rows), name, eps, offset, norm_first))


def of_unit_length(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """(n, k) float32 -> the same rows of length 1; one of length 0 stays as it is."""
    length = np.sqrt(np.square(x).sum(axis=1, keepdims=True, dtype=np.float32))
    unit: NDArray[np.float32] = x / np.maximum(length, np.float32(MIN_LENGTH))
    return unit


@dataclass(frozen=True)
class UnitLength:
    """out = x / max(|x|, 1e-12), row by row."""

    x: Value
    out: Value

    @property
    def inputs(self) -> tuple[Value, ...]:
        return (self.x,)

    def reference(self, run: ReferenceRun) -> NDArray[np.float32]:
        return of_unit_length(run[self.x])

    def compile(self, compiler: Compiler) -> None:
        compiler.unit_length(self.x, self.out)


def unit_length(g: Graph, x: Value) -> Value:
    """Rows of x scaled to length 1."""
    return g.add(UnitLength(x, g.value(x.width, x.rows)))
