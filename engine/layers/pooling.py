"""Pooling: one row a text out of its token rows, as the sentence-transformers Pooling module names it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.plan import Graph, ReferenceRun, Value

if TYPE_CHECKING:
    from engine.kernels.native import Compiler


@dataclass(frozen=True)
class Pool:
    """mode "mean": the mean of all token rows, special tokens included; "cls": the first row."""

    x: Value
    out: Value
    mode: str

    @property
    def inputs(self) -> tuple[Value, ...]:
        return (self.x,)

    def reference(self, run: ReferenceRun) -> NDArray[np.float32]:
        x, starts = run[self.x], run.batch.starts
        if self.mode == "cls":
            return x[starts[:-1]]
        lengths = np.diff(starts)[:, None].astype(np.float32)
        sums: NDArray[np.float32] = np.add.reduceat(x, starts[:-1], axis=0, dtype=np.float32)
        return sums / lengths

    def compile(self, compiler: Compiler) -> None:
        compiler.pool(self.x, self.out, self.mode)


POOLING_MODES = ("mean", "cls")


def pool(g: Graph, x: Value, mode: str) -> Value:
    """(tokens, width) -> (texts, width)."""
    return g.add(Pool(x, g.value(x.width, "texts"), mode))
