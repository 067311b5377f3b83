"""Linear layer y = x W^T + b with an optional activation on the result."""

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
class Linear:
    """out = activation(x @ weight.T + bias); weight (n, k) in float32 panels or in int8 groups of 64 inputs."""

    x: Value
    out: Value
    name: str
    bias: bool
    activation: str | None

    @property
    def inputs(self) -> tuple[Value, ...]:
        return (self.x,)

    def reference(self, run: ReferenceRun) -> NDArray[np.float32]:
        y = run.weights[f"{self.name}.weight"].product(run[self.x])
        if self.bias:
            y = y + run.weights[f"{self.name}.bias"].dense()
        return y if self.activation is None else ACTIVATIONS[self.activation](y)

    def compile(self, compiler: Compiler) -> None:
        compiler.linear(self.x, self.out, self.name, self.bias, self.activation)


def linear(g: Graph, x: Value, name: str, activation: str | None = None) -> Value:
    """x (rows, k) -> (rows, n); the bias is used where the checkpoint has one."""
    width = g.shapes[f"{name}.weight"][0]
    return g.add(Linear(x, g.value(width, x.rows), name, f"{name}.bias" in g.shapes, activation))
