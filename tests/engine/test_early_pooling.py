"""Pooling before the last layer's row-wise steps: which steps are left, and that nothing but the work changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engine import CrossEncoder, Encoder
from engine.batch import Batch
from engine.early_pooling import pool_early
from engine.folder import ModelFolder
from engine.kernels import loader
from engine.kernels.native import LINEAR, LINEAR_I8, LINEAR_U8, NativePlan
from engine.layers.attention import Attention
from engine.layers.embedding import embedding
from engine.layers.linear import Linear, linear
from engine.layers.norm import layer_norm
from engine.layers.pooling import POOLING_MODES, Pool, pool
from engine.models.static import MODEL_TYPE
from engine.plan import Graph, Plan, Value, run_reference, run_steps
from engine.reranker_folder import RerankerFolder
from engine.weights.packed import load
from engine.weights.stored import StoredPrecision
from tests.engine.kernels.cases import ATTENTIONS, one_row, small_model
from tests.goldens.reading import HERE, checkpoints
from tests.goldens.texts import AWKWARD, ordinary

ENCODERS = [name for name, family in checkpoints().items() if family != MODEL_TYPE]
RERANKERS = sorted(folder.name for folder in HERE.glob("reranker_*"))
SINGLE = ("cls", "lasttoken")
NUMPY_BOUND = 1e-5  # of the largest number: NumPy adds up a product of one row in another order


def plans(name: str) -> list[Plan]:
    """A golden's plans with one row pooled: an encoder's both ways, a reranker's first."""
    if name in RERANKERS:
        folder = RerankerFolder.open(HERE / name)
        return [replace(folder, classifier=replace(folder.classifier, pooling="cls")).plan()]
    return [replace(ModelFolder.open(HERE / name), pooling=pooling).plan() for pooling in SINGLE]


@pytest.mark.parametrize("name", [*ENCODERS, *RERANKERS])
def test_everything_behind_the_last_attention_has_one_row_a_text(name: str) -> None:
    for plan in plans(name):
        early = pool_early(plan)
        assert early is not None and early.ops[-1].out == plan.pooled
        last = max(i for i, op in enumerate(early.ops) if isinstance(op, Attention))
        assert {op.out.rows for op in early.ops[last:]} == {"texts"}
        # Not a layer is lost, and what the last attention reads is all there.
        assert [op.name for op in early.ops if isinstance(op, Linear)] == [
            op.name for op in plan.ops if isinstance(op, Linear)
        ]
        before = [op for op in early.ops if op.out.rows == "tokens"]
        assert before == list(plan.ops[: len(before)])
        # The residual sum takes the pooled rows of what comes into the layer, once.
        assert sum(isinstance(op, Pool) for op in early.ops) == 1


@pytest.mark.parametrize("name", [*ENCODERS, *RERANKERS])
def test_in_numpy_the_steps_compute_what_the_whole_plan_does(name: str) -> None:
    folder = RerankerFolder.open(HERE / name) if name in RERANKERS else ModelFolder.open(HERE / name)
    with folder.weights() as weights:
        loaded = load(folder.parameters(), weights, "fp32", folder.backbone.family.prefixes)
    random = np.random.default_rng(4)
    batch = Batch.of([random.integers(3, 60, n).astype(np.int32) for n in (1, 2, 9, 23, 40, 17)], 1)
    for plan in plans(name):
        early = pool_early(plan)
        assert early is not None
        wanted = run_reference(plan, loaded, batch)[0]
        found = run_steps(early.ops, loaded, batch)[plan.pooled]
        assert np.abs(found - wanted).max() <= NUMPY_BOUND * np.abs(wanted).max()


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("pooling", SINGLE)
@pytest.mark.parametrize("name", ENCODERS)
def test_vectors_are_the_same_to_the_bit_with_and_without_token_vectors(
    compiled: str, name: str, pooling: str, precision: StoredPrecision
) -> None:
    assert_same_vectors(compiled, name, pooling, precision, ["x " * n for n in range(0, 90, 7)])


@pytest.mark.parametrize("pooling", SINGLE)
def test_vectors_are_the_same_with_and_without_token_vectors_whatever_computes_them(isa: str, pooling: str) -> None:
    assert_same_vectors(isa, "odd_bert", pooling, "fp32", ["x " * n for n in (1, 20, 3)])


