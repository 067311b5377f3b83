"""A thread that does jobs in turn, so that the window never waits for a disk, a database or a model."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Hashable

log = logging.getLogger(__name__)
Job = Callable[[], None]


class Worker:
    """One thread. A job posted under the key of one that still waits takes its place: the newest wish counts.

    Jobs handle the trouble they know; anything else is a bug: it is logged with its trace, told to `on_bug` on this
    worker's thread, and the next job is done all the same.
    """

    def __init__(self, name: str, on_bug: Callable[[Exception], None]) -> None:
        self._on_bug = on_bug
        self._jobs: dict[Hashable, Job] = {}  # insertion order is the order of work
        self._changed = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def post(self, key: Hashable, job: Job) -> None:
        """Do `job` when those before it are done. After `close` it is forgotten."""
        with self._changed:
            if not self._closing:
                self._jobs.pop(key, None)
                self._jobs[key] = job
                self._changed.notify()

    def close(self, last: Job | None = None, timeout_s: float = 20.0) -> bool:
        """Forget the jobs that wait, let the one at hand end, do `last`, and end; False when that took too long."""
        with self._changed:
            self._closing = True
            self._jobs.clear()
            if last is not None:
                self._jobs["last"] = last
            self._changed.notify()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._jobs and not self._closing:
                    self._changed.wait()
                if not self._jobs:
                    return
                job = self._jobs.pop(next(iter(self._jobs)))
            try:
                job()
            except Exception as error:
                log.exception("a job of the %s thread failed", threading.current_thread().name)
                self._on_bug(error)
