"""How the engine behaves when it does not have the machine to itself, and when it has nothing to do.

`python -m tests.benchmarks.busy_core REAL_MODEL CRANFIELD`: times with one core loaded by another process, on one and
two threads, beside ONNX Runtime; the processor time of an idle process with a loaded model; and what it costs to wake
the second worker. Linux.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from tests.benchmarks import graphs, peers, shapes, workloads
from tests.benchmarks.contestant import Contestant
from tests.benchmarks.engine import STORE
from tests.benchmarks.rounds import alternate

ENGINES = ("inkling int8", "inkling fp32", "onnxruntime fused", "onnxruntime int8")
WORKS = ("query12", "text128")
IDLE_SECONDS = 5.0
WAKES = 200
PARKED_SECONDS = 0.005


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("real", type=Path, metavar="REAL_MODEL")
    parser.add_argument("data", type=Path, metavar="CRANFIELD")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--isa", choices=["native", "avx2"], default="native")
    options = parser.parse_args()
    folder, file = shapes.folder("minilm", options.real, STORE), STORE / f"busy-{os.getpid()}.npz"
    for kind in graphs.MAKERS:
        graphs.make("minilm", folder, kind)
    works = workloads.Source(options.data, folder / "tokenizer.json").works(shapes.SHAPES["minilm"].limit, few=True)
    workloads.save([work for work in works if work.name in WORKS], file)
    print("| work | threads | other process | engine | median ms | p95 ms |\n|---|---|---|---|---|---|")
    for threads in (1, 2):
        engines = [
            Contestant(name, "minilm", folder, file, threads, peers.environment(name, threads, options.isa, STORE))
            for name in ENGINES
        ]
        try:
            for busy in (False, True):
                _measure(engines, threads, busy, options.rounds)
            if threads == 2:
                print("\n" + "\n".join(f"{one.engine}: {idle_share(one):.2%} of a core when idle" for one in engines))
        finally:
            for one in engines:
                one.close()
    print("\n" + wake_up(folder))


def _measure(engines: list[Contestant], threads: int, busy: bool, rounds: int) -> None:
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if busy else None
    try:
        for work in WORKS:
            for name, times in alternate(engines, work, rounds, 0.15).items():
                # Wall time on one thread too: here the others are what is measured.
                passes = 1000 * np.array([value for turn in times.wall for value in turn])
                middle, high = np.median(passes), np.percentile(passes, 95)
                loaded = "yes" if busy else ""
                print(f"| {work} | {threads} | {loaded} | {name} | {middle:.2f} | {high:.2f} |", flush=True)
    finally:
        if other is not None:
            other.kill()
            other.wait()


def idle_share(one: Contestant) -> float:
    """Processor time over wall time of a process that has worked and now waits."""
    one.ask(do="prepare", work=WORKS[0])
    one.ask(do="run", seconds=0.2)
    time.sleep(0.5)
    before = one.ask(do="cpu")["seconds"]
    time.sleep(IDLE_SECONDS)
    return float(one.ask(do="cpu")["seconds"] - before) / IDLE_SECONDS


def wake_up(folder: Path) -> str:
    """What a query costs more after a pause in which the second worker was parked, against one right after another.

    The difference holds the wake-up itself and whatever else cools down in a pause; one worker shows the latter.
    """
    from engine.encoder import Encoder

    found = {}
    for workers in (1, 2):
        with Encoder.load(folder, precision="int8", workers=workers) as encoder:
            for pause in (0.0, PARKED_SECONDS):
                took = []
                for _ in range(WAKES):
                    time.sleep(pause)
                    start = time.perf_counter()
                    encoder.encode(["wing"])
                    took.append(time.perf_counter() - start)
                found[workers, pause] = 1e6 * float(np.median(took))
    cold = {workers: found[workers, PARKED_SECONDS] - found[workers, 0.0] for workers in (1, 2)}
    return f"a query after a pause: {cold[1]:+.0f} us on one worker, {cold[2]:+.0f} us on two"


if __name__ == "__main__":
    main()
