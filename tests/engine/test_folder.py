"""A model folder: what is read from it, and the sentence for everything that is not computed."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.errors import ModelError
from engine.folder import ModelFolder, folder_name
from engine.modules import POOLING_KEYS, Dense, Normalize
from engine.tokenizer import Tokenizer

TINY = Path(__file__).parent.parent / "goldens" / "tiny_bert"
ODD = TINY.parent / "odd_bert"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the small checkpoint, to be broken."""
    copy = tmp_path / "copy"
    shutil.copytree(TINY, copy)
    return copy


def change(file: Path, **values: Any) -> None:
    """Set keys of a JSON file; None takes a key away."""
    content = json.loads(file.read_text())
    content.update(values)
    file.write_text(json.dumps({key: value for key, value in content.items() if value is not None}))


def test_a_published_folder_tells_all_that_is_needed() -> None:
    found = ModelFolder.open(TINY)
    assert (found.name, found.model_type, found.hidden, found.max_tokens) == ("tiny_bert", "bert", 64, 48)
    assert (found.pooling, found.normalize) == ("mean", True)
    assert found.prompts == {"query": "query: ", "document": "passage: "}
    assert found.transformer == TINY
    assert ModelFolder.open(ODD).pooling == "cls"


def test_without_normalize_vectors_keep_their_length(folder: Path) -> None:
    modules = json.loads((folder / "modules.json").read_text())
    (folder / "modules.json").write_text(json.dumps(modules[:2]))
    assert not ModelFolder.open(folder).normalize


def test_the_transformer_may_lie_in_a_folder_of_its_own(folder: Path) -> None:
    inner = folder / "0_Transformer"
    inner.mkdir()
    for name in ("config.json", "tokenizer.json", "sentence_bert_config.json", "model.safetensors"):
        (folder / name).rename(inner / name)
    modules = json.loads((folder / "modules.json").read_text())
    modules[0]["path"] = "0_Transformer"
    (folder / "modules.json").write_text(json.dumps(modules))
    found = ModelFolder.open(folder)
    assert found.transformer == inner and found.max_tokens == 48


def test_the_newer_spelling_of_pooling_is_read(folder: Path) -> None:
    (folder / "1_Pooling/config.json").write_text('{"embedding_dimension": 64, "pooling_mode": "cls"}')
    assert ModelFolder.open(folder).pooling == "cls"


def test_pooling_is_the_mean_where_nothing_is_switched(folder: Path) -> None:
    (folder / "1_Pooling/config.json").write_text("{}")
    assert ModelFolder.open(folder).pooling == "mean"


@pytest.mark.parametrize(
    ("own", "tokenizer", "expected"),
    [(48, 512, 48), (None, 32, 32), (None, 1e30, 64), (500, None, 64), (None, None, 64)],
)
def test_the_longest_input_is_the_models_own_within_its_positions(
    folder: Path, own: int | None, tokenizer: float | None, expected: int
) -> None:
    change(folder / "sentence_bert_config.json", max_seq_length=own)
    change(folder / "tokenizer_config.json", model_max_length=tokenizer)
    assert ModelFolder.open(folder).max_tokens == expected


def test_a_plain_folder_is_known_by_its_name(tmp_path: Path) -> None:
    plain = tmp_path / "bge-small-en-v1.5"
    shutil.copytree(TINY, plain)
    for name in ("modules.json", "config_sentence_transformers.json"):
        (plain / name).unlink()
    found = ModelFolder.open(plain)
    assert (found.pooling, found.normalize) == ("cls", True)
    assert found.prompts["query"].startswith("Represent this sentence") and found.prompts["document"] == ""


def test_empty_prompts_do_not_hide_the_catalogs(tmp_path: Path) -> None:
    known = tmp_path / "e5-small-v2"
    shutil.copytree(TINY, known)
    change(known / "config_sentence_transformers.json", prompts={"query": "", "document": ""})
    assert ModelFolder.open(known).prompts == {"query": "query: ", "document": "passage: "}


def test_what_older_files_leave_out_is_what_the_reference_takes_it_for(folder: Path) -> None:
    change(folder / "config.json", layer_norm_eps=None, type_vocab_size=None, hidden_act=None)
    config = ModelFolder.open(folder).config
    assert (config["layer_norm_eps"], config["type_vocab_size"], config["hidden_act"]) == (1e-12, 2, "gelu")


def test_a_hub_cache_names_the_model_in_its_folders(tmp_path: Path) -> None:
    assert folder_name(tmp_path / "models--intfloat--e5-small-v2" / "snapshots" / "0123abc") == "e5-small-v2"


