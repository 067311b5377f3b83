"""Texts of many requests in common batches: whose turn it is, who computes, and whose error it is."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import pytest

from app.serving import batching
from app.serving.batching import BatchQueue
from app.serving.metrics import Metrics


class Engine:
    """Vectors of one number, the text's; each round waits until it is let on."""

    def __init__(self) -> None:
        self.rounds: list[list[str]] = []
        self.entered, self.may_go_on = threading.Semaphore(0), threading.Semaphore(0)

    def __call__(self, texts: list[str]) -> np.ndarray:
        self.rounds.append(texts)
        self.entered.release()
        assert self.may_go_on.acquire(timeout=60)
        if "broken" in texts:
            raise ValueError("a broken text")
        return np.array([[float(text)] for text in texts], np.float32)


def numbers(*values: int) -> list[str]:
    return [str(value) for value in values]


def waiting(queue: BatchQueue, count: int) -> bool:
    with queue._changed:
        return len(queue._jobs) >= count


def submit(pool: ThreadPoolExecutor, queue: BatchQueue, texts: list[str], count: int) -> Future[np.ndarray]:
    """A request, once it stands in the queue as one of `count`."""
    found = pool.submit(queue.submit, texts)
    while not waiting(queue, count) and not found.done():
        threading.Event().wait(0.001)
    return found


def test_what_comes_while_a_round_runs_goes_together_in_the_next() -> None:
    engine, metrics = Engine(), Metrics()
    queue = BatchQueue(engine, metrics)
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(queue.submit, numbers(1))
        assert engine.entered.acquire(timeout=60)
        others = [submit(pool, queue, numbers(10 * i, 10 * i + 1), i) for i in (2, 3, 4)]
        for _ in range(2):
            engine.may_go_on.release()
        assert first.result().tolist() == [[1]]
        assert [each.result().tolist() for each in others] == [[[10 * i], [10 * i + 1]] for i in (2, 3, 4)]
    assert engine.rounds[0] == ["1"] and sorted(engine.rounds[1]) == numbers(20, 21, 30, 31, 40, 41)
    assert len(engine.rounds) == 2 and "inkling_batches_total 2" in metrics.text(0)


def test_a_long_request_does_not_hold_up_a_short_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "ROUND_CHARS", 4)
    engine = Engine()
    queue = BatchQueue(engine, Metrics())
    with ThreadPoolExecutor(2) as pool:
        long = pool.submit(queue.submit, [str(i % 10) for i in range(20)])
        assert engine.entered.acquire(timeout=60)
        short = submit(pool, queue, numbers(7), 2)
        engine.may_go_on.release()
        assert engine.entered.acquire(timeout=60)
        engine.may_go_on.release()
        assert short.result(timeout=60).tolist() == [[7]] and not long.done()
        for _ in range(10):
            engine.may_go_on.release()
        assert long.result().tolist() == [[i % 10] for i in range(20)]
    assert [len(texts) for texts in engine.rounds] == [4, 4, 4, 4, 4, 1] and "7" in engine.rounds[1]


def test_an_error_is_that_of_whoever_was_in_the_round_and_of_nobody_else() -> None:
    engine = Engine()
    queue = BatchQueue(engine, Metrics())
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(queue.submit, numbers(1))
        assert engine.entered.acquire(timeout=60)
        both = [submit(pool, queue, texts, i) for i, texts in enumerate((["2", "broken"], ["3"]), 2)]
        for _ in range(2):
            engine.may_go_on.release()
        assert first.result().tolist() == [[1]]
        for each in both:
            with pytest.raises(ValueError, match="a broken text"):
                each.result()
        engine.may_go_on.release()
        assert queue.submit(numbers(4)).tolist() == [[4]]


def test_many_requests_at_once_get_their_own_vectors() -> None:
    def encode(texts: list[str]) -> np.ndarray:
        return np.array([[float(text)] for text in texts], np.float32)

    queue, begun = BatchQueue(encode, Metrics()), threading.Barrier(16)

    def ask(number: int) -> bool:
        begun.wait()
        random = np.random.default_rng(number)
        for _ in range(200):
            wanted = random.integers(0, 10_000, int(random.integers(1, 30)))
            if queue.submit([str(value) for value in wanted]).ravel().tolist() != wanted.tolist():
                return False
        return True

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(ask, range(16)))
    assert queue._jobs == [] and not queue._computing


def test_metrics_are_written_as_prometheus_reads_them() -> None:
    metrics: Metrics = Metrics()
    add: Callable[..., None] = metrics.count
    add("texts", 3)
    add("texts", 10_000_000)
    metrics.answered("/embed", 200, 0.25)
    metrics.answered("/embed", 200, 0.5)
    metrics.answered("/embed", 413, 0.0)
    lines = metrics.text(2).splitlines()
    assert "inkling_texts_total 10000003" in lines
    assert 'inkling_requests_total{path="/embed",status="200"} 2' in lines
    assert 'inkling_requests_total{path="/embed",status="413"} 1' in lines
    assert 'inkling_request_seconds_total{path="/embed"} 0.75' in lines
    assert lines[-1] == "inkling_models_loaded 2"
    assert all(line.startswith(("# HELP inkling_", "# TYPE inkling_", "inkling_")) for line in lines)
