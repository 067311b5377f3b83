"""What a server has done since it was started, in the text format that Prometheus reads."""

from __future__ import annotations

import threading
from collections import defaultdict

HELP = {
    "requests": "requests answered, by path and status",
    "request_seconds": "time from a request's first line to its answer, by path",
    "texts": "texts turned into vectors",
    "tokens": "tokens of those texts",
    "pairs": "passages scored by a reranker",
    "batches": "rounds of the engine, each with the texts of one or more requests",
}


class Metrics:
    """Thread-safe counters."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: defaultdict[tuple[str, str], float] = defaultdict(float)

    def count(self, name: str, amount: int = 1, labels: str = "") -> None:
        """Add to a counter; labels: as they stand in the text format, without braces."""
        with self._lock:
            self._values[name, labels] += amount

    def answered(self, path: str, status: int, seconds: float) -> None:
        """A request was answered."""
        with self._lock:
            self._values["requests", f'path="{path}",status="{status}"'] += 1
            self._values["request_seconds", f'path="{path}"'] += seconds

    def text(self, loaded: int) -> str:
        """All counters, and how many models are loaded."""
        with self._lock:
            found = dict(self._values)
        lines = []
        for name, meaning in HELP.items():
            lines += [f"# HELP inkling_{name}_total {meaning}", f"# TYPE inkling_{name}_total counter"]
            for (each, labels), value in sorted(found.items()):
                if each == name:
                    lines.append(f"inkling_{name}_total{f'{{{labels}}}' if labels else ''} {value:.12g}")
        lines += ["# TYPE inkling_models_loaded gauge", f"inkling_models_loaded {loaded}"]
        return "\n".join(lines) + "\n"
