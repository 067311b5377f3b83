"""Models on demand: loaded once however many ask, let go of when idle, never closed under a user."""

import gc
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import CrossEncoder, Encoder, EngineError, ModelError, Models
from engine.registry import start_timer
from tests.goldens.reading import HERE

TINY, OTHER, RERANKER = HERE / "tiny_bert", HERE / "odd_bert", HERE / "reranker_bert"


@dataclass
class Clock:
    """Time that passes when a test says so; what was to be called later is called then."""

    now: float = 1000.0
    calls: list[tuple[float, Callable[[], None], list[bool]]] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now

    def timer(self, seconds: float, call: Callable[[], None]) -> "Handle":
        cancelled = [False]
        self.calls.append((self.now + seconds, call, cancelled))
        return Handle(cancelled)

    def pass_(self, seconds: float) -> None:
        self.now += seconds
        due = [each for each in self.calls if each[0] <= self.now]
        self.calls = [each for each in self.calls if each[0] > self.now]
        for _, call, cancelled in due:
            if not cancelled[0]:
                call()

    def waiting(self) -> int:
        return sum(not cancelled[0] for _, _, cancelled in self.calls)


@dataclass
class Handle:
    cancelled: list[bool]

    def cancel(self) -> None:
        self.cancelled[0] = True


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The name and precision of every encoder that is really loaded."""
    seen: list[tuple[str, str]] = []
    load = Encoder.load

    def noted(model: Path, **options: Any) -> Encoder:
        seen.append((Path(model).name, options["precision"]))
        return load(model, **options)

    monkeypatch.setattr(Encoder, "load", noted)
    return seen


def test_a_model_is_loaded_once_by_whatever_name(loads: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)
    with Models(workers=1) as models:
        one = models.get(TINY)
        assert one is models.get(str(TINY)) is models.get("tiny_bert") is models.get(TINY, precision="int8")
        fp32 = models.get(TINY, precision="fp32")
        assert fp32 is not one and fp32.precision == "fp32"
        assert loads == [("tiny_bert", "int8"), ("tiny_bert", "fp32")]
        assert isinstance(models.reranker(RERANKER), CrossEncoder)
        assert models.reranker(RERANKER) is models.reranker(RERANKER)
        assert len(models.loaded()) == 3


def test_widths_share_one_model(tmp_path: Path, loads: list[tuple[str, str]]) -> None:
    folder = tmp_path / "Qwen3-Embedding-0.6B"
    folder.symlink_to(TINY)
    with Models(workers=1) as models:
        assert models.get(folder, dim=32).encode(["x"]).shape == (1, 32)
        assert models.get(folder).dim == 64
        with pytest.raises(EngineError, match="not trained"):
            models.get(folder, dim=20)
        assert len(loads) == 1


def test_many_threads_that_want_one_model_load_it_once(loads: list[tuple[str, str]]) -> None:
    begun = threading.Barrier(8)

    def work(models: Models, i: int) -> tuple[int, Any]:
        begun.wait()
        encoder = models.get(TINY if i % 2 else OTHER)
        return id(encoder), encoder.encode(["tea"])

    with Models(workers=1) as models, ThreadPoolExecutor(8) as pool:
        found = [each.result() for each in [pool.submit(work, models, i) for i in range(8)]]
        assert sorted(name for name, _ in loads) == ["odd_bert", "tiny_bert"]
        assert len({number for number, _ in found}) == 2
        for i, (_, vector) in enumerate(found):
            np.testing.assert_array_equal(vector, found[i % 2][1])


def test_one_model_that_loads_slowly_blocks_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    load, entered, may_go_on = Encoder.load, threading.Event(), threading.Event()

    def slow(model: Path, **options: Any) -> Encoder:
        if model == TINY:
            entered.set()
            assert may_go_on.wait(60)
        return load(model, **options)

    monkeypatch.setattr(Encoder, "load", slow)
    with Models(workers=1) as models, ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(models.get, TINY) for _ in range(2)]
        assert entered.wait(60)
        assert models.get(OTHER).name == "odd_bert"
        assert not any(each.done() for each in waiting)
        may_go_on.set()
        assert waiting[0].result() is waiting[1].result()


def test_an_error_reaches_everyone_who_waits_and_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    load, entered, may_fail, broken = Encoder.load, threading.Event(), threading.Event(), [True]

    def failing(model: Path, **options: Any) -> Encoder:
        entered.set()
        assert may_fail.wait(60)
        if broken[0]:
            raise ModelError("the disk is on fire")
        return load(model, **options)

    monkeypatch.setattr(Encoder, "load", failing)
    with Models(workers=1) as models, ThreadPoolExecutor(3) as pool:
        first = pool.submit(models.get, TINY)
        assert entered.wait(60)
        others = [pool.submit(models.get, TINY) for _ in range(2)]
        may_fail.set()
        for each in (first, *others):
            with pytest.raises(ModelError, match="on fire"):
                each.result()
        broken[0] = False
        assert models.get(TINY).name == "tiny_bert"


def test_an_interrupted_load_leaves_the_others_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(model: Path, **options: Any) -> Encoder:
        raise KeyboardInterrupt

    with Models(workers=1) as models:
        with monkeypatch.context() as patch:
            patch.setattr(Encoder, "load", interrupted)
            with pytest.raises(KeyboardInterrupt):
                models.get(TINY)
        assert models.get(TINY).name == "tiny_bert"


def test_an_idle_model_is_let_go_of_in_time_and_its_memory_with_it(loads: list[tuple[str, str]]) -> None:
    clock = Clock()
    with Models(workers=1, idle_seconds=60, clock=clock, timer=clock.timer) as models:
        kept = weakref.ref(models.get(TINY))
        clock.pass_(59)
        models.get(OTHER)
        assert models.get(TINY) is kept()
        clock.pass_(59)
        assert kept() is not None and clock.waiting() == 1
        clock.pass_(2)
        assert models.loaded() == [] and clock.waiting() == 0
        assert kept() is None, "freed without the garbage collector's help"
        assert models.get(TINY).encode(["x"]).shape == (1, 64)
        assert [name for name, _ in loads] == ["tiny_bert", "odd_bert", "tiny_bert"]


def test_a_model_in_use_is_never_closed_under_its_user_nor_loaded_twice(loads: list[tuple[str, str]]) -> None:
    clock = Clock()
    with Models(workers=1, idle_seconds=60, clock=clock, timer=clock.timer) as models:
        mine = models.get(TINY)
        cut = weakref.ref(mine)
        clock.pass_(1000)
        assert models.loaded() == []
        assert mine.encode(["x"]).shape == (1, 64)
        assert models.get(TINY) is mine and models.loaded() == [mine] and len(loads) == 1
        narrow = mine.at_dim(32, force=True)
        del mine
        clock.pass_(1000)
        assert cut() is not None, "a narrower one still needs it"
        assert narrow.encode(["x"]).shape == (1, 32)
        assert models.get(TINY) is cut() and len(loads) == 1


def test_models_stay_where_idleness_is_no_matter() -> None:
    clock = Clock()
    with Models(workers=1, idle_seconds=None, clock=clock, timer=clock.timer) as models:
        encoder = models.get(TINY)
        clock.pass_(1e9)
        models.unload_idle()
        assert models.loaded() == [encoder] and clock.waiting() == 0


def test_the_real_timer_calls_and_can_be_cancelled() -> None:
    called = threading.Event()
    start_timer(1e6, called.set).cancel()
    assert not called.is_set()
    start_timer(0.0, called.set)
    assert called.wait(60)


def test_close_ends_every_model_and_the_waiting_for_idleness() -> None:
    clock = Clock()
    models = Models(workers=1, idle_seconds=60, clock=clock, timer=clock.timer)
    held, idle = models.get(TINY), models.get(OTHER)
    clock.pass_(61)
    models.get(TINY)
    models.close()
    models.close()
    assert clock.waiting() == 0
    for encoder in (held, idle):
        with pytest.raises(EngineError, match="was closed"):
            encoder.encode(["x"])
    with pytest.raises(EngineError, match="The models were closed"):
        models.get(TINY)


def test_a_model_that_is_being_loaded_when_all_are_closed_is_given_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    models, begun, go_on, loaded = Models(workers=1), threading.Event(), threading.Event(), list[Encoder]()
    load = Encoder.load

    def slow(*args: Any, **options: Any) -> Encoder:
        begun.set()
        assert go_on.wait(60)
        loaded.append(load(*args, **options))
        return loaded[0]

    monkeypatch.setattr(Encoder, "load", slow)
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(models.get, TINY) for _ in range(2)]
        assert begun.wait(60)
        models.close()
        go_on.set()
        for each in waiting:
            assert str(each.exception(60)) == "The models were closed."
    assert models.loaded() == []
    with pytest.raises(EngineError, match="was closed"):
        loaded[0].encode(["x"])


def test_a_name_that_is_none_and_a_precision_that_is_none_are_sentences(tmp_path: Path) -> None:
    with Models(models_dir=tmp_path) as models:
        with pytest.raises(ModelError, match="no known model"):
            models.get("no-such-model")
        with pytest.raises(EngineError, match="'fp64'"):
            models.get(TINY, precision="fp64")
        with pytest.raises(ModelError, match="a reranker has one"):
            models.reranker(TINY)
    with pytest.raises(EngineError, match="worker count of 0"):
        Models(workers=0)


def test_loading_and_letting_go_again_and_again_keeps_no_memory() -> None:
    clock = Clock()
    with Models(workers=1, idle_seconds=1, clock=clock, timer=clock.timer) as models:
        models.get(TINY).encode(["x"])
        clock.pass_(2)
        gc.collect()
        before = len(gc.get_objects())
        for _ in range(20):
            models.get(TINY).encode(["x"])
            clock.pass_(2)
        gc.collect()
        assert len(gc.get_objects()) - before < 200
