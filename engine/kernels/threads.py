"""The worker threads that run a plan: one pool for each number of workers, shared and asleep when idle."""

from __future__ import annotations

import os
import threading
from functools import cache

from engine.errors import KernelError
from engine.kernels.loader import Library


class Pool:
    """The worker threads of one cap; one job at a time. lock: held by whoever runs a job."""

    def __init__(self, found: Library, workers: int):
        self.workers, self._library = workers, found
        self.lock = threading.Lock()
        self._handle: int | None = self._start()
        _pools.append(self)

    @property
    def handle(self) -> int:
        """The threads, started where there are none; to be asked for with the lock held."""
        if self._handle is None:
            self._handle = self._start()
        return self._handle

    def forget_threads(self) -> None:
        """In a forked child: the workers are not there, nor is the thread that may hold the lock.

        What the old threads shared is in an unknown state, so it is left as it is, a few hundred bytes.
        """
        self.lock, self._handle = threading.Lock(), None

    def _start(self) -> int:
        handle: int | None = self._library.functions.ink_new_pool(self.workers)
        if not handle:
            raise KernelError(f"The system has no room for {self.workers} worker threads; use fewer workers.")
        return handle


_pools: list[Pool] = []  # all that were made: they live as long as the process


def _after_fork() -> None:
    for made in _pools:
        made.forget_threads()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_after_fork)


@cache
def pool(found: Library, workers: int) -> Pool:
    """The process's pool for this many workers: Encoders with the same cap share it, idle workers sleep."""
    return Pool(found, workers)
