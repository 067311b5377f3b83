"""What is told of a model, against its files."""

import json
from pathlib import Path
from typing import Any

import pytest
import safetensors.numpy

from engine import Encoder
from engine.batch import TOKEN_BUDGET, Batch
from engine.catalog import BUNDLED_MODELS
from engine.facts import facts
from engine.folder import ModelFolder
from engine.kernels import native
from engine.weights import packed
from engine.weights.convert import convert
from tests.goldens.reading import HERE


def test_the_facts_of_an_embedding_model() -> None:
    found = facts(HERE / "gemma3")
    config = json.loads((HERE / "gemma3" / "config.json").read_text())
    assert (found.kind, found.architecture) == ("embedding", "gemma3_text")
    assert (found.layers, found.hidden) == (config["num_hidden_layers"], config["hidden_size"])
    with Encoder.load(HERE / "gemma3", workers=1) as encoder:
        assert (found.dim, found.max_tokens) == (encoder.dim, encoder.max_tokens)
    assert found.prompts and found.pooling == "mean" and found.normalize
    assert found.tokenizer == "BPE" and found.vocabulary == config["vocab_size"]
    assert found.precision == "int8" and found.measured is None and found.source is None


@pytest.mark.parametrize(
    ("name", "kind", "dim"), [("reranker_roberta", "reranker", 1), ("late_stanford", "late interaction", 16)]
)
def test_rerankers_and_token_models_have_facts_of_their_own(name: str, kind: str, dim: int) -> None:
    found = facts(HERE / name)
    assert (found.kind, found.dim, found.matryoshka) == (kind, dim, ())


@pytest.mark.parametrize("name", ["reranker_distilbert", "roberta", "static"])
def test_every_number_of_the_weights_is_counted(name: str) -> None:
    tensors = safetensors.numpy.load_file(HERE / name / "model.safetensors")
    unused = ("pooler.", "lm_head.", "mapping", ".position_ids")
    used = sum(tensor.size for key, tensor in tensors.items() if not any(part in key for part in unused))
    assert facts(HERE / name).parameters == used


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_the_memory_of_weights_is_what_loading_takes(precision: packed.StoredPrecision) -> None:
    folder = ModelFolder.open(HERE / "tiny_bert")
    with folder.weights() as weights:
        loaded = packed.load(folder.parameters(), weights, precision, folder.backbone.family.prefixes)
    taken = sum(array.nbytes for one in loaded.values() for array in vars(one).values() if hasattr(array, "nbytes"))
    assert facts(HERE / "tiny_bert").memory.weights[precision] == taken


def test_the_memory_of_texts_is_about_what_a_run_takes(compiled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []
    lay_out = native.NativePlan._lay_out

    def noted(plan: native.NativePlan, steps: native.Steps, batch: Batch, longest: int) -> Any:
        found = lay_out(plan, steps, batch, longest)
        taken.append(plan._arena.nbytes / batch.tokens)
        return found

    monkeypatch.setattr(native.NativePlan, "_lay_out", noted)
    with Encoder.load(BUNDLED_MODELS / "all-MiniLM-L6-v2", workers=1) as encoder:
        encoder.encode(["tea " * 200] * 5)
    told = facts(BUNDLED_MODELS / "all-MiniLM-L6-v2").memory
    assert 0.8 * taken[0] <= told.activations / TOKEN_BUDGET <= 1.1 * taken[0]
    assert told.longest_activations == told.activations // TOKEN_BUDGET * encoder.max_tokens


def test_packed_weights_come_in_one_precision(tmp_path: Path) -> None:
    convert(HERE / "tiny_bert", tmp_path / "packed")
    found = facts(tmp_path / "packed")
    assert list(found.memory.weights) == ["int8"] and "I8" in found.stored


def test_a_licence_is_read_from_the_catalog_or_the_card(tmp_path: Path) -> None:
    bundled = facts(BUNDLED_MODELS / "all-MiniLM-L6-v2")
    assert bundled.licence == "Apache-2.0" and bundled.languages == ("en",) and bundled.measured is not None
    convert(HERE / "tiny_bert", tmp_path / "tiny")
    assert facts(tmp_path / "tiny").licence is None
    (tmp_path / "tiny" / "README.md").write_text("---\nlanguage: en\nlicense: mit\n---\nlicense: none of this\n")
    assert facts(tmp_path / "tiny").licence == "mit"
