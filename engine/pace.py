"""Long work that can be followed and stopped: what is called between its batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.errors import Cancelled

Progress = Callable[[int, int], None]  # texts done, texts in all
Cancel = Callable[[], bool]  # whether to stop; asked before every batch


@dataclass
class Pace:
    """How far a piece of work is. total: texts in all; done: those that are through."""

    total: int
    progress: Progress | None = None
    cancel: Cancel | None = None
    done: int = 0

    def check(self) -> None:
        """Raise Cancelled where the caller wants no more of it."""
        if self.cancel is not None and self.cancel():
            raise Cancelled(f"Stopped after {self.done} of {self.total} texts.")

    def advance(self, count: int) -> None:
        """`count` more texts are through."""
        self.done += count
        if self.progress is not None:
            self.progress(self.done, self.total)
