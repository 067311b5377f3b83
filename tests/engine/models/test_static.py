"""Static models in their layouts, and what is refused of them."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from engine import Encoder
from engine.errors import ModelError
from engine.folder import ModelFolder
from tests.goldens.reading import HERE, assert_equals_reference, reference


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the golden whose tokens share rows, to be changed."""
    shutil.copytree(HERE / "static_shared", tmp_path / "copy")
    return tmp_path / "copy"


def rewrite(folder: Path, **tensors: np.ndarray | None) -> None:
    """Change tensors of the weights; None takes one away."""
    found = safetensors.numpy.load_file(folder / "model.safetensors")
    found.update({name.replace("_", "."): value for name, value in tensors.items() if value is not None})
    for name, value in tensors.items():
        if value is None:
            del found[name]
    safetensors.numpy.save_file(found, folder / "model.safetensors")


def test_without_modules_the_config_says_whether_to_normalise(tmp_path: Path) -> None:
    shutil.copytree(HERE / "static", tmp_path / "plain", ignore=shutil.ignore_patterns("modules.json"))
    assert ModelFolder.open(tmp_path / "plain").normalize and ModelFolder.open(tmp_path / "plain").max_tokens == 512
    with Encoder.load(tmp_path / "plain", precision="fp32", workers=1) as encoder:
        assert encoder.special_tokens == 0
        assert_equals_reference(encoder, reference("static"))


def test_a_text_without_known_tokens_is_zeros() -> None:
    with Encoder.load(HERE / "static", precision="fp32", workers=1) as encoder:
        assert not encoder.encode(["", "🦑 ß", " "]).any()
        assert encoder.encode_tokens([""])[0].vectors.shape == (0, 24)


def test_a_table_in_int8_counts_as_its_numbers(folder: Path) -> None:
    table = np.random.default_rng(1).integers(-127, 128, (40, 24)).astype(np.int8)
    vectors = []
    for kind in (np.int8, np.float32):
        rewrite(folder, embeddings=table.astype(kind))
        with Encoder.load(folder, precision="fp32", workers=1) as encoder:
            vectors.append(encoder.encode(["the lease ends", "in June"]))
    np.testing.assert_array_equal(*vectors)


def test_a_module_of_sentence_transformers_keeps_unknown_tokens_and_cuts_nothing(tmp_path: Path) -> None:
    table = safetensors.numpy.load_file(HERE / "static" / "model.safetensors")["embeddings"]
    inner = tmp_path / "static" / "0_StaticEmbedding"
    inner.mkdir(parents=True)
    shutil.copy(HERE / "static" / "tokenizer.json", inner)
    safetensors.numpy.save_file({"embedding.weight": table}, inner / "model.safetensors")
    kind = "sentence_transformers.models.StaticEmbedding"
    listing = [{"idx": 0, "name": "0", "path": "0_StaticEmbedding", "type": kind}]
    (tmp_path / "static" / "modules.json").write_text(json.dumps(listing))
    with Encoder.load(tmp_path / "static", precision="fp32", workers=1) as encoder:
        np.testing.assert_array_equal(encoder.encode(["🦑"])[0], table[1])  # [UNK]
        (tokens,) = encoder.encode_tokens(["x " * 2000])
        assert len(tokens.ids) == 2000


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"embeddings": None}, "lacks the tensor 'embeddings'"),
        ({"embeddings": np.zeros(40, np.float32)}, "'embeddings' has the shape [40]"),
        ({"mapping": np.full(403, 40)}, "'mapping' holds numbers that are no rows of a table of 40"),
        ({"mapping": np.full(403, -1)}, "'mapping' holds numbers that are no rows"),
        ({"mapping": np.zeros(403, np.float32)}, "'mapping' holds numbers that are no rows"),
        ({"mapping": np.zeros(402, np.int64)}, "token ids up to 402"),
        ({"weights": np.zeros(402, np.float32)}, "'weights' has shape [402]"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(folder: Path, change: dict[str, np.ndarray | None], words: str) -> None:
    rewrite(folder, **change)
    with pytest.raises(ModelError) as caught:
        Encoder.load(folder, precision="fp32", workers=1)
    assert words in str(caught.value)


def test_a_limit_in_words_is_refused(folder: Path) -> None:
    content = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**content, "max_length": "many"}))
    with pytest.raises(ModelError, match=r"config\.json: key 'max_length' is 'many'"):
        ModelFolder.open(folder)
    (folder / "config.json").write_text(json.dumps({**content, "max_length": None}))
    assert ModelFolder.open(folder).max_tokens == 1_000_000
