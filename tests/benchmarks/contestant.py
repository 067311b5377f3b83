"""One engine in a process of its own: `python -m tests.benchmarks.contestant`, driven by lines of JSON.

A process each keeps one engine's threads, allocator and settings out of the others' way, and shows its memory.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.benchmarks import peers, workloads

TREE = Path(__file__).parents[2]


class Missing(Exception):
    """The engine cannot be run here; the message says why."""


class Contestant:
    """The parent's handle of such a process; threads and instruction set are fixed when it starts."""

    def __init__(self, engine: str, model: str, folder: Path, works: Path, threads: int, environment: dict[str, str]):
        self.engine, self.threads = engine, threads
        command = [sys.executable, "-W", "ignore", "-m", "tests.benchmarks.contestant"]
        arguments = [engine, model, str(folder), str(works), str(threads)]
        self._process = subprocess.Popen(
            [*command, *arguments], env=environment, cwd=TREE, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self._receive()

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, **request: Any) -> dict[str, Any]:
        """One request, one answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._receive()

    def vectors(self, file: Path) -> NDArray[np.float32]:
        """What the prepared work comes to, rows in the work's own order."""
        self.ask(do="vectors", file=str(file))
        found: NDArray[np.float32] = np.load(file)
        return found

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._process.stdout.close()

    def _receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None and self._process.stderr is not None
        line = self._process.stdout.readline()
        if not line:
            said = self._process.stderr.read().strip().splitlines() or ["it said nothing"]
            self._process.wait()
            raise Missing(f"{self.engine}: {said[-1]}")
        answer: dict[str, Any] = json.loads(line)
        return answer


def time_passes(run: peers.Pass, seconds: float) -> dict[str, list[float]]:
    """Wall and processor seconds of passes for about so long; at least one."""
    wall, cpu = [], []
    end = time.perf_counter() + seconds
    while not wall or time.perf_counter() < end:
        start, start_cpu = time.perf_counter(), time.process_time()
        run()
        cpu.append(time.process_time() - start_cpu)
        wall.append(time.perf_counter() - start)
    return {"wall": wall, "cpu": cpu}


def main() -> None:
    name, model, folder, file, threads = sys.argv[1:]
    answers, sys.stdout = os.fdopen(os.dup(1), "w"), sys.stderr
    engine = peers.ENGINES[name](model, Path(folder), int(threads))
    works = workloads.read(Path(file))
    run: peers.Pass | None = None
    work: workloads.Work | None = None
    print(json.dumps({}), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        answer: dict[str, Any] = {}
        if request["do"] == "prepare":
            work = works[request["work"]]
            sizes = engine.batch_sizes if len(work.ids) > 1 else engine.batch_sizes[:1]
            answer = {"batch_sizes": sizes, "has_streams": engine.has_streams and len(work.ids) > 1}
            run = engine.prepare(work, request.get("batch", sizes[0]), request.get("streams", False))
        elif request["do"] == "run" and run is not None:
            answer = time_passes(run, request["seconds"])
        elif request["do"] == "vectors" and run is not None and work is not None:
            rows = run()
            order = peers.order_by_length(work) if engine.batch_sizes != (0,) else list(range(len(rows)))
            back = np.empty_like(rows)
            back[order] = rows
            np.save(request["file"], back)
        elif request["do"] == "cpu":
            answer = {"seconds": time.process_time()}
        elif request["do"] == "memory":
            status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
            answer = {"peak_mb": int(status["VmHWM"].split()[0]) / 1024, "mb": int(status["VmRSS"].split()[0]) / 1024}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
