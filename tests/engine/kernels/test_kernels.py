"""Every kernel against the reference, on every instruction set that this processor runs."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engine.computation import Computation
from engine.errors import EngineError, KernelError
from engine.kernels import loader
from engine.kernels.native import ACTIVATION_MODES, Buffer, NativePlan, _share
from engine.layers.activation import ACTIVATIONS
from engine.plan import run_reference
from engine.weights.loaded import LinearF32, TableF32
from tests.engine.kernels.cases import (
    ATTENTIONS,
    ONE_ROW,
    PLAN_BOUNDS,
    SCORES,
    SIZES,
    Case,
    SmallModel,
    blinkered,
    early,
    every_case,
    modern_model,
    one_row,
    scored_model,
    small_model,
    static_model,
)

PATH = loader.library_path()
assert PATH is not None
RUNNABLE = loader.open_library(PATH).runnable
WITH_U8 = [isa for isa in RUNNABLE if loader.open_library(PATH, isa).has_u8]
CASES = [case for case in every_case() if case.kernel != "plan"]


def run(found: loader.Library, case: Case) -> list[np.ndarray[Any, Any]]:
    """Call the kernel on outputs filled with NaN."""
    kinds = getattr(found.functions, f"ink_{case.kernel}").argtypes[1:]
    outs = [np.full(o.shape, np.nan, o.dtype) if o.dtype.kind == "f" else np.zeros_like(o) for o in case.outputs]
    if case.kernel == "act":
        np.copyto(outs[0], case.inputs[0])
    scratch = np.empty(1 << 20, np.uint8)
    arrays = {
        "gemm": lambda: [*case.inputs, *outs, *case.ints[:3], scratch if case.ints[3] else None],
        "gemm_i8": lambda: [*case.inputs, *outs, *case.ints[:3], scratch if case.ints[3] else None],
        "gemm_u8": lambda: [*case.inputs, *outs, *case.ints, scratch],
        "act": lambda: [outs[0], *case.ints],
        "scan_int8": lambda: [*case.inputs, *outs, *case.ints],
        "maxsim": lambda: [case.inputs[0], *case.ints[:2], *case.inputs[1:], case.ints[2], *outs, scratch],
        "pack_bits": lambda: [*case.inputs, *outs, *case.ints],
    }[case.kernel]()
    found.call(
        case.kernel,
        *(loader.pointer(a, k) if isinstance(a, np.ndarray) else a for a, k in zip(arrays, kinds, strict=True)),
    )
    return outs


@pytest.mark.parametrize(
    ("case", "isa"),
    [pytest.param(case, isa, id=f"{case.kernel} {case.name}-{isa}") for case in CASES
     for isa in (WITH_U8 if case.needs_u8 else RUNNABLE)],
)  # fmt: skip
def test_each_kernel_equals_the_reference(case: Case, isa: str) -> None:
    found = loader.open_library(PATH, isa)
    for wanted, got in zip(case.outputs, run(found, case), strict=True):
        if wanted.dtype.kind != "f":
            assert np.array_equal(wanted, got)
            continue
        compared = ~np.isnan(wanted)
        assert np.abs(wanted - got)[compared].max(initial=0) <= case.bound


@pytest.mark.parametrize("isa", RUNNABLE)
@pytest.mark.parametrize("mode", ["gelu", "gelu_new", "relu", "silu"])
def test_an_activation_keeps_what_is_not_a_number_and_gives_the_limits_of_infinity(mode: str, isa: str) -> None:
    x = np.tile(np.array([np.nan, np.inf, -np.inf, -3.4e38], np.float32), 8)
    wanted = ACTIVATIONS[mode](x)
    (got,) = run(loader.open_library(PATH, isa), Case("act", mode, (x.size, ACTIVATION_MODES[mode]), [x], [wanted], 0))
    for values in (wanted, got):
        assert np.isnan(values[::4]).all() and np.isposinf(values[1::4]).all()
        assert np.abs(values[2::4]).max() < 1e-6 and np.abs(values[3::4]).max() < 1e-6


@pytest.mark.parametrize(
    ("precision", "isa"),
    [(precision, isa) for precision in PLAN_BOUNDS for isa in (WITH_U8 if precision == "int8-full" else RUNNABLE)],
)
@pytest.mark.parametrize("hidden, heads, inner", SIZES)
def test_a_plan_equals_the_reference_and_itself_at_any_batch_and_worker_count(
    isa: str, precision: str, hidden: int, heads: int, inner: int
) -> None:
    model = small_model(np.random.default_rng(hidden), hidden, heads, inner, precision, "mean")
    check_plan(model, isa, PLAN_BOUNDS[precision])


@pytest.mark.parametrize("isa", RUNNABLE)
@pytest.mark.parametrize("kind", ATTENTIONS)
def test_every_kind_of_attention_equals_the_reference_and_itself(isa: str, kind: str) -> None:
    check_plan(modern_model(np.random.default_rng(5), kind), isa, PLAN_BOUNDS["fp32"])


@pytest.mark.parametrize("isa", RUNNABLE)
@pytest.mark.parametrize("kind", ATTENTIONS)
def test_keys_that_are_not_to_be_seen_are_not(isa: str, kind: str) -> None:
    check_plan(blinkered(modern_model(np.random.default_rng(5), kind)), isa, PLAN_BOUNDS["fp32"])


@pytest.mark.parametrize("isa", RUNNABLE)
@pytest.mark.parametrize(("pooling", "skip_prompt"), ONE_ROW)
@pytest.mark.parametrize("kind", ATTENTIONS)
def test_pooling_one_row_early_gives_the_bits_of_the_whole_plan(
    isa: str, kind: str, pooling: str, skip_prompt: bool
) -> None:
    model = one_row(np.random.default_rng(5), kind, pooling, skip_prompt=skip_prompt)
    for case in (model, blinkered(model)):
        check_plan(case, isa, PLAN_BOUNDS["fp32"])
        check_early(case, isa, PLAN_BOUNDS["fp32"])


@pytest.mark.parametrize("isa", RUNNABLE)
@pytest.mark.parametrize("scores", SCORES)
def test_attention_takes_scores_of_any_size(isa: str, scores: str) -> None:
    for kind in ATTENTIONS:
        first, last = (scored_model(np.random.default_rng(5), kind, scores, mode) for mode in ("cls", "lasttoken"))
        for case in (first, blinkered(last)):
            check_plan(case, isa, PLAN_BOUNDS["fp32"])
            check_early(case, isa, PLAN_BOUNDS["fp32"])


@pytest.mark.parametrize(
    ("precision", "isa"),
    [(precision, isa) for precision in PLAN_BOUNDS for isa in (WITH_U8 if precision == "int8-full" else RUNNABLE)],
)
@pytest.mark.parametrize("pooling", ["cls", "lasttoken"])
@pytest.mark.parametrize("hidden, heads, inner", SIZES)
def test_pooling_one_row_early_gives_the_bits_of_the_whole_plan_in_every_precision(
    isa: str, precision: str, pooling: str, hidden: int, heads: int, inner: int
) -> None:
    model = small_model(np.random.default_rng(hidden), hidden, heads, inner, precision, pooling)
    check_plan(model, isa, PLAN_BOUNDS[precision])
    check_early(model, isa, PLAN_BOUNDS[precision])


def check_early(model: SmallModel, isa: str, bound: float) -> None:
    """The steps for the pooled rows alone: to the bit those of the whole plan, and close to themselves in NumPy."""
    plan = NativePlan(model.plan, model.weights, loader.open_library(PATH, isa), 2)
    wanted, _ = plan.run(model.batch, want_tokens=True)
    pooled, tokens = plan.run(model.batch, want_tokens=False)
    assert tokens is None and np.array_equal(pooled, wanted)
    assert np.abs(run_reference(early(model).plan, model.weights, model.batch)[0] - pooled).max() <= bound


@pytest.mark.parametrize("isa", RUNNABLE)
@pytest.mark.parametrize("pooling", ["cls", "lasttoken"])
def test_a_text_without_a_row_to_pool_takes_its_batch_through_the_whole_plan(isa: str, pooling: str) -> None:
    model = one_row(np.random.default_rng(5), "bias", pooling, skip_prompt=True)
    batch = model.batch.of([np.array([1, 2, 3], np.int32), np.array([4, 5], np.int32)], prompt=2)
    plan = NativePlan(model.plan, model.weights, loader.open_library(PATH, isa), 1)
    pooled, _ = plan.run(batch, want_tokens=False)
    assert np.array_equal(pooled, plan.run(batch, want_tokens=True)[0])
    assert np.abs(run_reference(model.plan, model.weights, batch)[0] - pooled).max() <= PLAN_BOUNDS["fp32"]


@pytest.mark.parametrize("isa", RUNNABLE)
@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_a_static_table_equals_the_reference_and_itself(isa: str, precision: str) -> None:
    for width in (21, 405):
        check_plan(static_model(np.random.default_rng(5), precision, width), isa, PLAN_BOUNDS["fp32"])


def check_plan(model: SmallModel, isa: str, bound: float) -> None:
    """Equal to the reference within the bound, and to itself bit for bit, alone or in a batch, with 1 to 3 workers."""
    pooled, tokens = run_reference(model.plan, model.weights, model.batch)
    found = loader.open_library(PATH, isa)
    plan = NativePlan(model.plan, model.weights, found, 1)
    got_pooled, got_tokens = plan.run(model.batch, want_tokens=True)
    assert got_tokens is not None
    assert np.abs(got_pooled - pooled).max() <= bound
    assert np.abs(got_tokens - tokens).max() <= bound * 4
    for workers in (2, 3):
        more, _ = NativePlan(model.plan, model.weights, found, workers).run(model.batch, want_tokens=False)
        assert np.array_equal(more, got_pooled)
    for i, (start, end) in enumerate(zip(model.batch.starts[:-1], model.batch.starts[1:], strict=True)):
        seen = None if model.batch.visible is None else model.batch.visible[i : i + 1]
        alone = model.batch.of([model.batch.ids[start:end]], prompt=model.batch.prompt, visible=seen)
        assert np.array_equal(plan.run(alone, want_tokens=False)[0][0], got_pooled[i])


@pytest.mark.parametrize("isa", RUNNABLE)
def test_int8_full_is_refused_where_there_are_no_products_of_four(isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = small_model(np.random.default_rng(1), 24, 2, 40, "int8-full", "mean")
    monkeypatch.setattr("engine.kernels.library", lambda: loader.open_library(PATH, isa))
    if isa in WITH_U8:
        Computation("tiny", model.plan, model.weights, 1).run(model.batch, want_tokens=False)
        return
    with pytest.raises(EngineError, match=f"int8-full needs products of four .* the {isa} kernels"):
        Computation("tiny", model.plan, model.weights, 1)


def test_nan_in_a_row_stays_in_its_row() -> None:
    found = loader.open_library(PATH)
    a = np.ones((20, 64), np.float32)
    a[7] = np.nan
    panels, out = np.ones((3, 64, 16), np.float32), np.empty((20, 48), np.float32)
    f32 = loader.F32P
    found.call("gemm", loader.pointer(a, f32), loader.pointer(panels, f32), loader.pointer(out, f32), 20, 64, 48, None)
    assert np.isnan(out[7]).all() and np.array_equal(np.delete(out, 7, 0), np.full((19, 48), 64, np.float32))


@pytest.mark.parametrize(
    ("precision", "isa"),
    [(precision, isa) for precision in ("int8", "int8-full") for isa in (RUNNABLE if precision == "int8" else WITH_U8)],
)
@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("width", [24, 64])
def test_a_row_that_is_not_finite_does_not_come_out_of_int8_as_numbers(
    precision: str, isa: str, poison: float, width: int
) -> None:
    model = small_model(np.random.default_rng(2), width, 2, 40, precision, "mean")
    word = model.weights["embeddings.word"]
    values = word.rows(np.arange(50, dtype=np.int32)).copy()
    values[7, width - 1] = poison
    weights = {**model.weights, "embeddings.word": TableF32(values)}
    batch = model.batch.of([np.array([3, 4, 5], np.int32), np.array([7, 8], np.int32)])
    plan = NativePlan(model.plan, weights, loader.open_library(PATH, isa), 1)
    pooled = plan.run(batch, want_tokens=False)[0]
    assert np.isfinite(pooled[0]).all() and np.isnan(pooled[1]).all()


@pytest.mark.parametrize("isa", RUNNABLE)
@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("poison", [np.nan, np.inf, 3e38, 1e-36])
def test_a_text_keeps_its_bits_beside_one_of_odd_numbers(precision: str, isa: str, poison: float) -> None:
    """Rows are multiplied in pairs: those of one text in float32, and int8's codes must not pass their limit."""
    model = small_model(np.random.default_rng(2), 128, 2, 160, precision, "mean")
    word = model.weights["embeddings.word"]
    values = word.rows(np.arange(50, dtype=np.int32)).copy()
    values[7] = values[7] * np.float32(1e-36) if poison == 1e-36 else poison
    weights = {**model.weights, "embeddings.word": TableF32(values)}
    lengths = (([3, 4], 35), ([7], 37), ([5, 6], 3), ([8], 48))
    texts = [np.resize(np.array(ids, np.int32), length) for ids, length in lengths]
    plan = NativePlan(model.plan, weights, loader.open_library(PATH, isa), 1)
    pooled = plan.run(model.batch.of(texts), want_tokens=False)[0]
    for i in (0, 2, 3):
        assert np.array_equal(pooled[i], plan.run(model.batch.of([texts[i]]), want_tokens=False)[0][0])
    assert np.isfinite(pooled[[0, 2, 3]]).all()


