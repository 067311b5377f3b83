"""Collects hints until the places they speak of have come to rest."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from indexer.watch.hints import Hint

TOGETHER_S = 0.05
MOST_PLACES = 20_000  # held at once; above, the whole of the roots is looked at instead


@dataclass(slots=True)
class _Place:
    first_s: float
    last_s: float
    tree: bool


class Aggregator:
    """Thread-safe. Many hints on one path become one; a path is given out after `quiet_s` without a hint, or after
    `longest_s` if it never rests; a path that never rests is then held back for `pause_s`."""

    def __init__(
        self, quiet_s: float, longest_s: float, pause_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._quiet_s = quiet_s
        self._longest_s = longest_s
        self._pause_s = pause_s
        self._clock = clock
        self._lock = threading.Lock()
        self._places: dict[bytes, _Place] = {}
        self._restless: dict[bytes, float] = {}  # path -> held back until
        self._overflowed = False

    def add(self, hint: Hint) -> None:
        """Take note of a hint."""
        now = self._clock()
        with self._lock:
            if hint.kind == "everything" or len(self._places) >= MOST_PLACES:
                self._overflowed = True
                self._places.clear()
                return
            place = self._places.get(hint.path)
            if place is None:
                self._places[hint.path] = _Place(now, now, hint.kind == "tree")
            else:
                place.last_s = now
                place.tree = place.tree or hint.kind == "tree"

    def due(self) -> tuple[list[Hint], bool]:
        """Hints whose time has come, and whether everything must be looked at because hints were lost."""
        now = self._clock()
        ready: list[Hint] = []
        with self._lock:
            due_at = {path: self._due_at(path, place) for path, place in self._places.items()}
            # The two names of a move come a moment apart and belong together: once one is due, its neighbours are.
            until = now + TOGETHER_S if due_at and min(due_at.values()) <= now else now
            for path, place in list(self._places.items()):
                if due_at[path] > until:
                    continue
                del self._places[path]
                if now >= place.first_s + self._longest_s and now - place.last_s < self._quiet_s:
                    self._restless[path] = now + self._pause_s
                ready.append(Hint("tree" if place.tree else "path", path))
            self._restless = {path: until for path, until in self._restless.items() if until > now}
            overflowed, self._overflowed = self._overflowed, False
        return ready, overflowed

    def next_due_s(self) -> float | None:
        """Seconds from now until `due` has something to give; None when nothing waits."""
        with self._lock:
            if self._overflowed:
                return 0.0
            if not self._places:
                return None
            earliest = min(self._due_at(path, place) for path, place in self._places.items())
        return max(0.0, earliest - self._clock())

    def _due_at(self, path: bytes, place: _Place) -> float:
        rested = place.last_s + self._quiet_s
        held_back = min(self._restless.get(path, 0.0), rested + self._pause_s)
        return max(min(rested, place.first_s + self._longest_s), held_back)
