"""The engine against other runtimes: times in one run, side by side, with how far each is from the fp32 reference.

`python -m tests.benchmarks.engine REAL_MODEL CRANFIELD [--quick] [--model M ...] [--only WORK ...] [--threads N ...]
[--peers NAME ...] [--isa avx2]`. The peers are what `pip install .[bench]` brings; one that is missing is a row that
says so. REAL_MODEL is the folder of all-MiniLM-L6-v2 as published, CRANFIELD the folder with corpus.jsonl.

All engines get the same token ids; padding them is done before the clock starts. Of batch sizes 1, 4, 8 and 32 (texts
sorted by length), on two threads also with a batch on each thread, every peer runs at its fastest, found anew for each
work. Times of one thread are processor time.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.options import PRECISIONS
from tests.benchmarks import bars, graphs, peers, shapes, workloads
from tests.benchmarks.contestant import Contestant, Missing
from tests.benchmarks.rounds import Times, alternate

STORE = Path(tempfile.gettempdir()) / "inkling-benchmark"
QUICK = {"onnxruntime fused", "onnxruntime int8", "inkling fp32", "inkling int8", "inkling int8-full"}


def main() -> None:
    options = _options()
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print(f"instruction set: {options.isa}; load before the start: {os.getloadavg()[0]:.2f}\n", flush=True)
    for model in options.model:
        folder = shapes.folder(model, options.real, options.store)
        source = workloads.Source(options.data, folder / "tokenizer.json")
        shape = shapes.SHAPES[model]
        works = [source.pairs()] if shape.is_reranker else source.works(shape.limit, few=options.quick)
        works = [work for work in works if not options.only or work.name in options.only]
        if works:
            # Of this run alone: others may go on beside it with the same store.
            with tempfile.TemporaryDirectory() as place:
                _run_model(model, folder, works, Path(place), options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("real", type=Path, metavar="REAL_MODEL")
    parser.add_argument("data", type=Path, metavar="CRANFIELD")
    parser.add_argument("--model", nargs="+", choices=shapes.SHAPES, default=["minilm"])
    parser.add_argument("--only", nargs="+", default=[], help="works, such as text128")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--peers", nargs="+", choices=peers.ENGINES, metavar="ENGINE")
    parser.add_argument("--isa", choices=["native", "avx2"], default="native", help="avx2: limits every engine")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=0.15, help="of one turn; at least one pass")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, and ONNX Runtime as the only peer")
    parser.add_argument("--store", type=Path, default=STORE, help="where made models and graphs are kept")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.seconds = min(options.rounds, 6), min(options.seconds, 0.08)
    options.peers = options.peers or [name for name in peers.ENGINES if name in QUICK or not options.quick]
    if "int8-full" not in PRECISIONS:
        options.peers = [name for name in options.peers if name != "inkling int8-full"]
    return options


def _run_model(model: str, folder: Path, works: list[workloads.Work], place: Path, options: argparse.Namespace) -> None:
    print(f"## {model}: {shapes.SHAPES[model].like}\n")
    file = place / "works.npz"
    workloads.save(works, file)
    results: dict[tuple[str, int], dict[str, Times]] = {}
    for threads in options.threads:
        contestants = _start(model, folder, file, threads, options)
        try:
            for work in works:
                results[work.name, threads] = _run_work(work, contestants, threads, place, options)
        finally:
            for one in contestants:
                one.close()
    print("\n".join(bars.table(model, results)), "\n", flush=True)


def _start(model: str, folder: Path, file: Path, threads: int, options: argparse.Namespace) -> list[Contestant]:
    found = []
    for name in options.peers:
        try:
            if name in peers.GRAPHS:
                graphs.make(model, folder, peers.GRAPHS[name])
            environment = peers.environment(name, threads, options.isa, options.store)
            found.append(Contestant(name, model, folder, file, threads, environment))
        except Missing as error:
            print(f"not measured: {error}")
        except subprocess.CalledProcessError as error:
            print(f"not measured: {name}: {error.stderr.strip().splitlines()[-1]}")
    return found


def _run_work(
    work: workloads.Work, contestants: list[Contestant], threads: int, place: Path, options: argparse.Namespace
) -> dict[str, Times]:
    times = alternate(contestants, work.name, options.rounds, options.seconds)
    reference = _reference(contestants, place)
    print(f"### {work.name}, {work.tokens} tokens, {threads} thread{'s' if threads > 1 else ''}\n")
    print("| engine | batch | min ms | median ms | p90 ms | worst cosine | peak MB |\n|---|---|---|---|---|---|---|")
    for one in contestants:
        own = times[one.engine]
        spread = " | ".join(f"{1000 * np.percentile(own.flat(threads), share):.2f}" for share in (0, 50, 90))
        batch = own.layout if len(work.ids) > 1 else ""
        close = _closeness(one.vectors(place / "vectors.npy"), reference)
        print(f"| {one.engine} | {batch} | {spread} | {close:.5f} | {one.ask(do='memory')['peak_mb']:.0f} |")
    print(flush=True)
    return times


def _reference(contestants: list[Contestant], place: Path) -> NDArray[np.float32]:
    """The fp32 vectors of torch where it takes part, else of another engine in fp32."""
    by_name = {one.engine: one for one in contestants}
    order = ("torch", *peers.FP32_PEERS, "inkling fp32")
    chosen = next((by_name[name] for name in order if name in by_name), contestants[0])
    return chosen.vectors(place / "vectors.npy")


def _closeness(found: NDArray[np.float32], reference: NDArray[np.float32]) -> float:
    """The worst cosine of a text's vector with its reference; of scores, their correlation."""
    if found.shape[1] == 1:
        return float(np.corrcoef(found[:, 0], reference[:, 0])[0, 1])
    a, b = (x.astype(np.float64) for x in (found, reference))
    return float(((a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)).min())


if __name__ == "__main__":
    main()
