"""Cross-encoders against the reference classes, and what is refused of them."""

import json
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import Cancelled, CrossEncoder, EngineError, ModelError
from engine.models.classifier import CLASSIFIERS
from engine.weights.importing import Import, import_model, verify
from tests.goldens.reading import HERE
from tests.goldens.texts import AWKWARD, ordinary

FOLDERS = {
    file.parent.name: json.loads((file.parent / "config.json").read_text())["model_type"]
    for file in sorted(HERE.glob("*/pairs.npz"))
}
FP32_BOUND, INT8_BOUND = 1e-5, 0.03


@cache
def pairs(name: str) -> dict[str, Any]:
    with np.load(HERE / name / "pairs.npz") as file:
        return dict(file)


def by_query(name: str) -> list[tuple[str, list[str], np.ndarray[Any, Any]]]:
    """Each query's passages and scores."""
    wanted = pairs(name)
    return [
        (AWKWARD[query], [AWKWARD[p] for p in wanted["passages"][rows]], wanted["scores"][rows])
        for query in dict.fromkeys(wanted["queries"])
        for rows in [wanted["queries"] == query]
    ]


def test_every_head_has_a_golden() -> None:
    assert set(FOLDERS.values()) == set(CLASSIFIERS)


@pytest.mark.parametrize("name", FOLDERS)
def test_pairs_are_tokenised_as_the_reference_does(name: str) -> None:
    wanted = pairs(name)
    with CrossEncoder.load(HERE / name, workers=1) as reranker:
        for i, (query, passage) in enumerate(zip(wanted["queries"], wanted["passages"], strict=True)):
            ((ids, types),) = reranker._tokenizer.encode_pairs(AWKWARD[query], [AWKWARD[passage]])
            part = slice(wanted["starts"][i], wanted["starts"][i + 1])
            np.testing.assert_array_equal(ids, wanted["ids"][part], err_msg=f"{query}, {passage}")
            np.testing.assert_array_equal(types, wanted["types"][part], err_msg=f"{query}, {passage}")


@pytest.mark.parametrize("name", FOLDERS)
def test_fp32_scores_equal_the_reference_classes(isa: str, name: str) -> None:
    with CrossEncoder.load(HERE / name, precision="fp32", workers=1) as reranker:
        assert reranker.isa == isa and reranker.precision == "fp32"
        for query, passages, scores in by_query(name):
            assert np.abs(reranker.score(query, passages) - scores).max() <= FP32_BOUND


@pytest.mark.parametrize("name", FOLDERS)
def test_int8_scores_stay_close(compiled: str, name: str) -> None:
    with CrossEncoder.load(HERE / name, precision="int8", workers=1) as reranker:
        for query, passages, scores in by_query(name):
            assert np.abs(reranker.score(query, passages) - scores).max() <= INT8_BOUND


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("name", FOLDERS)
def test_a_score_has_the_same_bits_alone_and_in_any_batch(compiled: str, name: str, precision: str) -> None:
    passages = [*AWKWARD.values(), *ordinary(40)]
    with CrossEncoder.load(HERE / name, precision=precision, workers=1) as one:
        wanted = one.score("when does the lease end", passages)
        alone = [one.score("when does the lease end", [passage])[0] for passage in passages]
    np.testing.assert_array_equal(alone, wanted)
    with CrossEncoder.load(HERE / name, precision=precision, workers=3) as three:
        np.testing.assert_array_equal(three.score("when does the lease end", passages[::-1]), wanted[::-1])


def test_scoring_tells_how_far_it_is_and_can_be_stopped() -> None:
    passages, seen = ordinary(700), list[tuple[int, int]]()
    with CrossEncoder.load(HERE / "reranker_bert", workers=1) as reranker:
        reranker.score("lease", passages, progress=lambda done, total: seen.append((done, total)))
        assert seen == sorted(set(seen)) and len(seen) > 3 and seen[-1] == (700, 700)
        calls = iter([False, False, False, True])
        with pytest.raises(Cancelled, match=r"Stopped after [1-9]\d* of 700 texts"):
            reranker.score("lease", passages, cancel=lambda: next(calls))


def test_raw_scores_are_what_the_published_ones_are_made_of() -> None:
    squeezed = []
    for name in FOLDERS:
        with CrossEncoder.load(HERE / name, workers=1) as reranker:
            raw, scores = (reranker.score("lease", ordinary(9), raw=raw) for raw in (True, False))
        squeezed.append(not np.array_equal(raw, scores))
        wanted = 1 / (1 + np.exp(-raw.astype(np.float64))) if squeezed[-1] else raw
        np.testing.assert_allclose(scores, wanted, rtol=1e-6)
    assert any(squeezed) and not all(squeezed)


