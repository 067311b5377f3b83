"""A progress line for long work on a terminal: how far, how fast, how much longer. Piped, it says nothing."""

import shutil
import sys
import time
from types import TracebackType
from typing import Self, TextIO

from app.terminal import printable

REDRAW_EVERY_S = 0.1
RATE_WINDOW_S = 10.0
RATE_AFTER_S = 0.5
BAR_WIDTH = 24


class Progress:
    """One line on `stream` that is redrawn in place; use as a context manager.

    `update()` may be called as often as the work likes: the line is redrawn ten times a second at most.
    """

    def __init__(self, label: str, total: int | None = None, unit: str = "", stream: TextIO | None = None) -> None:
        self.label, self.total, self.unit = label, total, unit
        self._stream = stream or sys.stderr
        self._shown = self._stream.isatty()
        self._drawn_at = 0.0
        now = time.monotonic()
        self._samples: list[tuple[float, int]] = [(now, 0)]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def update(self, done: int, total: int | None = None, note: str = "") -> None:
        """`done` of `total` units are finished; `note` is what is being worked on now."""
        if total is not None:
            self.total = total
        if not self._shown:
            return
        now = time.monotonic()
        finished = self.total is not None and done >= self.total
        if now - self._drawn_at < REDRAW_EVERY_S and not finished:
            return
        self._drawn_at = now
        self._samples.append((now, done))
        while self._samples[0][0] < now - RATE_WINDOW_S and len(self._samples) > 2:
            self._samples.pop(0)
        width = max(20, shutil.get_terminal_size().columns - 1)
        text = progress_text(self.label, done, self.total, self.unit, self._rate(), note)
        self._stream.write("\r\x1b[K" + printable(text)[:width])
        self._stream.flush()

    def close(self) -> None:
        """Take the line away, so that what is printed next starts on a clean one."""
        if self._shown and self._drawn_at:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
        self._shown = False

    def _rate(self) -> float:
        """Units a second over the last seconds; 0 until there is enough to tell."""
        (start, before), (end, after) = self._samples[0], self._samples[-1]
        return (after - before) / (end - start) if end - start >= RATE_AFTER_S else 0.0


class Steps:
    """One progress line after another, as the steps of a longer work go on; use as a context manager."""

    def __init__(self) -> None:
        self._label, self._bar = "", Progress("")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end_step()

    def update(self, label: str, unit: str, done: int, total: int, note: str = "") -> None:
        """`done` of `total` units of the step `label` are finished; another label is another line."""
        if label != self._label:
            self.end_step()
            self._label, self._bar = label, Progress(label, unit=unit)
        self._bar.update(done, total, note)

    def end_step(self) -> None:
        """Take the line away, for something else to be printed."""
        self._bar.close()
        self._label = ""


def progress_text(label: str, done: int, total: int | None, unit: str, rate: float, note: str) -> str:
    """The line itself, e.g. `Indexing [####....] 120/480 files  31.2/s  0:12 left  notes.md`."""
    parts = [label]
    if total:
        filled = min(BAR_WIDTH, BAR_WIDTH * done // total)
        parts.append("[" + "#" * filled + "." * (BAR_WIDTH - filled) + "]")
    count = f"{done:,}/{total:,}" if total is not None else f"{done:,}"
    parts.append(f"{count} {unit}".rstrip())
    if rate > 0:
        parts.append(f"{rate:,.1f}/s")
        if total is not None and total > done:
            parts.append(f"{clock((total - done) / rate)} left")
    if note:
        parts.append(note)
    return "  ".join(parts)


def clock(seconds: float) -> str:
    """Seconds as 0:07, 12:34 or 3:00:00."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
