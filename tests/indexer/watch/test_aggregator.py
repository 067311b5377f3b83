"""Hints become places to look at, once those have come to rest."""

from __future__ import annotations

import itertools

from indexer.watch.aggregator import MOST_PLACES, Aggregator
from indexer.watch.hints import Hint


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def make(clock: Clock) -> Aggregator:
    return Aggregator(quiet_s=0.5, longest_s=3.0, pause_s=30.0, clock=clock)


def path(name: bytes = b"/a") -> Hint:
    return Hint("path", name)


def test_a_path_is_given_out_once_it_has_been_quiet() -> None:
    clock = Clock()
    places = make(clock)
    assert places.next_due_s() is None and places.due() == ([], False)
    places.add(path())
    assert places.due() == ([], False)
    assert places.next_due_s() == 0.5
    clock.now += 0.4
    places.add(path())
    clock.now += 0.4
    assert places.due() == ([], False)
    clock.now += 0.2
    assert places.due() == ([path()], False)
    assert places.due() == ([], False) and places.next_due_s() is None


def test_many_hints_on_one_place_are_one_and_the_wider_wins() -> None:
    clock = Clock()
    places = make(clock)
    places.add(path())
    places.add(Hint("tree", b"/a"))
    places.add(path())
    clock.now += 1
    assert places.due() == ([Hint("tree", b"/a")], False)


def test_both_names_of_a_move_come_together() -> None:
    clock = Clock()
    places = make(clock)
    places.add(path(b"/old"))
    clock.now += 0.01
    places.add(path(b"/new"))
    clock.now += 0.495
    assert places.due() == ([path(b"/old"), path(b"/new")], False)
    clock.now += 0.1
    places.add(path(b"/new"))
    clock.now += 0.6
    assert places.due() == ([path(b"/new")], False), "coming early is no restlessness"


def test_a_path_that_never_rests_is_read_all_the_same_and_then_held_back() -> None:
    clock = Clock()
    places = make(clock)
    given_at = []
    started = clock.now
    while clock.now < started + 60:
        places.add(path())
        if places.due()[0]:
            given_at.append(clock.now - started)
        clock.now += 0.1
    assert 2.9 <= given_at[0] <= 3.2
    assert len(given_at) <= 3 and all(b - a >= 29 for a, b in itertools.pairwise(given_at))


def test_too_many_hints_or_lost_ones_mean_a_look_at_everything() -> None:
    clock = Clock()
    places = make(clock)
    places.add(Hint("everything", b""))
    assert places.next_due_s() == 0.0
    assert places.due() == ([], True)
    assert places.due() == ([], False)
    for number in range(MOST_PLACES + 1):
        places.add(path(b"/%d" % number))
    assert places.due() == ([], True)
