"""The real model against what the reference classes make of it, on every instruction set that runs here."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import Encoder
from engine.catalog import BUNDLED_MODELS
from engine.kernels import loader
from tests import real_models
from tests.goldens.texts import AWKWARD, ordinary

GOLDENS = Path(__file__).parent.parent / "goldens"
BUNDLED = BUNDLED_MODELS / "all-MiniLM-L6-v2"
COMPILED = [isa for isa in loader.info()["available"] if isa != loader.REFERENCE]

# fp32: the same arithmetic in another order. A state is some ten times as long as a component of a unit vector.
FP32_BOUND, STATE_BOUND = 1e-5, 5e-5
INT8_WORST, INT8_MEAN = 0.999, 0.9995


def with_isa(name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("INKLING_ISA", name)
    loader.library.cache_clear()
    yield name
    loader.library.cache_clear()


@pytest.fixture(params=[*COMPILED, loader.REFERENCE])
def isa(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Every instruction set that runs here, and the NumPy reference."""
    yield from with_isa(request.param, monkeypatch)


@pytest.fixture(params=COMPILED)
def compiled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Every instruction set that runs here."""
    yield from with_isa(request.param, monkeypatch)


@cache
def golden(name: str) -> dict[str, Any]:
    with np.load(GOLDENS / name) as file:
        return dict(file)


def assert_equals_reference(encoder: Encoder, reference: dict[str, Any], pooling: str) -> None:
    names, starts = list(reference["names"]), reference["starts"]
    vectors, tokens = encoder.encode_all([AWKWARD[name] for name in names])
    for i, found in enumerate(tokens):
        np.testing.assert_array_equal(found.ids, reference["ids"][starts[i] : starts[i + 1]], err_msg=names[i])
    assert np.abs(vectors - reference[pooling]).max() <= FP32_BOUND
    states = np.concatenate([tokens[names.index(name)].vectors for name in reference["state_names"]])
    assert np.abs(states - reference["states"]).max() <= STATE_BOUND


def test_fp32_equals_the_reference_classes(isa: str) -> None:
    with Encoder.load(real_models.minilm(), precision="fp32", workers=1) as encoder:
        assert encoder.isa == isa and encoder.precision == "fp32" and encoder.dim == 384
        assert_equals_reference(encoder, golden("minilm.npz"), "mean")


@pytest.mark.parametrize(("name", "pooling"), [("tiny_bert", "mean"), ("odd_bert", "cls")])
def test_random_checkpoints_equal_the_reference_classes(isa: str, name: str, pooling: str) -> None:
    with Encoder.load(GOLDENS / name, precision="fp32", workers=1) as encoder:
        assert_equals_reference(encoder, golden(f"{name}/reference.npz"), pooling)


@pytest.fixture(scope="module")
def fp32_vectors() -> np.ndarray[Any, np.dtype[np.float32]]:
    """The awkward texts' vectors from the reference classes, then the ordinary ones' from our own fp32."""
    with Encoder.load(real_models.minilm(), precision="fp32", workers=1) as encoder:
        return np.concatenate([golden("minilm.npz")["mean"], encoder.encode(ordinary())])


def test_int8_stays_close_to_fp32(fp32_vectors: np.ndarray[Any, np.dtype[np.float32]], compiled: str) -> None:
    texts = [AWKWARD[name] for name in golden("minilm.npz")["names"]] + ordinary()
    with Encoder.load(BUNDLED, workers=1) as encoder:
        assert encoder.precision == "int8"
        cosines = (encoder.encode(texts) * fp32_vectors).sum(axis=1)
    awkward = len(golden("minilm.npz")["names"])
    assert len(cosines) - awkward >= 200
    for part in (cosines[:awkward], cosines[awkward:]):
        assert part.min() >= INT8_WORST and part.mean() >= INT8_MEAN


def test_the_reference_computes_the_same_int8_as_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [text for text in AWKWARD.values() if len(text) < 100]
    with Encoder.load(BUNDLED, workers=1) as encoder:
        wanted = encoder.encode(texts)
    for _ in with_isa(loader.REFERENCE, monkeypatch):
        with Encoder.load(BUNDLED, workers=1) as encoder:
            assert (encoder.encode(texts) * wanted).sum(axis=1).min() >= 0.99999


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_a_text_has_the_same_bits_alone_and_in_any_batch(compiled: str, precision: str) -> None:
    texts = [*AWKWARD.values(), *ordinary(100)[85:]]
    shuffled = np.random.default_rng(3).permutation(len(texts))
    with Encoder.load(real_models.minilm(), precision=precision, workers=1) as one:
        wanted = one.encode(texts)
        np.testing.assert_array_equal(np.concatenate([one.encode([text]) for text in texts]), wanted)
    with Encoder.load(real_models.minilm(), precision=precision, workers=2) as two:
        np.testing.assert_array_equal(two.encode([texts[i] for i in shuffled]), wanted[shuffled])
        some = [texts[i] for i in shuffled[:9]]
        np.testing.assert_array_equal(np.concatenate([two.encode([text]) for text in some]), wanted[shuffled[:9]])


def test_the_packed_model_gives_the_bits_of_packing_on_load() -> None:
    texts = list(AWKWARD.values())
    with Encoder.load(real_models.minilm(), precision="int8", workers=1) as published:
        wanted = published.encode(texts)
    with Encoder.load(BUNDLED, workers=1) as bundled:
        np.testing.assert_array_equal(bundled.encode(texts), wanted)
