"""Tokenizers built from older vocabulary files equal the published tokenizer.json of the same model."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tokenizers

from engine import Encoder
from engine.errors import ModelError
from engine.sentencepiece import BPE, UNIGRAM, read_model
from engine.tokenizer import Tokenizer
from engine.vocabularies import BUILDERS, CLASS_OF_FAMILY, build
from engine.weights.convert import convert
from tests import real_models
from tests.goldens.reading import HERE, checkpoints
from tests.goldens.texts import AWKWARD, COMPOSED_BY_US, random_unicode

# Every golden whose tokenizer has older files; ModernBERT's has none.
FOLDERS = [name for name, family in checkpoints().items() if family in CLASS_OF_FAMILY]


def place(name: str) -> Path:
    return real_models.minilm() if name == "minilm" else HERE / name


def assert_same(name: str, texts: list[str]) -> None:
    """Ids, offsets and types of every text, and of a pair."""
    published = tokenizers.Tokenizer.from_file(str(place(name) / "tokenizer.json"))
    published.no_truncation()
    published.no_padding()
    family = "bert" if name == "minilm" else checkpoints()[name]
    built = build(place(name), family)
    for text in texts:
        wanted, found = published.encode(text), built.encode(text)
        assert wanted.ids == found.ids and wanted.offsets == found.offsets, text
    wanted, found = published.encode("one two", "three"), built.encode("one two", "three")
    assert wanted.ids == found.ids and wanted.type_ids == found.type_ids
    assert published.get_vocab() == built.get_vocab()


def test_every_class_is_tested() -> None:
    classes = {json.loads((HERE / name / "tokenizer_config.json").read_text())["tokenizer_class"] for name in FOLDERS}
    assert classes == set(BUILDERS) == {*CLASS_OF_FAMILY.values()}


@pytest.mark.parametrize("name", ["minilm", *FOLDERS])
def test_built_from_older_files_it_is_the_published_one(name: str) -> None:
    assert_same(name, [*AWKWARD.values(), *random_unicode(1000, 1)])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["minilm", *FOLDERS])
def test_built_from_older_files_it_is_the_published_one_on_20000_texts(name: str) -> None:
    assert_same(name, random_unicode(20_000, 2))


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_without_tokenizer_json_gives_the_same_vectors(tmp_path: Path, name: str) -> None:
    shutil.copytree(HERE / name, tmp_path / "older", ignore=shutil.ignore_patterns("tokenizer.json"))
    convert(tmp_path / "older", tmp_path / "packed")
    texts = list(AWKWARD.values())
    with (
        Encoder.load(HERE / name, workers=1) as published,
        Encoder.load(tmp_path / "older", workers=1) as older,
        Encoder.load(tmp_path / "packed", workers=1) as packed,
    ):
        wanted = published.encode(texts)
        np.testing.assert_array_equal(older.encode(texts), wanted)
        np.testing.assert_array_equal(packed.encode(texts), wanted)
        assert len(older.fingerprint) == 32


def test_without_a_class_the_family_says_which(tmp_path: Path) -> None:
    shutil.copy(HERE / "tiny_bert" / "vocab.txt", tmp_path)
    wanted = Tokenizer.open(HERE / "tiny_bert", 48).encode(list(AWKWARD.values()))
    found = Tokenizer.open(tmp_path, 48, model_type="bert").encode(list(AWKWARD.values()))
    assert [ids.tolist() for ids in found] == [ids.tolist() for ids in wanted]


def test_a_sentencepiece_model_is_read_without_its_library() -> None:
    unigram, pairs = (
        read_model(HERE / "xlm_roberta/sentencepiece.bpe.model"),
        read_model(HERE / "gemma3/tokenizer.model"),
    )
    assert unigram.kind == UNIGRAM and unigram.pieces[0].text == "<unk>" and len(unigram.charsmap) > 100_000
    assert pairs.kind == BPE and pairs.pieces[1].text == "<eos>" and pairs.charsmap == b""
    assert all(piece.score <= 0 for piece in unigram.pieces)


def without(*names: str) -> Callable[[Path], None]:
    def remove(folder: Path) -> None:
        for name in names:
            (folder / name).unlink()

    return remove


def written(name: str, content: bytes) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(content) and None


def config(**values: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        file = folder / "tokenizer_config.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **values}))

    return change


PIECES = "sentencepiece.bpe.model"
BROKEN: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "no words": ("tiny_bert", without("vocab.txt"), "tokenizer.json is missing, and so is vocab.txt"),
    "no merges": ("roberta", without("merges.txt"), "and so is merges.txt"),
    "no pieces": ("gemma3", without("tokenizer.model"), "and so is tokenizer.model"),
    "an unknown class": ("tiny_bert", config(tokenizer_class="T5Tokenizer"), "T5Tokenizer"),
    "a class that is a list": ("tiny_bert", config(tokenizer_class=["BertTokenizer"]), "not read here"),
    "words without a closing token": ("tiny_bert", written("vocab.txt", b"[UNK]\n[CLS]\n"), "lacks the token '[SEP]'"),
    "words in another encoding": ("tiny_bert", written("vocab.txt", b"[PAD]\n\xff\xfe\n"), "vocab.txt cannot be read"),
    "merges of three": ("roberta", written("merges.txt", b"a b c\n"), "not a vocabulary of byte pairs"),
    "merges of unknown parts": ("roberta", written("merges.txt", b"zzz yyy\n"), "merges.txt does not fit vocab.json"),
    "ids in words": ("roberta", written("vocab.json", b'{"a": "b"}'), "not a vocabulary of byte pairs"),
    "a model that is cut off": ("xlm_roberta", written(PIECES, b"\x0a\xff\x01"), "not a sentencepiece"),
    "a model of nothing": ("xlm_roberta", written(PIECES, b""), "no pieces"),
    "a model that is text": ("xlm_roberta", written(PIECES, b"<html></html>"), "not a sentencepiece"),
    "a model of the other kind": (
        "gemma3",
        lambda folder: shutil.copy(HERE / "xlm_roberta/sentencepiece.bpe.model", folder / "tokenizer.model") and None,
        "no pair model",
    ),
    "an added token under another id": (
        "qwen3", config(added_tokens_decoder={"7": {"content": "<|new|>"}}), "gives '<|new|>' the id 7",
    ),
    "added tokens that are a list": ("qwen3", config(added_tokens_decoder=["<|new|>"]), "'added_tokens_decoder'"),
    "lowering in words": ("tiny_bert", config(do_lower_case="yes"), "'do_lower_case'"),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_broken_vocabulary_files_are_a_sentence(tmp_path: Path, what: str) -> None:
    name, break_it, words = BROKEN[what]
    folder = tmp_path / "older"
    shutil.copytree(HERE / name, folder, ignore=shutil.ignore_patterns("tokenizer.json"))
    break_it(folder)
    with pytest.raises(ModelError) as caught:
        Tokenizer.open(folder, 48, model_type=checkpoints()[name])
    assert words in str(caught.value)


def test_composing_is_not_the_tokenizers_own_doing() -> None:
    """The exception that the goldens make: RoBERTa itself reads decomposed text as other tokens."""
    library = tokenizers.Tokenizer.from_file(str(HERE / "roberta" / "tokenizer.json"))
    for name in COMPOSED_BY_US:
        assert (
            library.encode(AWKWARD[name]).ids
            != Tokenizer.open(HERE / "roberta", 512).encode([AWKWARD[name]])[0].tolist()
        )