def modules_become(*entries: tuple[str, str]) -> Callable[[Path], None]:
    listing = [{"idx": i, "name": str(i), "path": path, "type": kind} for i, (kind, path) in enumerate(entries)]
    return lambda folder: (folder / "modules.json").write_text(json.dumps(listing)) and None


ST = "sentence_transformers.models"
TRANSFORMER, POOLING = (f"{ST}.Transformer", ""), (f"{ST}.Pooling", "1_Pooling")


def config(**values: Any) -> Callable[[Path], None]:
    return lambda folder: change(folder / "config.json", **values)


def pooling(**values: Any) -> Callable[[Path], None]:
    return lambda folder: change(folder / "1_Pooling/config.json", **values)


def text(name: str, content: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_text(content) and None


DENSE = (f"{ST}.Dense", "2_Dense")


def dense(**values: Any) -> Callable[[Path], None]:
    """A Dense module behind the pooling, with some of its settings changed."""
    published = {"in_features": 64, "out_features": 8, "bias": False, **values}

    def add(folder: Path) -> None:
        modules_become(TRANSFORMER, POOLING, DENSE)(folder)
        (folder / "2_Dense").mkdir()
        (folder / "2_Dense" / "config.json").write_text(json.dumps(published))

    return add


REFUSED: dict[str, tuple[Callable[[Path], None], tuple[str, ...]]] = {
    "no config": (lambda f: (f / "config.json").unlink(), ("config.json", "missing")),
    "a config that is no JSON": (text("config.json", "{"), ("config.json", "not valid JSON")),
    "a config that is a list": (text("config.json", "[]"), ("config.json", "not a JSON object")),
    "an unknown family": (config(model_type="t5"), ("config.json", "'model_type'", "'t5'", "bert")),
    "no family": (config(model_type=None), ("config.json", "'model_type'")),
    "a family that is a list": (config(model_type=["bert"]), ("config.json", "'model_type'")),
    "relative positions": (
        config(position_embedding_type="relative_key"),
        ("config.json", "'position_embedding_type'", "'relative_key'", "'absolute'"),
    ),
    "a decoder": (config(is_decoder=True), ("config.json", "'is_decoder'")),
    "an unknown activation": (config(hidden_act="mish"), ("config.json", "'hidden_act'", "'mish'", "'gelu'")),
    "a list of activations": (config(hidden_act=["gelu"]), ("config.json", "'hidden_act'")),
    "a billion layers": (config(num_hidden_layers=10**9), ("config.json", "'num_hidden_layers'")),
    "foreign quantised weights": (config(quantization_config={"bits": 4}), ("config.json", "'quantization_config'")),
    "no layers": (config(num_hidden_layers=0), ("config.json", "'num_hidden_layers'")),
    "a width in words": (config(hidden_size="64"), ("config.json", "'hidden_size'")),
    "heads that do not divide the width": (config(num_attention_heads=3), ("config.json", "'num_attention_heads'")),
    "an epsilon of nothing": (config(layer_norm_eps=0), ("config.json", "'layer_norm_eps'")),
    "no positions": (config(max_position_embeddings=None), ("config.json", "'max_position_embeddings'")),
    "modules that are no list": (text("modules.json", "{}"), ("modules.json", "not a list")),
    "a module without a path": (text("modules.json", '[{"type": "x"}]'), ("modules.json", "'path'")),
    "a module of the model's own": (
        modules_become(TRANSFORMER, ("custom_st.Pooling", "1_Pooling")),
        ("modules.json", "'custom_st.Pooling'", "never run"),
    ),
    "a module that is not computed": (
        modules_become(TRANSFORMER, POOLING, (f"{ST}.CNN", "2_CNN")),
        ("modules.json", "Transformer+Pooling+CNN"),
    ),
    "pooling behind normalising": (
        modules_become(TRANSFORMER, (f"{ST}.Normalize", "1_Normalize"), POOLING),
        ("modules.json", "Transformer+Normalize+Pooling"),
    ),
    "a dense module without its settings": (modules_become(TRANSFORMER, POOLING, DENSE), ("2_Dense", "missing")),
    "a dense module of another width": (dense(in_features=32), ("2_Dense", "'in_features'", "32", "64")),
    "a dense module of no width": (dense(out_features=0), ("2_Dense", "'out_features'")),
    "a dense module with an activation of its own": (
        dense(activation_function="os.system"),
        ("2_Dense", "'activation_function'", "'os.system'", "Tanh"),
    ),
    "a dense module with a bias in words": (dense(bias="no"), ("2_Dense", "'bias'")),
    "a dense module with a residual": (dense(use_residual=True), ("2_Dense", "'use_residual'")),
    "a dense module on tokens": (
        dense(module_input_name="token_embeddings"),
        ("2_Dense", "'module_input_name'", "'token_embeddings'"),
    ),
    "a default prompt that there is not": (
        lambda f: change(f / "config_sentence_transformers.json", default_prompt_name="sts"),
        ("config_sentence_transformers.json", "'default_prompt_name'", "'sts'"),
    ),
    "lowering in words": (
        lambda f: change(f / "sentence_bert_config.json", do_lower_case="yes"),
        ("sentence_bert_config.json", "'do_lower_case'"),
    ),
    "no pooling module": (modules_become(TRANSFORMER), ("modules.json", "lists the modules Transformer;")),
    "a module path that leads out": (
        modules_become((f"{ST}.Transformer", "../elsewhere"), POOLING),
        ("modules.json", "'path'", "leads out"),
    ),
    "an absolute module path": (modules_become(TRANSFORMER, (f"{ST}.Pooling", "/etc")), ("modules.json", "leads out")),
    "no pooling config": (lambda f: (f / "1_Pooling/config.json").unlink(), ("1_Pooling", "missing")),
    "two poolings joined": (pooling(pooling_mode_cls_token=True), ("1_Pooling", "exactly one")),
    "no pooling at all": (pooling(pooling_mode_mean_tokens=False), ("1_Pooling", "exactly one")),
    "a pooling nobody knows": (pooling(pooling_mode_middle=True), ("1_Pooling", "'pooling_mode_middle'")),
    "another width after pooling": (pooling(word_embedding_dimension=32), ("1_Pooling", "32", "64")),
    "a prefix that is pooled in words": (pooling(include_prompt="no"), ("1_Pooling", "'include_prompt'")),
    "a limit in words": (
        lambda f: change(f / "sentence_bert_config.json", max_seq_length="many"),
        ("sentence_bert_config.json", "'max_seq_length'"),
    ),
    "a limit below any text": (
        lambda f: change(f / "sentence_bert_config.json", max_seq_length=1),
        ("sentence_bert_config.json", "'max_seq_length'"),
    ),
    "prompts that are a list": (
        lambda f: change(f / "config_sentence_transformers.json", prompts=["query: "]),
        ("config_sentence_transformers.json", "'prompts'"),
    ),
    "a plain folder nobody knows": (lambda f: (f / "modules.json").unlink(), ("modules.json", "missing", "catalog")),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_not_computed_is_refused_by_file_and_key(folder: Path, what: str) -> None:
    break_it, words = REFUSED[what]
    break_it(folder)
    with pytest.raises(ModelError) as caught:
        ModelFolder.open(folder)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("key", POOLING_KEYS)
def test_each_way_of_pooling_is_read_or_refused(folder: Path, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mode = POOLING_KEYS[key]
    pooling(**{"pooling_mode_mean_tokens": False, key: True})(folder)
    monkeypatch.setattr("engine.modules.POOLING_MODES", {mode: None})
    assert ModelFolder.open(folder).pooling == mode
    monkeypatch.setattr("engine.modules.POOLING_MODES", {"other": None})
    with pytest.raises(ModelError, match=f"1_Pooling.*{key}.*'other'"):
        ModelFolder.open(folder)


def test_modules_behind_the_pooling_are_read_in_order(folder: Path) -> None:
    dense(activation_function="torch.nn.modules.linear.Identity")(folder)
    modules_become(TRANSFORMER, POOLING, (f"{ST}.Normalize", "2_Normalize"), DENSE, DENSE)(folder)
    change(folder / "2_Dense" / "config.json", in_features=8, out_features=8)
    with pytest.raises(ModelError, match="'in_features' is 8, but 64 numbers"):
        ModelFolder.open(folder)
    change(folder / "2_Dense" / "config.json", in_features=64, out_features=64)
    found = ModelFolder.open(folder)
    one = Dense("2_Dense", 64, 64, False, None)
    assert found.head == (Normalize(), one, one) and found.dim == 64 and not found.normalize
    (folder / "2_Dense" / "pytorch_model.bin").write_bytes(b"\x80")
    with pytest.raises(ModelError, match=r"2_Dense/pytorch_model\.bin is a Python pickle"):
        found.weights()


def test_lowering_by_the_module_comes_before_the_tokenizer(folder: Path) -> None:
    content = json.loads((folder / "tokenizer.json").read_text())
    content["normalizer"] = {"type": "NFD"}
    (folder / "tokenizer.json").write_text(json.dumps(content))
    for lower in (False, True):
        change(folder / "sentence_bert_config.json", do_lower_case=lower)
        backbone = ModelFolder.open(folder).backbone
        tokenizer = Tokenizer.open(folder, 48, lowercase=backbone.lowercase)
        small, large = tokenizer.encode(["the boiler", "THE BOILER"])
        assert (small.tolist() == large.tolist()) == lower
