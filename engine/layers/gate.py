"""Gated linear units (Shazeer 2020): one half of the columns, activated, times the other half. And the plain sum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.layers.activation import ACTIVATIONS
from engine.plan import Graph, ReferenceRun, Value

if TYPE_CHECKING:
    from engine.kernels.native import Compiler


@dataclass(frozen=True)
class Gate:
    """out (rows, n) = activation(x[:, :n]) * x[:, n:]."""

    x: Value
    out: Value
    activation: str

    @property
    def inputs(self) -> tuple[Value, ...]:
        return (self.x,)

    def reference(self, run: ReferenceRun) -> NDArray[np.float32]:
        x, n = run[self.x], self.out.width
        return ACTIVATIONS[self.activation](x[:, :n]) * x[:, n:]

    def compile(self, compiler: Compiler) -> None:
        compiler.gate(self.x, self.out, self.activation)


def gate(g: Graph, x: Value, activation: str) -> Value:
    """(rows, 2 n) -> (rows, n)."""
    return g.add(Gate(x, g.value(x.width // 2, x.rows), activation))


@dataclass(frozen=True)
class Sum:
    """out = a + b."""

    a: Value
    b: Value
    out: Value

    @property
    def inputs(self) -> tuple[Value, ...]:
        return (self.a, self.b)

    def reference(self, run: ReferenceRun) -> NDArray[np.float32]:
        return run[self.a] + run[self.b]

    def compile(self, compiler: Compiler) -> None:
        compiler.add(self.a, self.b, self.out)


def add(g: Graph, a: Value, b: Value) -> Value:
    """The sum of two values of one shape."""
    return g.add(Sum(a, b, g.value(a.width, a.rows)))
