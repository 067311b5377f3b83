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


def _mean(x: F32, skipped: int) -> F32:
    mean: F32 = x.mean(axis=0)
    return mean


def _weighted(x: F32, skipped: int) -> F32:
    weights = np.arange(skipped + 1, skipped + len(x) + 1, dtype=np.float32)
    mean: F32 = (x * weights[:, None]).sum(axis=0) / weights.sum()
    return mean


# Mode -> one text's rows (t, width), special tokens included, and how many rows before them were left out, to its
# row (width,).
POOLING_MODES: dict[str, Callable[[F32, int], F32]] = {
    "mean": _mean,
    "cls": lambda x, skipped: x[0],
    "lasttoken": lambda x, skipped: x[-1],
    "max": lambda x, skipped: x.max(axis=0),
    "mean_sqrt_len_tokens": lambda x, skipped: x.sum(axis=0) / np.sqrt(np.float32(len(x))),
    "weightedmean": _weighted,
}


@dataclass(frozen=True)
class Pool:
    """out (texts, width): each text's rows of x through its mode; with skip_prompt without the batch's prompt rows.

    A text without rows pools to zeros.
    """

    x: Value
    out: Value
    mode: str
    skip_prompt: bool

    @property
    def inputs(self) -> tuple[Value, ...]:
        return (self.x,)

    def reference(self, run: ReferenceRun) -> F32:
        x, mode, skip = run[self.x], POOLING_MODES[self.mode], run.batch.prompt if self.skip_prompt else 0
        out = np.zeros((run.batch.texts, self.out.width), np.float32)
        for i, (start, end) in enumerate(pairwise(run.batch.starts)):
            if end > start + skip:
                out[i] = mode(x[start + skip : end], skip)
        return out

    def compile(self, compiler: Compiler) -> None:
        compiler.pool(self.x, self.out, self.mode, self.skip_prompt)


def pool(g: Graph, x: Value, mode: str, *, skip_prompt: bool = False) -> Value:
    """(tokens, width) -> (texts, width)."""
    return g.add(Pool(x, g.value(x.width, "texts"), mode, skip_prompt))
