"""How far the present run of work is: counts, rate and time left, told at a bounded pace."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from indexer.protocol import Event, Phase, Progress

RATE_WINDOW_S = 20.0


class ProgressMeter:
    """Counts from the moment the indexer was last idle. Totals are what is done plus what waits."""

    def __init__(self, emit: Callable[[Event], None], interval_s: float) -> None:
        self._emit = emit
        self._interval_s = interval_s
        self._told_at_s = 0.0
        self._files = self._chunks = 0
        self._samples: deque[tuple[float, int, int]] = deque()

    def is_due(self) -> bool:
        """Whether it is time to tell again."""
        return time.monotonic() - self._told_at_s >= self._interval_s

    def file_done(self) -> None:
        """One more file left the queue."""
        self._files += 1

    def embedded(self, texts: int) -> None:
        """So many more texts have their vectors."""
        self._chunks += texts

    def report(self, phase: Phase, current: str, waiting_files: int, pending_chunks: int, failed: int) -> None:
        """Send one Progress event."""
        now = self._told_at_s = time.monotonic()
        self._samples.append((now, self._files, self._chunks))
        while now - self._samples[0][0] > RATE_WINDOW_S:
            self._samples.popleft()
        in_words = phase in ("words", "scanning")
        rate = self._rate(1 if in_words else 2)
        left = waiting_files if in_words else pending_chunks
        self._emit(
            Progress(
                phase=phase,
                current=current,
                files_done=self._files,
                files_total=self._files + waiting_files,
                chunks_done=self._chunks,
                chunks_total=self._chunks + pending_chunks,
                per_second=round(rate, 2),
                eta_s=round(left / rate, 1) if rate > 0 else None,
                failed=failed,
            )
        )

    def finished(self) -> None:
        """Nothing is left to do: the next work counts from zero."""
        self._files = self._chunks = 0
        self._samples.clear()

    def _rate(self, column: int) -> float:
        first, last = self._samples[0], self._samples[-1]
        span_s = last[0] - first[0]
        return (last[column] - first[column]) / span_s if span_s > 0 else 0.0
