"""Measure how fast a model is on this machine.

For each precision and number of workers, in a process of its own: one query of 12 tokens, one text of 128, a batch of
texts of all lengths; how long the program takes from its start to the first vector, and its peak memory. Times are
medians, with the tenth and ninetieth part of a hundred behind them.
"""

from __future__ import annotations

import argparse
import math
import os
from typing import Any

from app.benchmark import Case, Latency, machine, measure_here, run_case
from app.cli.arguments import given_text, workers
from app.progress import Progress
from app.terminal import json_text, printable
from engine.catalog import DEFAULT_MODEL, model_path
from engine.options import PRECISIONS, available_precisions
from engine.reranker_folder import open_folder

SECONDS = 2.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What is measured, and for how long."""
    model_help = f"catalog name or folder ({DEFAULT_MODEL})"
    parser.add_argument("--model", type=given_text, default=DEFAULT_MODEL, metavar="M", help=model_help)
    parser.add_argument("--precision", choices=PRECISIONS, default="auto", help="one of them (all that can be had)")
    parser.add_argument("--workers", type=_counts, metavar="N,N", help="numbers of threads (one, and one a core)")
    parser.add_argument("--seconds", type=_seconds, default=SECONDS, metavar="S", help=f"for each number ({SECONDS:g})")
    parser.add_argument("--case", action="store_true", help=argparse.SUPPRESS)  # the process of one case


def run(args: argparse.Namespace) -> int:
    """Measure and print; the exit code."""
    path = model_path(args.model, args.folders.models)
    counts = args.workers or sorted({1, os.cpu_count() or 1})
    if args.case:
        measure_here(path, args.precision, counts[0], args.seconds)
        return 0
    available = available_precisions(open_folder(path))
    precisions = available if args.precision == "auto" else (args.precision,)
    cases: list[Case] = []
    with Progress("Measuring", total=len(precisions) * len(counts), unit="cases") as bar:
        for precision in precisions:
            for count in counts:
                bar.update(len(cases), note=f"{precision}, {count}")
                cases.append(run_case(path, precision, count, args.seconds))
    here = machine()
    if args.json:
        print(json_text({"model": path.name, "machine": here, "cases": [case.as_json() for case in cases]}, indent=1))
        return 0
    for line in described(path.name, here, cases):
        print(printable(line))
    return 0


def described(name: str, here: dict[str, Any], cases: list[Case]) -> list[str]:
    """The lines of a table, for a person."""
    isa = cases[0].isa
    title = f"{name} on {here['processor']}, {here['cores']} cores, {isa}, Python {here['python']}, {here['system']}"
    first = cases[0]
    heads = ["precision", "workers", f"{first.query.tokens} tokens", f"{first.text.tokens} tokens",
             f"{first.batch.texts} texts, {first.batch.tokens} tokens", "first vector", "peak memory"]  # fmt: skip
    rows = [heads]
    for case in cases:
        batch = f"{case.batch.tokens_a_second:,.0f} tokens/s"
        peak = "" if case.peak_bytes is None else f"{case.peak_bytes / 1e6:,.0f} MB"
        rows.append(
            [case.precision, str(case.workers), _latency(case.query), _latency(case.text), batch,
             f"{case.first_vector_s:.2f} s", peak]
        )  # fmt: skip
    widths = [max(len(row[i]) for row in rows) for i in range(len(heads))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return [title, *lines]


def _latency(found: Latency) -> str:
    return f"{found.median_ms:.2f} ms ({found.p10_ms:.2f}-{found.p90_ms:.2f})"


def _counts(text: str) -> list[int]:
    return [workers(part) for part in text.split(",")]


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= 3600:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0 and up to 3600")
    return value