def test_rows_are_multiplied_in_pairs_where_blocks_of_inputs_are_long_enough() -> None:
    found = loader.open_library(PATH)
    for hidden, inner, wanted in ((128, 160, 8), (128, 96, 6), (64, 96, 0), (201, 150, 0), (448, 512, 2)):
        model = small_model(np.random.default_rng(1), hidden, 1, inner, "fp32", "mean")
        plan = NativePlan(model.plan, model.weights, found, 1)
        assert sum(op.pairs for op in plan._whole.ops) == wanted, (hidden, inner)


@pytest.mark.parametrize("isa", RUNNABLE)
def test_scores_of_any_size_give_finite_weights(isa: str) -> None:
    model = modern_model(np.random.default_rng(5), "window")
    queries = model.weights["qkv.weight"]
    assert isinstance(queries, LinearF32)
    huge = {**model.weights, "qkv.weight": LinearF32(queries.panels * np.float32(1e6), queries.outputs)}
    pooled = NativePlan(model.plan, huge, loader.open_library(PATH, isa), 1).run(model.batch, want_tokens=False)[0]
    assert np.isfinite(pooled).all() and np.isfinite(run_reference(model.plan, huge, model.batch)[0]).all()


def test_the_check_at_load_notices_a_wrong_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    assert loader.differing_kernels(loader.open_library(PATH)) == []
    monkeypatch.setattr(loader.reference, "scan_int8", lambda codes, scales, query: scales * 3)
    assert loader.differing_kernels(loader.open_library(PATH)) == ["scan_int8"]


