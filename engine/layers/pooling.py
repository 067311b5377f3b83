"""Pooling: one row a text out of its token rows, as the sentence-transformers Pooling module names it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.plan import Graph, ReferenceRun, Value

if TYPE_CHECKING:
    from engine.kernels.native import Compiler

F32 = NDArray[np.float32]


def _mean(x: F32) -> F32:
    mean: F32 = x.mean(axis=0)
    return mean


def _weighted(x: F32) -> F32:
    weights = np.arange(1, len(x) + 1, dtype=np.float32)
    mean: F32 = (x * weights[:, None]).sum(axis=0) / weights.sum()
    return mean


# Mode -> one text's rows (t, width), special tokens included, to its row (width,).
POOLING_MODES: dict[str, Callable[[F32], F32]] = {
    "mean": _mean,
    "cls": lambda x: x[0],
    "lasttoken": lambda x: x[-1],
    "max": lambda x: x.max(axis=0),
    "mean_sqrt_len_tokens": lambda x: x.sum(axis=0) / np.sqrt(np.float32(len(x))),
    "weightedmean": _weighted,
}


@dataclass(frozen=True)
class Pool:
    """out (texts, width): each text's rows of x through its mode."""

    x: Value
    out: Value
    mode: str

    @property
    def inputs(self) -> tuple[Value, ...]:
        return (self.x,)

    def reference(self, run: ReferenceRun) -> F32:
        x, starts, mode = run[self.x], run.batch.starts, POOLING_MODES[self.mode]
        return np.stack([mode(x[start:end]) for start, end in pairwise(starts)])

    def compile(self, compiler: Compiler) -> None:
        compiler.pool(self.x, self.out, self.mode)


def pool(g: Graph, x: Value, mode: str) -> Value:
    """(tokens, width) -> (texts, width)."""
    return g.add(Pool(x, g.value(x.width, "texts"), mode))
