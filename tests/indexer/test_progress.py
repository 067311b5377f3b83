"""Progress tells what is done, what waits and how long it will take."""

from __future__ import annotations

import pytest

from indexer import progress
from indexer.progress import ProgressMeter
from indexer.protocol import Event, Progress


def test_counts_rate_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 50.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    told: list[Event] = []
    meter = ProgressMeter(told.append, interval_s=0.2)
    assert meter.is_due()
    meter.report("words", "/a", 100, 0, 0)
    assert told[-1] == Progress("words", "/a", 0, 100, 0, 0, 0.0, None, 0)
    assert not meter.is_due()
    for _ in range(20):
        meter.file_done()
    now += 2.0
    assert meter.is_due()
    meter.report("words", "/b", 80, 40, 1)
    assert told[-1] == Progress("words", "/b", 20, 100, 0, 40, 10.0, 8.0, 1)
    meter.embedded(30)
    now += 1.0
    meter.report("meaning", "", 0, 10, 1)
    assert told[-1] == Progress("meaning", "", 20, 20, 30, 40, 10.0, 1.0, 1)
    meter.finished()
    meter.report("words", "/c", 5, 0, 1)
    assert told[-1] == Progress("words", "/c", 0, 5, 0, 0, 0.0, None, 1)
