"""How fast a model is here: a short query, a text, and a ragged batch, each case in a process of its own."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from app.index_process import child_command
from engine import Encoder, EngineError
from engine.fidelity import probe_texts

QUERY_TOKENS, TEXT_TOKENS = 12, 128
LEAST_RUNS = 5
FIRST = "first"  # the line with which a case says that its first vector is there


@dataclass(frozen=True)
class Latency:
    """Milliseconds of one call: the median, and the tenth and ninetieth part of a hundred; runs: how many calls."""

    tokens: int
    texts: int
    median_ms: float
    p10_ms: float
    p90_ms: float
    runs: int

    @property
    def tokens_a_second(self) -> float:
        return self.tokens / self.median_ms * 1000


@dataclass(frozen=True)
class Case:
    """One precision and worker count. first_vector_s: from starting the program to its first vector."""

    precision: str
    workers: int
    isa: str
    query: Latency
    text: Latency
    batch: Latency
    first_vector_s: float
    peak_bytes: int | None

    def as_json(self) -> dict[str, Any]:
        """The same for other programs."""
        rates = {
            name: {**asdict(each), "tokens_a_second": each.tokens_a_second}
            for name, each in (("query", self.query), ("text", self.text), ("batch", self.batch))
        }
        return {**asdict(self), **rates}


def machine() -> dict[str, Any]:
    """What the numbers were measured on."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count() or 1,
        "memory_bytes": psutil.virtual_memory().total,
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def run_case(model: Path, precision: str, workers: int, seconds: float) -> Case:
    """Measure one case in a process of its own. Raises EngineError with what the process complained of."""
    options = ["--model", str(model), "--precision", precision, "--workers", str(workers), "--seconds", str(seconds)]
    begun = time.perf_counter()
    with subprocess.Popen(
        [*child_command("bench"), *options, "--case"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None and child.stderr is not None
        first = child.stdout.readline().strip()
        elapsed = time.perf_counter() - begun
        said, complained = child.communicate()
    if child.returncode or first != FIRST:
        raise EngineError(complained.strip().removeprefix("inkling: ") or f"The measuring process ended ({first}).")
    values = json.loads(said)
    query, text, batch = (Latency(**values[name]) for name in ("query", "text", "batch"))
    return Case(precision, workers, values["isa"], query, text, batch, elapsed, values["peak_bytes"])


def measure_here(model: Path, precision: str, workers: int, seconds: float) -> None:
    """The process of one case: a line once its first vector is there, then the numbers as JSON."""
    with Encoder.load(model, precision=precision, workers=workers) as encoder:
        query, text = (text_of(encoder, tokens) for tokens in (QUERY_TOKENS, TEXT_TOKENS))
        _encode(encoder, [query])
        print(FIRST, flush=True)
        works = {"query": [query], "text": [text], "batch": list(probe_texts())}
        found = {name: asdict(_latency(encoder, texts, seconds)) for name, texts in works.items()}
        print(json.dumps({**found, "isa": encoder.isa, "peak_bytes": peak_bytes()}))


def text_of(encoder: Encoder, tokens: int) -> str:
    """A text of so many tokens, special ones included, or as many as the model takes if those are fewer."""
    wanted = min(tokens, encoder.max_tokens) - encoder.special_tokens
    prose = " ".join(text for text in probe_texts() if text.isascii())
    ends = encoder.token_spans(prose)[:, 1]
    # Read alone a text may have a token more or less than it had inside the longer one.
    lengths = ((prose[:end], len(encoder.token_spans(prose[:end]))) for end in ends[max(0, wanted - 8) : wanted + 8])
    return min(lengths, key=lambda found: abs(found[1] - wanted))[0]


def peak_bytes() -> int | None:
    """The most memory that this process has held at a time; None where the system does not say."""
    status = Path("/proc/self/status")
    if status.is_file():  # what `resource` says there may be the parent's
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        return int(lines["VmHWM"].split()[0]) * 1024 if "VmHWM" in lines else None
    if sys.platform == "win32":
        return int(psutil.Process().memory_info().peak_wset)
    import resource

    return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * (1 if sys.platform == "darwin" else 1024)


def _latency(encoder: Encoder, texts: Sequence[str], seconds: float) -> Latency:
    """Calls for `seconds`, after one that is not counted."""
    tokens = sum(len(ids) for ids in encoder.token_ids(texts, role=None if encoder.has_vectors else "document"))
    times = _repeat(lambda: _encode(encoder, texts), seconds)
    low, median, high = (float(value) for value in np.percentile(times, (10, 50, 90)))
    return Latency(tokens, len(texts), median * 1000, low * 1000, high * 1000, len(times))


def _repeat(call: Callable[[], None], seconds: float) -> list[float]:
    call()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < LEAST_RUNS or time.perf_counter() < end:
        begun = time.perf_counter()
        call()
        times.append(time.perf_counter() - begun)
    return times


def _encode(encoder: Encoder, texts: Sequence[str]) -> None:
    if encoder.has_vectors:
        encoder.encode(texts)
    else:
        encoder.encode_tokens(texts, role="document")


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.is_file():
        for line in information.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
