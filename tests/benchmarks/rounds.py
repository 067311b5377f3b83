"""Timing on a machine that is never quite quiet: many short rounds in which every engine has its turn."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tests.benchmarks.contestant import Contestant

# Between turns: threads that spin when their work is done have stopped by then.
PAUSE_SECONDS = 0.03


@dataclass(frozen=True)
class Layout:
    """batch: texts at once, 0 where the engine decides; streams: a batch on each thread, not one on all."""

    batch: int
    streams: bool = False

    def __str__(self) -> str:
        return f"{self.batch or ''}{' a thread' if self.streams else ''}"


@dataclass
class Times:
    """Seconds of one engine, every pass of every round."""

    layout: Layout
    wall: list[list[float]] = field(default_factory=list)
    cpu: list[list[float]] = field(default_factory=list)

    def of(self, threads: int) -> list[list[float]]:
        """Processor time on one thread, which another process on the core does not lengthen; else wall time."""
        return self.cpu if threads == 1 else self.wall

    def rounds(self, threads: int) -> list[float]:
        """The median pass of each round."""
        return [float(np.median(passes)) for passes in self.of(threads)]

    def flat(self, threads: int) -> list[float]:
        """All passes."""
        return [value for passes in self.of(threads) for value in passes]


@dataclass(frozen=True)
class Ratio:
    """median: of the rounds' ratios; minima: of the fastest passes."""

    median: float
    minima: float

    @classmethod
    def of(cls, ours: Times, theirs: Times, threads: int) -> Ratio:
        """Our time over theirs."""
        pairs = zip(ours.rounds(threads), theirs.rounds(threads), strict=True)
        minima = min(ours.flat(threads)) / min(theirs.flat(threads))
        return cls(float(np.median([a / b for a, b in pairs])), minima)


def choose_layout(contestant: Contestant, work: str) -> Layout:
    """Prepare the work in the layout that is fastest here, which warms up too."""
    offered = contestant.ask(do="prepare", work=work)
    streams = (False, True) if offered["has_streams"] else (False,)
    layouts = [Layout(size, each) for size in offered["batch_sizes"] for each in streams]
    fastest = {}
    for layout in layouts:
        contestant.ask(do="prepare", work=work, batch=layout.batch, streams=layout.streams)
        contestant.ask(do="run", seconds=0)
        fastest[layout] = min(contestant.ask(do="run", seconds=0.2)["wall"]) if len(layouts) > 1 else 0.0
    best = min(fastest, key=fastest.__getitem__)
    contestant.ask(do="prepare", work=work, batch=best.batch, streams=best.streams)
    return best


def alternate(contestants: Sequence[Contestant], work: str, rounds: int, seconds: float) -> dict[str, Times]:
    """Times by engine: in each round every one runs the work for so long; the order turns round each time."""
    found = {one.engine: Times(choose_layout(one, work)) for one in contestants}
    for one in contestants:
        one.ask(do="run", seconds=seconds)
    for number in range(rounds):
        for one in contestants if number % 2 == 0 else reversed(contestants):
            time.sleep(PAUSE_SECONDS)
            answer = one.ask(do="run", seconds=seconds)
            found[one.engine].wall.append(answer["wall"])
            found[one.engine].cpu.append(answer["cpu"])
    return found
