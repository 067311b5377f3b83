"""A plan with its weights, on the compiled kernels where there are any, else in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import kernels
from engine.batch import Batch
from engine.plan import Plan, run_reference
from engine.weights.loaded import Loaded

F32 = NDArray[np.float32]


class Computation:
    """Thread-safe. isa: the kernels in use, or "reference"."""

    def __init__(self, plan: Plan, loaded: dict[str, Loaded], workers: int):
        self.plan = plan
        self._loaded = loaded
        found = kernels.library()
        self.isa = "reference" if found is None else found.isa
        self._native: Any = None
        if found is not None:
            from engine.kernels.native import NativePlan

            self._native = NativePlan(plan, loaded, found, workers)

    @property
    def closed(self) -> bool:
        return not self._loaded

    def run(self, batch: Batch, *, want_tokens: bool) -> tuple[F32, F32]:
        """Pooled rows (texts, dim) float32, and when wanted the token rows (tokens, width) float32, else none."""
        native = self._native
        if native is None:
            pooled, tokens = run_reference(self.plan, self._loaded, batch)
        else:
            pooled, tokens = native.run(batch, want_tokens=want_tokens)
        return pooled, tokens if want_tokens else np.zeros((0, self.plan.tokens.width), np.float32)

    def close(self) -> None:
        """Let go of the weights; nothing runs afterwards."""
        self._native, self._loaded = None, dict[str, Loaded]()
