"""Models of full size: random ones of every family against the reference classes, and real ones."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from engine.batch import Batch
from engine.computation import Computation
from engine.folder import ModelFolder
from engine.models import FAMILIES
from engine.models.static import MODEL_TYPE
from engine.weights.packed import load
from engine.weights.stored import StoredPrecision
from tests.goldens import full_size
from tests.goldens.reading import cosines

pytestmark = pytest.mark.slow

FP32_BOUND, RANDOM_INT8_WORST = 1e-5, 0.999


def test_every_family_with_layers_has_a_full_size() -> None:
    assert {*full_size.CONFIGS, MODEL_TYPE} == set(FAMILIES)


@pytest.fixture(scope="module", params=full_size.CONFIGS)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelFolder]:
    """A model of full size, its weights made on the spot and removed when its tests are done."""
    place = tmp_path_factory.mktemp("full") / request.param
    full_size.write(place, request.param)
    yield ModelFolder.open(place)
    (place / "model.safetensors").unlink()


def vectors(folder: ModelFolder, precision: StoredPrecision) -> np.ndarray[Any, Any]:
    """Each text alone, then all in one batch on two workers: the same bits."""
    offset = folder.config.get("position_offset")
    padding = None if offset is None else offset - 1
    ids = full_size.texts(folder.config["vocab_size"])
    with folder.weights() as weights:
        loaded = load(folder.parameters(), weights, precision, folder.backbone.family.prefixes)
    one, two = (Computation(folder.name, folder.plan(), loaded, workers) for workers in (1, 2))
    found = np.concatenate([one.run(Batch.of([own], padding), want_tokens=False)[0] for own in ids])
    np.testing.assert_array_equal(two.run(Batch.of(ids, padding), want_tokens=False)[0], found)
    return found


def test_fp32_of_full_size_equals_the_reference_classes(folder: ModelFolder) -> None:
    wanted = np.load(full_size.HERE / f"{folder.model_type}.npz")["vectors"]
    assert np.abs(vectors(folder, "fp32") - wanted).max() <= FP32_BOUND


def test_int8_of_full_size_stays_close(folder: ModelFolder) -> None:
    wanted = np.load(full_size.HERE / f"{folder.model_type}.npz")["vectors"]
    worst = cosines(vectors(folder, "int8"), wanted).min()
    print(f"{folder.model_type}: int8 worst cosine {worst:.5f}")
    assert worst >= RANDOM_INT8_WORST
