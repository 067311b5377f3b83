"""Texts of many requests in common batches, so that a few callers with a text each are as fast as one with many."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from app.serving.metrics import Metrics

F32 = NDArray[np.float32]

# Of one round: some two batches of the engine. Between rounds new requests get their turn.
ROUND_CHARS = 8000
MOST_CHARS_OF_ONE = 2000  # a model cuts a longer text anyway


@dataclass
class Job:
    """One request's texts; rows: the vectors of those that are done."""

    texts: Sequence[str]
    rows: list[F32] = field(default_factory=list)
    taken: int = 0
    error: Exception | None = None

    @property
    def done(self) -> bool:
        return self.error is not None or len(self.rows) == len(self.texts)


class BatchQueue:
    """What waits for one model in one way of reading.

    There is no thread of its own: of the requests that wait, one computes for all until its own texts are done, then
    another goes on. Each request has its turn in every round, so a long one does not hold up a short one.
    encode: (texts) -> (n, dim) float32.
    """

    def __init__(self, encode: Callable[[list[str]], F32], metrics: Metrics):
        self._encode, self._metrics = encode, metrics
        self._changed = threading.Condition()
        self._jobs: list[Job] = []
        self._computing = False

    def submit(self, texts: Sequence[str]) -> F32:
        """The vectors of the texts, (n, dim) float32, n > 0. Raises what `encode` raises."""
        job = Job(texts)
        with self._changed:
            self._jobs.append(job)
            while self._computing and not job.done:
                self._changed.wait()
            self._computing = self._computing or not job.done
        # Whoever is not done here is the one that computes.
        if not job.done:
            self._compute_until(job)
        if job.error is not None:
            raise job.error
        return np.stack(job.rows)

    def _compute_until(self, mine: Job) -> None:
        try:
            while not mine.done:
                with self._changed:
                    taken = self._take()
                self._round(taken)
        finally:
            with self._changed:
                self._computing = False
                self._changed.notify_all()

    def _take(self) -> list[tuple[Job, str]]:
        """Texts for a round, one of each job in turn until there are enough."""
        taken: list[tuple[Job, str]] = []
        chars = 0
        waiting = list(self._jobs)
        while waiting and chars < ROUND_CHARS:
            for job in waiting:
                text = job.texts[job.taken]
                job.taken += 1
                taken.append((job, text))
                chars += min(len(text), MOST_CHARS_OF_ONE)
            waiting = [job for job in waiting if job.taken < len(job.texts)]
        return taken

    def _round(self, taken: list[tuple[Job, str]]) -> None:
        try:
            vectors = self._encode([text for _, text in taken])
            self._metrics.count("batches")
        except Exception as error:  # it is everybody's who had a text in it, and each raises it to its own caller
            with self._changed:
                for job, _ in taken:
                    job.error = error
        else:
            for (job, _), vector in zip(taken, vectors, strict=True):
                job.rows.append(vector)
        with self._changed:
            self._jobs = [job for job in self._jobs if not job.done and job.taken < len(job.texts)]
            self._changed.notify_all()