def test_no_passages_have_no_scores() -> None:
    with CrossEncoder.load(HERE / "reranker_bert", workers=1) as reranker:
        assert reranker.score("anything", []).shape == (0,)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of a reranker, to be changed."""
    shutil.copytree(HERE / "reranker_bert", tmp_path / "copy")
    return tmp_path / "copy"


def change(file: Path, **values: Any) -> None:
    content = json.loads(file.read_text()) if file.is_file() else {}
    content.update(values)
    file.write_text(json.dumps({key: value for key, value in content.items() if value is not None}))


def test_the_scale_is_the_one_that_the_model_was_published_with(folder: Path) -> None:
    def scores() -> np.ndarray[Any, Any]:
        with CrossEncoder.load(folder, precision="fp32", workers=1) as reranker:
            return reranker.score("tea", ["green tea", "coffee", ""])

    logits = scores()
    change(folder / "config.json", sentence_transformers=None)
    chances = scores()
    np.testing.assert_allclose(chances, 1 / (1 + np.exp(-logits)), atol=1e-6)
    change(folder / "config.json", sbert_ce_default_activation_function="torch.nn.modules.linear.Identity")
    np.testing.assert_array_equal(scores(), logits)
    named = {"activation_fn": "torch.nn.modules.activation.Sigmoid"}
    change(folder / "config_sentence_transformers.json", **named)
    np.testing.assert_array_equal(scores(), chances)


def test_modules_may_name_the_transformer(folder: Path) -> None:
    inner = folder / "0_Transformer"
    inner.mkdir()
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"):
        (folder / name).rename(inner / name)
    kind = "sentence_transformers.base.modules.transformer.Transformer"
    listing = [{"idx": 0, "name": "0", "path": "0_Transformer", "type": kind}]
    (folder / "modules.json").write_text(json.dumps(listing))
    with CrossEncoder.load(folder, workers=1) as reranker:
        assert reranker.name == "copy" and reranker.score("a", ["b"]).shape == (1,)
    listing.append({"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"})
    (folder / "modules.json").write_text(json.dumps(listing))
    with pytest.raises(ModelError, match=r"modules\.json: .*Transformer\+Pooling"):
        CrossEncoder.load(folder)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"architectures": ["BertModel"]}, "'architectures'"),
        ({"architectures": None}, "'architectures'"),
        ({"id2label": {"0": "no", "1": "yes"}}, "names 2 classes"),
        ({"id2label": None}, "names 2 classes"),
        ({"sentence_transformers": {"activation_fn": "os.system"}}, "'os.system'"),
        ({"sentence_transformers": {"activation_fn": 3}}, "'activation_fn' is 3"),
        ({"model_type": "nomic_bert"}, "'model_type' is 'nomic_bert'; rerankers are computed of bert"),
        ({"vocab_size": 40}, "'vocab_size' is 40"),
    ],
)
def test_what_is_no_reranker_is_refused(folder: Path, values: dict[str, Any], words: str) -> None:
    change(folder / "config.json", **values)
    with pytest.raises(ModelError) as caught:
        CrossEncoder.load(folder).score("a", ["b"])
    assert words in str(caught.value)


def test_a_limit_that_fits_no_pair_is_refused(folder: Path) -> None:
    change(folder / "sentence_bert_config.json", max_seq_length=4)
    with pytest.raises(ModelError, match="no room for two texts"):
        CrossEncoder.load(folder, workers=1).score("a", ["b"])


def test_a_reranker_of_another_shape_is_refused(folder: Path) -> None:
    modern = json.loads((HERE / "reranker_modernbert" / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**modern, "classifier_pooling": "middle"}))
    with pytest.raises(ModelError, match="'classifier_pooling' is 'middle'"):
        CrossEncoder.load(folder)


def test_impossible_arguments_are_sentences(folder: Path) -> None:
    with pytest.raises(EngineError, match="'fp64'"):
        CrossEncoder.load(folder, precision="fp64")
    with pytest.raises(EngineError, match="0"):
        CrossEncoder.load(folder, workers=0)
    reranker = CrossEncoder.load(folder, workers=1)
    reranker.close()
    with pytest.raises(EngineError, match="closed"):
        reranker.score("a", ["b"])


@pytest.mark.parametrize("pack", [False, True])
@pytest.mark.parametrize("name", FOLDERS)
def test_an_imported_reranker_gives_the_same_scores(tmp_path: Path, name: str, pack: bool) -> None:
    path = import_model(HERE / name, tmp_path / "models", Import(pack=pack))
    for precision in ("int8",) if pack else ("int8", "fp32"):
        with (
            CrossEncoder.load(HERE / name, precision=precision, workers=1) as published,
            CrossEncoder.load(path, precision=precision, workers=1) as imported,
        ):
            assert imported.name == name and imported.max_tokens == published.max_tokens
            for query, passages, _ in by_query(name):
                np.testing.assert_array_equal(imported.score(query, passages), published.score(query, passages))
    assert verify(path).packed is pack
