"""The real model against what the reference classes make of it, on every instruction set that runs here."""

from typing import Any

import numpy as np
import pytest

from engine import Encoder
from engine.catalog import BUNDLED_MODELS
from engine.kernels import loader
from tests import real_models
from tests.engine.conftest import use_isa
from tests.goldens.reading import assert_equals_reference, cosines, reference
from tests.goldens.texts import AWKWARD, ordinary

BUNDLED = BUNDLED_MODELS / "all-MiniLM-L6-v2"
FP32_BOUND = 2e-6
INT8_WORST, INT8_MEAN = 0.999, 0.9995


def test_fp32_equals_the_reference_classes(isa: str) -> None:
    with Encoder.load(real_models.minilm(), precision="fp32", workers=1) as encoder:
        assert encoder.isa == isa and encoder.precision == "fp32" and encoder.dim == 384
        assert_equals_reference(encoder, reference("minilm"))
        vectors = encoder.encode([AWKWARD[name] for name in reference("minilm")["names"]])
        assert np.abs(vectors - reference("minilm")["vectors"]).max() <= FP32_BOUND


@pytest.fixture(scope="module")
def fp32_vectors() -> np.ndarray[Any, np.dtype[np.float32]]:
    """The awkward texts' vectors from the reference classes, then the ordinary ones' from our own fp32."""
    with Encoder.load(real_models.minilm(), precision="fp32", workers=1) as encoder:
        return np.concatenate([reference("minilm")["vectors"], encoder.encode(ordinary())])


def test_int8_stays_close_to_fp32(fp32_vectors: np.ndarray[Any, np.dtype[np.float32]], compiled: str) -> None:
    texts = [AWKWARD[name] for name in reference("minilm")["names"]] + ordinary()
    with Encoder.load(BUNDLED, workers=1) as encoder:
        assert encoder.precision == "int8"
        found = cosines(encoder.encode(texts), fp32_vectors)
    awkward = len(reference("minilm")["names"])
    assert len(found) - awkward >= 200
    for part in (found[:awkward], found[awkward:]):
        assert part.min() >= INT8_WORST and part.mean() >= INT8_MEAN


def test_the_reference_computes_the_same_int8_as_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [text for text in AWKWARD.values() if len(text) < 100]
    with Encoder.load(BUNDLED, workers=1) as encoder:
        wanted = encoder.encode(texts)
    for _ in use_isa(loader.REFERENCE, monkeypatch):
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
