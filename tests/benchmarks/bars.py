"""The ratios that we want to keep under, and the table that says whether we do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.benchmarks.peers import FP32_PEERS
from tests.benchmarks.rounds import Ratio, Times

Results = Mapping[tuple[str, int], Mapping[str, Times]]  # (work, threads) -> engine -> times


@dataclass(frozen=True)
class Bar:
    """ours over the fastest of the peers: bar, and stretch where there is one."""

    ours: str
    peers: tuple[str, ...]
    bar: float
    stretch: float | None = None


FP32, INT8, ORT_INT8 = "inkling fp32", "inkling int8", ("onnxruntime int8",)


def _row(fp32: tuple[float, float], int8: tuple[float, float], peer: tuple[float, float]) -> tuple[Bar, ...]:
    return Bar(FP32, FP32_PEERS, *fp32), Bar(INT8, FP32_PEERS, *int8), Bar(INT8, ORT_INT8, *peer)


MINILM = {
    "query12": _row((0.85, 0.75), (0.45, 0.32), (0.85, 0.70)),
    "text128": _row((0.88, 0.80), (0.62, 0.52), (0.90, 0.80)),
    "text512": _row((0.85, 0.75), (0.62, 0.50), (0.90, 0.80)),
    "64x32": _row((0.88, 0.80), (0.60, 0.50), (0.90, 0.80)),
    "ragged256": _row((0.85, 0.78), (0.60, 0.50), (0.90, 0.75)),
}
BASE = (Bar(FP32, FP32_PEERS, 0.92), Bar(INT8, FP32_PEERS, 0.62))
BARS: dict[str, dict[str, tuple[Bar, ...]]] = {
    "minilm": MINILM,
    "base": {"text128": BASE, "ragged256": BASE},
    "bge-base": {"text128": BASE, "ragged256": BASE},
    "reranker": {"pairs100x128": (Bar(INT8, FP32_PEERS, 0.65),)},
}


def fastest(peers: tuple[str, ...], times: Mapping[str, Times], threads: int) -> str | None:
    """The peer whose fastest pass is the fastest: the least that others on the machine can change."""
    present = [name for name in peers if name in times]
    return min(present, key=lambda name: min(times[name].flat(threads)), default=None)


def table(model: str, results: Results) -> list[str]:
    """Lines of Markdown: one for every bar of the model whose engines took part."""
    lines = [
        "| work | threads | ours / peer | ratio | of minima | bar | stretch | met |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (work, threads), times in results.items():
        for bar in BARS.get(model, {}).get("ragged256" if work.startswith("ragged") else work, ()):
            peer = fastest(bar.peers, times, threads)
            if peer is None or bar.ours not in times:
                continue
            ratio = Ratio.of(times[bar.ours], times[peer], threads)
            stretch = "" if bar.stretch is None else f"{bar.stretch:.2f}"
            met = "no" if ratio.median > bar.bar else "stretch" if ratio.median <= (bar.stretch or 0) else "yes"
            lines.append(
                f"| {work} | {threads} | {bar.ours} / {peer} | {ratio.median:.3f} | {ratio.minima:.3f} "
                f"| {bar.bar:.2f} | {stretch} | {met} |"
            )
    return lines if len(lines) > 2 else []