def test_an_unknown_instruction_set_is_refused_with_what_there_is() -> None:
    with pytest.raises(KernelError, match="INKLING_ISA asks for 'sse9'"):
        loader.open_library(PATH, "sse9")


def test_an_instruction_set_that_this_processor_lacks_is_refused_with_those_that_it_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def of_an_old_processor(path: str) -> ctypes.CDLL:
        functions = ctypes.CDLL(path)
        monkeypatch.setattr(functions, "ink_isa_runs", lambda index: index == 0, raising=False)
        return functions

    functions = loader.open_library(PATH).functions
    first, best = (functions.ink_isa_name(i).decode() for i in (0, functions.ink_isa_count() - 1))
    monkeypatch.setattr(loader, "ctypes", SimpleNamespace(CDLL=of_an_old_processor))
    assert loader.open_library(PATH).isa == first
    with pytest.raises(KernelError, match=f"INKLING_ISA asks for '{best}', but this processor runs {first} "):
        loader.open_library(PATH, best)


def test_a_library_of_other_sources_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.kernels.build.source_hash", lambda: "0" * 64)
    with pytest.raises(KernelError, match="compiled from other sources; rebuild"):
        loader.open_library(PATH)


def test_a_file_that_is_no_library_is_refused(tmp_path: Any) -> None:
    path = tmp_path / "library.so"
    path.write_bytes(b"nothing")
    with pytest.raises(KernelError, match="cannot be loaded"):
        loader.open_library(path)


def test_values_that_live_at_the_same_time_never_share_a_slot() -> None:
    tokens = [Buffer(64, "tokens", 0, 2), Buffer(32, "tokens", 1, 3), Buffer(128, "tokens", 3, 4)]
    buffers = [*tokens, Buffer(8, "texts", 4, 9)]
    slots, slot_of = _share(buffers)
    assert slot_of[0] != slot_of[1] and slot_of[2] == slot_of[0] and slot_of[3] not in slot_of[:3]
    assert slots[slot_of[0]] == (128, "tokens")
