"""Real models: equal to the reference classes in fp32, and as close as promised in int8."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import CrossEncoder, Encoder
from engine.folder import ModelFolder
from tests import real_models
from tests.goldens.reading import HERE, assert_equals_reference, cosines
from tests.goldens.texts import AWKWARD, ordinary

pytestmark = pytest.mark.slow

# Model: largest difference of fp32 unit vectors; worst int8 cosine; mean cosine.
ENCODERS: dict[str, tuple[Callable[[], Path], float, float, float]] = {
    "minilm": (real_models.minilm, 2e-6, 0.999, 0.9995),
    "mpnet": (real_models.mpnet, 2e-6, 0.997, 0.9995),
    "bge_small": (real_models.bge_small, 2e-6, 0.999, 0.9995),
    "e5_small": (real_models.e5_small, 2e-6, 0.999, 0.9995),
    "multilingual_e5_small": (real_models.multilingual_e5_small, 2e-6, 0.999, 0.9995),
}


def golden(name: str) -> dict[str, Any]:
    with np.load(HERE / "minilm.npz" if name == "minilm" else HERE / "real" / f"{name}.npz") as file:
        return dict(file)


@pytest.mark.parametrize("name", ENCODERS)
def test_fp32_equals_the_reference_classes(name: str) -> None:
    place, bound, *_ = ENCODERS[name]
    with Encoder.load(place(), precision="fp32", workers=1) as encoder:
        wanted = golden(name)
        assert_equals_reference(encoder, wanted)
        found = encoder.encode([AWKWARD[text] for text in wanted["names"]])
    assert np.abs(found - wanted["vectors"]).max() <= bound


@pytest.mark.parametrize("name", ENCODERS)
def test_int8_stays_close(name: str) -> None:
    place, _, worst, mean = ENCODERS[name]
    names, texts = list(golden(name)["names"]), ordinary()
    with Encoder.load(place(), precision="fp32", workers=1) as encoder:
        wanted = np.concatenate([golden(name)["vectors"], encoder.encode(texts)])
    with Encoder.load(place(), precision="int8", workers=1) as encoder:
        found = cosines(encoder.encode([AWKWARD[text] for text in names] + texts), wanted)
    print(f"{name}: int8 worst {found.min():.5f}, mean {found.mean():.5f}")
    assert found.min() >= worst and found.mean() >= mean


def test_a_real_reranker_equals_the_reference_class() -> None:
    wanted = golden("ms_marco")
    for precision, bound in (("fp32", 1e-4), ("int8", 0.5)):  # of logits from -11 to 8
        with CrossEncoder.load(real_models.ms_marco(), precision=precision, workers=1) as reranker:
            for query, passage, score in zip(wanted["queries"], wanted["passages"], wanted["scores"], strict=True):
                assert abs(reranker.score(AWKWARD[query], [AWKWARD[passage]])[0] - score) <= bound
            good, bad = "Fill in form DS-82 to renew a passport.", "The cat slept on the warm printer."
            scores = reranker.score("how do I renew my passport", [good, bad])
        assert scores[0] > 5 and scores[1] < -10


def test_a_real_late_encoder_equals_the_reference_class() -> None:
    wanted = golden("colbert_small")
    assert ModelFolder.open(real_models.colbert_small()).late is not None
    for precision, worst in (("fp32", 0.999999), ("int8", 0.99)):  # the projection is a made one
        with Encoder.load(real_models.colbert_small(), precision=precision, workers=1) as encoder:
            for role in ("query", "document"):
                found = encoder.encode_tokens([AWKWARD[name] for name in wanted[f"{role}_names"]], role=role)
                np.testing.assert_array_equal(np.concatenate([t.ids for t in found]), wanted[f"{role}_ids"])
                assert cosines(np.concatenate([t.vectors for t in found]), wanted[f"{role}_vectors"]).min() >= worst
