"""The forward pass takes no more instructions than were recorded: slow, because callgrind is."""

from __future__ import annotations

import pytest

from tests.benchmarks import instructions


@pytest.mark.slow
def test_the_pass_takes_no_more_instructions_than_recorded() -> None:
    assert instructions.available(), "valgrind is needed"
    before = instructions.recorded()
    counts = instructions.count(before)
    print(counts)
    assert not instructions.grown(counts, before)


def test_growth_past_the_bound_is_noticed() -> None:
    before = {"fp32": 1000, "int8": 1000}
    assert instructions.grown({"fp32": 1030, "int8": 1031}, before) == ["int8"]
