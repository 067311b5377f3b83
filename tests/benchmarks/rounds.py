"""Timing on a machine that is never quite quiet: many short rounds in which every engine has its turn."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tests.benchmarks.contestant import Contestant

# Between turns: threads that spin when their work is done have stopped by then.
PAUSE_SECONDS = 0.03


@dataclass
class Times:
    """Seconds of one engine, every pass of every round. batch: the size that was fastest."""

    batch: int
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


def choose_batch(contestant: Contestant, work: str) -> int:
    """Prepare the work with the batch size that is fastest here, which warms up too."""
    sizes = contestant.ask(do="prepare", work=work)["batch_sizes"]
    fastest = {}
    for size in sizes:
        contestant.ask(do="prepare", work=work, batch=size)
        contestant.ask(do="run", seconds=0)
        if len(sizes) > 1:
            fastest[size] = min(contestant.ask(do="run", seconds=0.2)["wall"])
    best = min(fastest, key=fastest.__getitem__) if fastest else sizes[0]
    contestant.ask(do="prepare", work=work, batch=best)
    return int(best)


def alternate(contestants: Sequence[Contestant], work: str, rounds: int, seconds: float) -> dict[str, Times]:
    """Times by engine: in each round every one runs the work for so long; the order turns round each time."""
    found = {one.engine: Times(choose_batch(one, work)) for one in contestants}
    for one in contestants:
        one.ask(do="run", seconds=seconds)
    for number in range(rounds):
        for one in contestants if number % 2 == 0 else reversed(contestants):
            time.sleep(PAUSE_SECONDS)
            answer = one.ask(do="run", seconds=seconds)
            found[one.engine].wall.append(answer["wall"])
            found[one.engine].cpu.append(answer["cpu"])
    return found
