"""Token ids as the reference makes them, and offsets in characters of the text."""

import json
import re
import shutil
import threading
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import tokenizer as tokenizer_module
from engine.catalog import BUNDLED_MODELS
from engine.errors import ModelError
from engine.folder import ModelFolder
from engine.tokenizer import Tokenizer
from tests.goldens.reading import checkpoints, reference
from tests.goldens.texts import AWKWARD, CODE

GOLDENS = Path(__file__).parent.parent / "goldens"
MINILM = BUNDLED_MODELS / "all-MiniLM-L6-v2"


@pytest.fixture(scope="module")
def minilm() -> Tokenizer:
    return Tokenizer.open(MINILM, 256, 30522)


@pytest.mark.parametrize("name", ["minilm", *checkpoints()])
def test_ids_equal_the_references(name: str) -> None:
    folder = ModelFolder.open(MINILM if name == "minilm" else GOLDENS / name)
    wanted = reference(name)
    names, starts = wanted["names"], wanted["starts"]
    texts = [AWKWARD[text] for text in names]
    prefixed = [folder.default_prompt + text for text in texts]
    found = folder.tokenizer().encode(prefixed)
    for i, text in enumerate(names):
        assert found[i].dtype == np.int32
        np.testing.assert_array_equal(found[i], wanted["ids"][starts[i] : starts[i + 1]], err_msg=text)


def test_limits_baked_into_the_file_are_lifted(minilm: Tokenizer) -> None:
    raw = json.loads((MINILM / "tokenizer.json").read_text(encoding="utf-8"))
    assert raw["truncation"]["max_length"] == 128 and raw["padding"]["strategy"] == {"Fixed": 128}
    lengths = [len(ids) for ids in minilm.encode(["one", "word " * 200, "word " * 999])]
    assert lengths == [3, 202, 256]


def test_a_cut_text_keeps_its_closing_special_token(minilm: Tokenizer) -> None:
    (ids,) = minilm.encode(["word " * 999])
    assert (ids[0], ids[-1]) == (101, 102) and minilm.special_tokens == 2 and minilm.vocab_size == 30522


def test_lone_surrogates_become_the_replacement_character(minilm: Tokenizer) -> None:
    broken, replaced = minilm.encode(["a \ud83d b \udc00", "a \ufffd b \ufffd"])
    np.testing.assert_array_equal(broken, replaced)
    assert minilm.spans("\ud83d word").tolist()[-1] == [2, 6]


@pytest.mark.parametrize("name", AWKWARD)
def test_spans_cover_the_whole_text_in_order(minilm: Tokenizer, name: str) -> None:
    text = AWKWARD[name]
    spans = minilm.spans(text)
    assert spans.dtype == np.int32 and spans.shape == (len(minilm._tokenizer.encode(text, add_special_tokens=False)), 2)
    assert (spans[:, 0] <= spans[:, 1]).all() and (np.diff(spans[:, 0]) >= 0).all()
    assert spans.size == 0 or (spans.min() >= 0 and spans.max() <= len(text))
    assert minilm.count(text) == len(spans)


def test_offsets_count_characters_not_bytes(minilm: Tokenizer) -> None:
    text = "日本 👩‍👩‍👧 Ångström"
    pieces = [text[start:end] for start, end in minilm.spans(text)]
    assert pieces[:3] == ["日", "本", "👩‍👩‍👧"] and "".join(pieces[3:]) == "Ångström"


@given(st.text(max_size=300))
def test_any_text_is_tokenised_and_its_spans_point_into_it(text: str) -> None:
    tokenizer = Tokenizer.open(GOLDENS / "tiny_bert", 48)
    (ids,) = tokenizer.encode([text])
    spans = tokenizer.spans(text)
    assert 2 <= len(ids) <= 48 and len(ids) == min(48, len(spans) + 2)
    assert spans.size == 0 or spans.max() <= len(text)


def test_long_documents_are_tokenised_in_pieces(minilm: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (CODE + AWKWARD["chinese"] + "\n" + AWKWARD["medium"] + "\n") * 20
    whole = minilm.spans(text)
    monkeypatch.setattr(tokenizer_module, "PIECE_CHARS", 1000)
    np.testing.assert_array_equal(minilm.spans(text), whole)
    no_space = minilm.spans("文" * 2500)
    assert no_space.tolist() == [[i, i + 1] for i in range(2500)]


def test_tokenising_starts_no_threads(minilm: Tokenizer) -> None:
    before = threading.active_count(), _native_threads()
    minilm.encode(["some words to look at"] * 500)
    assert (threading.active_count(), _native_threads()) == before


def _native_threads() -> int:
    import psutil

    return int(psutil.Process().num_threads())


def test_tokenizer_config_overrides_the_normaliser(tmp_path: Path) -> None:
    folder = tmp_path / "cased"
    shutil.copytree(GOLDENS / "tiny_bert", folder)
    lowered = Tokenizer.open(folder, 48).encode(["The The"])[0]
    config = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps({**config, "do_lower_case": False}))
    assert len(Tokenizer.open(folder, 48).encode(["The The"])[0]) == len(lowered)
    assert Tokenizer.open(folder, 48).encode(["The The"])[0][1] == 1  # [UNK]: the vocabulary has no capitals
    (folder / "tokenizer_config.json").write_text(json.dumps({**config, "do_lower_case": "yes"}))
    with pytest.raises(ModelError, match=r"tokenizer_config\.json: key 'do_lower_case'"):
        Tokenizer.open(folder, 48)


@pytest.mark.parametrize(
    ("content", "limit", "rows", "words"),
    [
        (None, 48, None, "tokenizer.json is missing, and the older files of an unnamed tokenizer are not read here"),
        ("{", 48, None, "not a usable tokenizer"),
        ('{"version": "1.0"}', 48, None, "not a usable tokenizer"),
        ("no unknown", 48, None, "not a usable tokenizer"),
        ("keep", 2, None, "special tokens"),
        ("no specials", 48, None, "'post_processor'"),
        ("keep", 48, 100, "'vocab_size' is 100"),
    ],
)
def test_a_tokenizer_that_does_not_fit_is_refused(
    tmp_path: Path, content: str | None, limit: int, rows: int | None, words: str
) -> None:
    if content in ("keep", "no specials", "no unknown"):
        file = json.loads((GOLDENS / "tiny_bert" / "tokenizer.json").read_text(encoding="utf-8"))
        if content == "no specials":
            file["post_processor"] = None
        elif content == "no unknown":
            file["model"]["vocab"] = {}
        (tmp_path / "tokenizer.json").write_text(json.dumps(file))
    elif content is not None:
        (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(ModelError, match=re.escape(words)):
        Tokenizer.open(tmp_path, limit, rows)


@pytest.mark.parametrize("name", ["minilm", *checkpoints()])
@pytest.mark.parametrize("text", ["서울의 겨울은 춥지만", "ガラスのコップでパン", "か\u3099 ᄀ x 가", "각각 ㅏ"])
def test_decomposed_hangul_and_kana_are_the_composed_text(name: str, text: str) -> None:
    tokenizer = ModelFolder.open(MINILM if name == "minilm" else GOLDENS / name).tokenizer()
    composed, decomposed = unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text)
    one, other = tokenizer.encode([composed, decomposed])
    np.testing.assert_array_equal(one, other)
    for near, far in zip(tokenizer.spans(composed), tokenizer.spans(decomposed), strict=True):
        assert unicodedata.normalize("NFD", composed[near[0] : near[1]]) == decomposed[far[0] : far[1]]