def assert_same_vectors(isa: str, name: str, pooling: str, precision: StoredPrecision, more: list[str]) -> None:
    texts = [*AWKWARD.values(), *ordinary(8), *more]
    for include_prompt in (True, False):
        folder = replace(ModelFolder.open(HERE / name), pooling=pooling, include_prompt=include_prompt)
        with Encoder(folder, folder.weights(), precision, workers=2) as encoder:
            assert encoder.isa == isa
            for prompt in ("", "passage: "):
                vectors, _ = encoder.encode_all(texts, prompt=prompt)
                np.testing.assert_array_equal(encoder.encode(texts, prompt=prompt), vectors)


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("name", RERANKERS)
def test_scores_are_those_of_the_whole_plan_to_the_bit(
    compiled: str, name: str, precision: StoredPrecision, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RerankerFolder.open(HERE / name)
    folder = replace(folder, classifier=replace(folder.classifier, pooling="cls"))
    passages = [*AWKWARD.values(), *ordinary(8)]
    with CrossEncoder(folder, precision, workers=2) as reranker:
        scores = reranker.score("what is tea", passages, raw=True)
        run = reranker._computation.opened()
        monkeypatch.setattr(reranker._computation, "_run", lambda batch, want_tokens: run(batch, True))
        np.testing.assert_array_equal(reranker.score("what is tea", passages, raw=True), scores)


@pytest.mark.parametrize("pooling", [mode for mode in POOLING_MODES if mode not in SINGLE])
def test_pooling_that_reads_more_than_a_row_stays_where_it_is(pooling: str) -> None:
    assert pool_early(replace(ModelFolder.open(HERE / "tiny_bert"), pooling=pooling).plan()) is None


def test_a_static_table_has_nothing_to_pool_before() -> None:
    assert pool_early(replace(ModelFolder.open(HERE / "static"), pooling="cls").plan()) is None


def test_a_value_that_is_read_whole_is_gathered_and_not_computed_again() -> None:
    """A layer without attention: only what the embedding makes is needed for every token, to be looked up at all."""
    g = Graph({"word": (9, 16), "first.weight": (16,), "up.weight": (32, 16), "down.weight": (16, 32)})
    x = embedding(g, word="word")
    tokens = layer_norm(g, linear(g, linear(g, x, "up"), "down"), "first", 1e-5, residual=x)
    early = pool_early(Plan.of(g, tokens, pool(g, tokens, "cls")))
    assert early is not None
    assert [type(op).__name__ for op in early.ops] == ["Embedding", "Pool", "Linear", "Linear", "LayerNorm"]
    assert len({op.out.index for op in early.ops}) == len(early.ops)


def test_two_attentions_beside_each_other_are_both_left_one_query() -> None:
    model = one_row(np.random.default_rng(1), "window", "lasttoken", skip_prompt=False)
    (found,) = (op for op in model.plan.ops if isinstance(op, Attention))
    again = replace(found, out=Value(model.plan.values, found.out.width), window=3)
    where = model.plan.ops.index(found) + 1
    ops = (*model.plan.ops[:where], again, *model.plan.ops[where:])
    joined = [replace(op, residual=again.out) if getattr(op, "name", "") == "second" else op for op in ops]
    early = pool_early(replace(model.plan, ops=tuple(joined), values=model.plan.values + 1))
    assert early is not None
    assert [(op.query_row, op.window) for op in early.ops if isinstance(op, Attention)] == [("last", 7), ("last", 3)]


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_both_lists_of_steps_share_their_weights_and_their_room(precision: str) -> None:
    model = small_model(np.random.default_rng(2), 64, 4, 96, precision, "cls")
    library = loader.library()
    assert library is not None
    plan = NativePlan(model.plan, model.weights, library, 1)
    assert plan._early is not None
    steps = plan._early[1]
    assert plan._steps(model.batch, False) is steps and plan._steps(model.batch, True) is plan._whole
    layers = (LINEAR, LINEAR_I8, LINEAR_U8)
    assert [op.w0 for op in steps.ops if op.kind in layers] == [op.w0 for op in plan._whole.ops if op.kind in layers]
    room = [plan._arena for wanted in (True, False, True, False) if plan.run(model.batch, want_tokens=wanted)]
    assert room[1] is room[2] is room[3]


@pytest.mark.parametrize("kind", ATTENTIONS)
def test_the_steps_serve_a_batch_whose_texts_all_have_a_row_to_pool(kind: str) -> None:
    model = one_row(np.random.default_rng(3), kind, "cls", skip_prompt=True)
    early = pool_early(model.plan)
    assert early is not None and early.serves(model.batch)
    assert not early.serves(replace(model.batch, prompt=2))  # the shortest text is its prompt
    assert not replace(early, skip_prompt=False).serves(model.batch.of([np.zeros(0, np.int32)]))
