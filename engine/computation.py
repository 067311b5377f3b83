"""A plan with its weights, on the compiled kernels where there are any, else in NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from engine import kernels
from engine.batch import Batch
from engine.errors import EngineError, ModelError
from engine.kernels.loader import REFERENCE
from engine.pace import Pace
from engine.plan import Plan, run_reference
from engine.weights.loaded import LinearU8, Loaded

F32 = NDArray[np.float32]
Run = Callable[[Batch, bool], tuple[F32, F32 | None]]


class Computation:
    """Thread-safe. name: the model's, for sentences; isa: the kernels in use, or "reference"."""

    def __init__(self, name: str, plan: Plan, loaded: dict[str, Loaded], workers: int, *, compiled: bool = True):
        self.name, self.plan = name, plan
        found = kernels.library() if compiled else None
        if found is not None and not found.has_u8 and any(isinstance(one, LinearU8) for one in loaded.values()):
            raise EngineError(
                f"Precision int8-full needs products of four 8-bit numbers (VNNI, dot products), which the {found.isa} "
                f"kernels do not have; use int8."
            )
        self.isa = REFERENCE if found is None else found.isa
        # What holds the weights stands in one attribute: a thread that has read it runs on, whoever closes meanwhile.
        self._run: Run | None = None
        if found is None:
            self._run = lambda batch, want_tokens: run_reference(plan, loaded, batch)
        else:
            from engine.kernels.native import NativePlan

            native = NativePlan(plan, loaded, found, workers)
            self._run = lambda batch, want_tokens: native.run(batch, want_tokens=want_tokens)

    def opened(self) -> Run:
        """What runs a batch; EngineError once the model is closed."""
        run = self._run
        if run is None:
            raise EngineError(f"The model {self.name} was closed.")
        return run

    def run(self, batch: Batch, pace: Pace | None = None, *, want_tokens: bool) -> tuple[F32, F32]:
        """Pooled rows (texts, dim) float32, and when wanted the token rows (tokens, width) float32, else none.

        pace: how far the work was before this batch, where it is one of several. Raises ModelError where a number is
        not finite, as damaged weights make them, or those that are too large for float32.
        """
        pooled, tokens = self.opened()(batch, want_tokens)
        if tokens is None or not want_tokens:
            tokens = np.zeros((0, self.plan.tokens.width), np.float32)
        if not (np.isfinite(pooled).all() and np.isfinite(tokens).all()):
            by_token = np.flatnonzero(~np.isfinite(tokens).all(axis=1))
            by_text = np.flatnonzero(~np.isfinite(pooled).all(axis=1))
            text = min([*by_text[:1], *np.searchsorted(batch.starts, by_token[:1], side="right") - 1])
            pace = pace or Pace(batch.texts)
            raise ModelError(
                f"{self.name} makes numbers that are not finite of text {pace.done + text + 1} of {pace.total}: its "
                f"weights are damaged, or too large to be computed with."
            )
        return pooled, tokens

    def close(self) -> None:
        """Let go of the weights; what runs now ends well, and nothing runs afterwards."""
        self._run = None
