"""A forward pass as data: a family's `forward` runs once on symbolic values and leaves a list of operations.

The list is run either step by step in NumPy (`run_reference`, which defines what is correct) or as one call into the
compiled kernels (`engine.kernels.native`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import Field, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from engine.batch import Batch

if TYPE_CHECKING:
    from engine.kernels.native import Compiler
    from engine.weights.loaded import Loaded

Rows = Literal["tokens", "texts"]


@dataclass(frozen=True)
class Value:
    """A symbolic matrix (rows, width) float32; rows is the batch's tokens or its texts."""

    index: int
    width: int
    rows: Rows = "tokens"


class Op(Protocol):
    """One step of a plan: a dataclass whose fields name the values that it reads and makes."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def inputs(self) -> tuple[Value, ...]: ...

    @property
    def out(self) -> Value: ...

    def reference(self, run: ReferenceRun) -> NDArray[np.float32]:
        """The step's result in NumPy."""
        ...

    def compile(self, compiler: Compiler) -> None:
        """Add the step to a compiled plan."""
        ...


@dataclass
class Graph:
    """Collects operations while a family's forward pass runs on symbolic values."""

    shapes: dict[str, tuple[int, ...]]
    ops: list[Op] = field(default_factory=list)
    count: int = 0

    def value(self, width: int, rows: Rows = "tokens") -> Value:
        """A new symbolic value."""
        self.count += 1
        return Value(self.count - 1, width, rows)

    def add(self, op: Op) -> Value:
        """Append a step; returns the value that it makes."""
        self.ops.append(op)
        return op.out


@dataclass(frozen=True)
class Plan:
    """The steps of a forward pass and the two values that a caller may ask for."""

    ops: tuple[Op, ...]
    values: int
    tokens: Value
    pooled: Value

    @classmethod
    def of(cls, graph: Graph, tokens: Value, pooled: Value) -> Plan:
        """The plan that a graph has collected."""
        return cls(tuple(graph.ops), graph.count, tokens, pooled)


@dataclass
class ReferenceRun:
    """The state of one NumPy run: arrays by value index, the weights, the batch."""

    weights: dict[str, Loaded]
    batch: Batch
    arrays: dict[int, NDArray[np.float32]] = field(default_factory=dict)

    def __getitem__(self, value: Value) -> NDArray[np.float32]:
        return self.arrays[value.index]


def run_reference(
    plan: Plan, weights: dict[str, Loaded], batch: Batch
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Run the plan step by step in NumPy.

    Returns (pooled (texts, dim) float32, tokens (tokens, hidden) float32).
    """
    run = run_steps(plan.ops, weights, batch)
    return run[plan.pooled], run[plan.tokens]


def run_steps(ops: Iterable[Op], weights: dict[str, Loaded], batch: Batch) -> ReferenceRun:
    """Run steps in NumPy; returns every value that they make."""
    run = ReferenceRun(weights, batch)
    for op in ops:
        run.arrays[op.out.index] = op.reference(run)
    return run
