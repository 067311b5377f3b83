"""Every family against the reference classes, on random checkpoints in the published layout (tests/goldens)."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from engine import Encoder, ModelError
from engine.models import FAMILIES
from engine.models.static import MODEL_TYPE
from engine.weights.convert import convert
from tests.goldens import ragged
from tests.goldens.reading import HERE, VECTOR_BOUND, assert_equals_reference, checkpoints, cosines, reference
from tests.goldens.texts import AWKWARD, ordinary

CHECKPOINTS = checkpoints()
INT8_WORST = 0.999


def test_every_family_has_a_golden_of_at_least_24_texts() -> None:
    assert set(CHECKPOINTS.values()) == set(FAMILIES)
    for name in CHECKPOINTS:
        assert len(reference(name)["names"]) >= 24 and set(reference(name)["names"]) <= set(AWKWARD)


def test_the_goldens_are_small() -> None:
    assert sum(file.stat().st_size for file in HERE.rglob("*") if file.is_file()) <= 6_000_000


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_fp32_equals_the_reference_classes(isa: str, name: str) -> None:
    with Encoder.load(HERE / name, precision="fp32", workers=1) as encoder:
        assert encoder.isa == isa and encoder.dim == reference(name)["vectors"].shape[1]
        assert_equals_reference(encoder, reference(name))


@pytest.mark.parametrize("name", [name for name, family in CHECKPOINTS.items() if family != MODEL_TYPE])
def test_a_ragged_batch_of_every_length_equals_the_reference_classes(compiled: str, name: str) -> None:
    with np.load(HERE / name / "ragged.npz") as file:
        wanted = dict(file)
    texts = [ragged.text(*place) for place in zip(wanted["source"], wanted["characters"], strict=True)]
    with Encoder.load(HERE / name, precision="fp32", workers=2) as encoder:
        lengths = [len(ids) for ids in encoder._tokenizer.encode(texts)]
        assert lengths == list(range(lengths[0], encoder.max_tokens + 1)) and lengths[0] <= 2
        vectors = encoder.encode(texts, prompt="")
    assert np.abs(vectors - wanted["vectors"]).max() <= VECTOR_BOUND
    with Encoder.load(HERE / name, precision="int8", workers=2) as encoder:
        assert cosines(encoder.encode(texts, prompt=""), wanted["vectors"]).min() >= INT8_WORST


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_int8_stays_close_to_the_reference_classes(compiled: str, name: str) -> None:
    wanted = reference(name)
    with Encoder.load(HERE / name, precision="int8", workers=1) as encoder:
        found = cosines(encoder.encode([AWKWARD[text] for text in wanted["names"]]), wanted["vectors"])
    assert found.min() >= INT8_WORST, wanted["names"][found.argmin()]


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_text_has_the_same_bits_alone_in_any_batch_and_with_any_workers(
    compiled: str, name: str, precision: str
) -> None:
    texts = [*AWKWARD.values(), *("x " * n for n in range(0, 200, 9)), *ordinary(20)]
    shuffled = np.random.default_rng(3).permutation(len(texts))
    with Encoder.load(HERE / name, precision=precision, workers=1) as one:
        wanted = one.encode(texts)
        np.testing.assert_array_equal(np.concatenate([one.encode([text]) for text in texts]), wanted)
    for workers in (2, 3):
        with Encoder.load(HERE / name, precision=precision, workers=workers) as more:
            np.testing.assert_array_equal(more.encode([texts[i] for i in shuffled]), wanted[shuffled])


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_the_packed_model_gives_the_bits_of_packing_on_load(tmp_path: Path, name: str) -> None:
    convert(HERE / name, tmp_path / "packed")
    texts = list(AWKWARD.values())
    with (
        Encoder.load(HERE / name, precision="int8", workers=1) as published,
        Encoder.load(tmp_path / "packed", workers=1) as packed,
    ):
        assert (packed.dim, packed.max_tokens) == (published.dim, published.max_tokens)
        for role in (None, "query", "document"):
            np.testing.assert_array_equal(packed.encode(texts, role=role), published.encode(texts, role=role))


def test_nomics_settings_may_have_either_names(tmp_path: Path) -> None:
    folder = tmp_path / "nomic"
    shutil.copytree(HERE / "nomic", folder)
    published = json.loads((folder / "config.json").read_text())
    renamed = {
        "model_type": "nomic_bert", "hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 80, "max_position_embeddings": 128, "type_vocab_size": 2, "hidden_act": "silu",
        "vocab_size": published["vocab_size"] + 3, "rope_parameters": {"rope_theta": 1000.0, "rope_type": "default"},
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(renamed))
    with Encoder.load(folder, precision="fp32", workers=1) as encoder:
        assert_equals_reference(encoder, reference("nomic"))


def test_a_tokenizer_that_pads_with_another_token_is_refused(tmp_path: Path) -> None:
    shutil.copytree(HERE / "roberta", tmp_path / "roberta")
    file = tmp_path / "roberta" / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "pad_token_id": 2, "max_position_embeddings": 66}))
    with pytest.raises(ModelError, match=r"config\.json: key 'pad_token_id' is 2, but the tokenizer's <pad> is 1"):
        Encoder.load(tmp_path / "roberta")
