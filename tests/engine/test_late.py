"""Late interaction against the reference, in the layouts in which its checkpoints are published."""

import json
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import Encoder, EngineError, ModelError, TokenVectors
from engine.folder import ModelFolder
from engine.late import Expansion
from engine.prompts import Role
from engine.weights.convert import convert
from engine.weights.importing import import_model
from tests.goldens.reading import HERE
from tests.goldens.texts import AWKWARD, ordinary

FOLDERS = sorted(file.parent.name for file in HERE.glob("*/tokens.npz"))
ROLES: tuple[Role, ...] = ("query", "document")
FP32_BOUND, INT8_WORST = 1e-5, 0.999


@cache
def golden(name: str) -> dict[str, Any]:
    with np.load(HERE / name / "tokens.npz") as file:
        return dict(file)


def wanted(name: str, role: Role) -> list[tuple[str, np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    """Name, ids and vectors of each text."""
    found, starts = golden(name), golden(name)[f"{role}_starts"]
    parts = [slice(*starts[i : i + 2]) for i in range(len(starts) - 1)]
    names = found[f"{role}_names"]
    return [(names[i], found[f"{role}_ids"][p], found[f"{role}_vectors"][p]) for i, p in enumerate(parts)]


def assert_same(found: list[TokenVectors], others: list[TokenVectors]) -> None:
    for one, other in zip(found, others, strict=True):
        np.testing.assert_array_equal(one.ids, other.ids)
        np.testing.assert_array_equal(one.vectors, other.vectors)


def test_every_layout_has_a_golden_of_at_least_24_texts() -> None:
    assert FOLDERS == ["late_native", "late_pylate", "late_stanford"]
    assert all(len(golden(name)["query_names"]) >= 24 for name in FOLDERS)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("name", FOLDERS)
def test_fp32_tokens_equal_the_reference(isa: str, name: str, role: Role) -> None:
    with Encoder.load(HERE / name, precision="fp32", workers=1) as encoder:
        assert encoder.isa == isa and encoder.hidden == 16
        texts = wanted(name, role)
        found = encoder.encode_tokens([AWKWARD[text] for text, _, _ in texts], role=role)
        for tokens, (text, ids, vectors) in zip(found, texts, strict=True):
            np.testing.assert_array_equal(tokens.ids, ids, err_msg=text)
            assert np.abs(tokens.vectors - vectors).max() <= FP32_BOUND, text


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("name", FOLDERS)
def test_int8_tokens_stay_close(compiled: str, name: str, role: Role) -> None:
    with Encoder.load(HERE / name, precision="int8", workers=1) as encoder:
        texts = wanted(name, role)
        found = encoder.encode_tokens([AWKWARD[text] for text, _, _ in texts], role=role)
    for tokens, (text, _, vectors) in zip(found, texts, strict=True):
        assert (tokens.vectors * vectors).sum(axis=1).min() >= INT8_WORST, text


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("name", FOLDERS)
def test_tokens_have_the_same_bits_alone_and_in_any_batch(compiled: str, name: str, role: Role) -> None:
    texts = [*AWKWARD.values(), *ordinary(20)]
    with Encoder.load(HERE / name, precision="fp32", workers=1) as one:
        found = one.encode_tokens(texts, role=role)
        assert_same(found, [one.encode_tokens([text], role=role)[0] for text in texts])
    with Encoder.load(HERE / name, precision="fp32", workers=3) as three:
        assert_same(three.encode_tokens(texts[::-1], role=role), found[::-1])


@pytest.mark.parametrize("role", ROLES)
def test_of_many_texts_each_keeps_its_own_tokens(role: Role) -> None:
    texts = [f"{text}, {i}!" for i, text in enumerate(ordinary(700))]
    with Encoder.load(HERE / "late_pylate", workers=1) as encoder:
        found = encoder.encode_tokens(texts, role=role)
        assert len(found) == len(texts)
        some = (0, 511, 512, 699)
        assert_same([found[i] for i in some], [encoder.encode_tokens([texts[i]], role=role)[0] for i in some])


@pytest.mark.parametrize("name", FOLDERS)
def test_a_packed_folder_reads_texts_as_the_published_one(tmp_path: Path, name: str) -> None:
    convert(HERE / name, tmp_path / "packed")
    assert ModelFolder.open(tmp_path / "packed").late == ModelFolder.open(HERE / name).late
    texts = list(AWKWARD.values())
    with (
        Encoder.load(HERE / name, precision="int8", workers=1) as published,
        Encoder.load(tmp_path / "packed", workers=1) as packed,
    ):
        for role in ROLES:
            assert_same(packed.encode_tokens(texts, role=role), published.encode_tokens(texts, role=role))


@pytest.mark.parametrize("name", FOLDERS)
def test_an_imported_folder_is_whole(tmp_path: Path, name: str) -> None:
    path = import_model(HERE / name, tmp_path)
    assert ModelFolder.open(path).late == ModelFolder.open(HERE / name).late


def test_queries_are_filled_up_and_documents_lose_their_punctuation() -> None:
    with Encoder.load(HERE / "late_stanford", workers=1) as encoder:
        (query,) = encoder.encode_tokens(["boats, ships."], role="query")
        (document,) = encoder.encode_tokens(["boats, ships."], role="document")
        tokens = {i: token for token, i in encoder._tokenizer._tokenizer.get_vocab().items()}
    assert len(query.ids) == 32 and tokens[query.ids[1]] == "[unused0]" and tokens[query.ids[-1]] == "[MASK]"
    assert tokens[document.ids[1]] == "[unused1]" and tokens[document.ids[-1]] == "[SEP]"
    assert {",", "."} <= {tokens[i] for i in query.ids} and not {",", "."} & {tokens[i] for i in document.ids}


def test_a_chunk_of_chunk_tokens_is_not_cut() -> None:
    for name, prefix in (("late_stanford", 0), ("late_native", 8)):
        with Encoder.load(HERE / name, workers=1) as encoder:
            assert encoder.chunk_tokens == encoder.max_tokens - encoder.special_tokens - prefix
            text = "x " * encoder.chunk_tokens
            whole, longer = encoder.encode_tokens([text, text + "x"], role="document")
            assert len(whole.ids) == encoder.max_tokens == len(longer.ids)


def test_there_is_no_vector_of_a_whole_text_and_none_without_a_role() -> None:
    with Encoder.load(HERE / "late_stanford", workers=1) as encoder:
        for call in (encoder.encode, encoder.encode_all):
            with pytest.raises(EngineError, match="late_stanford has a vector for every token and none for a whole"):
                call(["text"], role="query")
        with pytest.raises(EngineError, match="give one of the roles"):
            encoder.encode_tokens(["text"])


def change(file: Path, **values: Any) -> None:
    content = json.loads(file.read_text()) if file.is_file() else {}
    content.update(values)
    file.write_text(json.dumps(content))


def copy(name: str, place: Path) -> Path:
    shutil.copytree(HERE / name, place / name)
    return place / name


def test_what_pylate_leaves_out(tmp_path: Path) -> None:
    folder = copy("late_pylate", tmp_path)
    file = folder / "config_sentence_transformers.json"
    file.write_text('{"query_prefix": "[Q] ", "document_prefix": "[D] "}')
    late = ModelFolder.open(folder).late
    assert late is not None and late.expansion == Expansion(32) and "." in late.skipped and len(late.skipped) == 32
    assert late.lengths == {"query": 79, "document": 79}
    file.write_text('{"do_query_expansion": false, "query_length": 20, "attend_to_expansion_tokens": true}')
    late = ModelFolder.open(folder).late
    assert late is not None and late.expansion is None and late.lengths["query"] == 20 and late.skipped == ()
    with Encoder.load(folder, workers=1) as encoder:
        (short, long) = encoder.encode_tokens(["a", "a " * 50], role="query")
        assert len(short.ids) == 3 and len(long.ids) == 20


def test_stanfords_defaults_and_its_other_settings(tmp_path: Path) -> None:
    folder = copy("late_stanford", tmp_path)
    (folder / "artifact.metadata").write_text('{"attend_to_mask_tokens": true, "mask_punctuation": false}')
    late = ModelFolder.open(folder).late
    assert late is not None and late.expansion == Expansion(32, attend=True) and late.skipped == ()
    (folder / "artifact.metadata").unlink()
    late = ModelFolder.open(folder).late
    assert late is not None and late.markers == {"query": "[unused0]", "document": "[unused1]"}
    assert late.expansion == Expansion(32) and late.lengths == {"query": 32, "document": 96}


def test_a_marker_that_is_no_token_stands_before_the_text(tmp_path: Path) -> None:
    folder = copy("late_pylate", tmp_path)
    change(folder / "config_sentence_transformers.json", document_prefix="passage: ")
    with Encoder.load(folder, workers=1) as marked, Encoder.load(HERE / "late_pylate", workers=1) as plain:
        (found,) = marked.encode_tokens(["tea"], role="document")
        ids = plain._tokenizer.encode(["passage: tea"])[0]
    np.testing.assert_array_equal(found.ids, ids)


METADATA, OWN = "artifact.metadata", "sentence_bert_config.json"
PYLATE, MASK = "config_sentence_transformers.json", "2_MultiVectorMask/config.json"


@pytest.mark.parametrize(
    ("name", "file", "values", "words"),
    [
        ("late_stanford", METADATA, {"query_maxlen": 2}, "'query_maxlen' is 2"),
        ("late_stanford", METADATA, {"doc_maxlen": "long"}, "'doc_maxlen' is 'long'"),
        ("late_stanford", METADATA, {"mask_punctuation": "no"}, "'mask_punctuation' is 'no'"),
        ("late_stanford", METADATA, {"query_token_id": 1}, "'query_token_id' is 1"),
        ("late_pylate", PYLATE, {"attend_to_expansion_tokens": 1}, "'attend_to_expansion_tokens' is 1"),
        ("late_pylate", PYLATE, {"skiplist_words": "."}, "'skiplist_words' is '.'"),
        ("late_pylate", "1_Dense/config.json", {"module_input_name": "sentence_embedding"}, "'module_input_name'"),
        ("late_native", OWN, {"query_expansion": []}, "'query_expansion' is []"),
        ("late_native", OWN, {"query_expansion": {"strategy": "max", "length": 8}}, "'strategy' is 'max'"),
        ("late_native", OWN, {"query_expansion": {"strategy": "min"}}, "'length' of 'query_expansion' is missing"),
        ("late_native", OWN, {"query_expansion": {"strategy": "min", "length": 8, "token": 3}}, "'token' is 3"),
        ("late_native", OWN, {"query_expansion": {"strategy": "min", "length": 8, "token": "[NO]"}}, "'mask_token'"),
        ("late_native", MASK, {"keep_only_token_ids": [7]}, "'keep_only_token_ids'"),
        ("late_native", MASK, {"skiplist_tasks": ["index"]}, "'skiplist_tasks'"),
        ("late_native", "3_Normalize/config.json", {"module_input_name": "x"}, "'module_input_name' is 'x'"),
    ],
)
def test_settings_that_are_not_computed_are_refused(
    tmp_path: Path, name: str, file: str, values: dict[str, Any], words: str
) -> None:
    folder = copy(name, tmp_path)
    change(folder / file, **values)
    with pytest.raises(ModelError) as caught:
        Encoder.load(folder)
    assert words in str(caught.value)
