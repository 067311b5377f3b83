"""What the Encoder promises, on a small random checkpoint."""

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
import safetensors.numpy

from engine import Cancelled, CrossEncoder, Encoder, EngineError, ModelError
from engine.catalog import DEFAULT_MODEL
from engine.kernels.loader import Library
from engine.kernels.threads import Pool
from engine.weights.convert import convert
from tests.goldens.texts import AWKWARD, ordinary

TINY = Path(__file__).parent.parent / "goldens" / "tiny_bert"


@pytest.fixture(scope="module", params=["fp32", "int8"])
def encoder(request: pytest.FixtureRequest) -> Encoder:
    return Encoder.load(TINY, precision=request.param, workers=1)


def test_vectors_are_float32_of_unit_length(encoder: Encoder) -> None:
    vectors = encoder.encode(list(AWKWARD.values()))
    assert vectors.dtype == np.float32 and vectors.shape == (len(AWKWARD), encoder.dim)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_no_texts_give_no_rows(encoder: Encoder) -> None:
    assert encoder.encode([]).shape == (0, 64) and encoder.encode_tokens([]) == []
    vectors, tokens = encoder.encode_all([])
    assert vectors.shape == (0, 64) and tokens == []


def test_one_pass_gives_the_vectors_and_the_tokens(encoder: Encoder) -> None:
    texts = ["one", "", "several words here"]
    vectors, tokens = encoder.encode_all(texts)
    np.testing.assert_array_equal(vectors, encoder.encode(texts))
    for one, other in zip(tokens, encoder.encode_tokens(texts), strict=True):
        np.testing.assert_array_equal(one.ids, other.ids)
        np.testing.assert_array_equal(one.vectors, other.vectors)
        assert one.vectors.dtype == np.float32 and one.vectors.shape == (len(one.ids), encoder.hidden)
    mean = tokens[2].vectors.mean(axis=0)
    np.testing.assert_allclose(mean / np.linalg.norm(mean), vectors[2], atol=1e-5)


def test_a_role_puts_the_models_prefix_on(encoder: Encoder) -> None:
    for role, prefix in (("query", "query: "), ("document", "passage: ")):
        np.testing.assert_array_equal(encoder.encode(["tea"], role=role), encoder.encode([prefix + "tea"]))
    assert not np.array_equal(encoder.encode(["tea"], role="query"), encoder.encode(["tea"]))


def test_a_chunk_of_chunk_tokens_is_not_cut(encoder: Encoder) -> None:
    assert encoder.special_tokens == 2 and encoder.max_tokens == 48
    text = "x " * encoder.chunk_tokens
    assert len(encoder.token_spans(text)) == encoder.chunk_tokens
    (whole,), (longer,) = (encoder.encode_tokens([t], role="document") for t in (text, text + "x"))
    assert len(whole.ids) == encoder.max_tokens == len(longer.ids)


def test_threads_may_share_an_encoder(encoder: Encoder) -> None:
    texts = ordinary(40)
    wanted = encoder.encode(texts)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda i: encoder.encode([texts[i]])[0], [i % 40 for i in range(200)]))
    for i, vector in enumerate(found):
        np.testing.assert_array_equal(vector, wanted[i % 40])


def test_the_fingerprint_changes_when_the_vectors_would(tmp_path: Path) -> None:
    def fingerprint(path: Path, precision: str = "int8") -> str:
        with Encoder.load(path, precision=precision, workers=1) as encoder:
            return encoder.fingerprint

    one = fingerprint(TINY)
    changed = tmp_path / "changed"
    shutil.copytree(TINY, changed)
    assert fingerprint(TINY) == one == fingerprint(changed)
    with (changed / "model.safetensors").open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"\x3e")
    prompts = tmp_path / "prompts"
    shutil.copytree(TINY, prompts)
    (prompts / "config_sentence_transformers.json").write_text('{"prompts": {"query": "ask: "}}')
    assert len({one, fingerprint(TINY, "fp32"), fingerprint(changed), fingerprint(prompts)}) == 4


@pytest.fixture
def matryoshka(tmp_path: Path) -> Path:
    """The small checkpoint under the name of a model that the catalog says may be cut, to 32 of its 64 for one."""
    return Path(shutil.copytree(TINY, tmp_path / "Qwen3-Embedding-0.6B"))


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_a_dim_cuts_vectors_and_makes_them_of_unit_length_again(matryoshka: Path, precision: str) -> None:
    texts = ordinary(20)
    with Encoder.load(matryoshka, precision=precision, workers=1) as whole:
        wanted = whole.encode(texts)[:, :32].astype(np.float64)
        wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
        with Encoder.load(matryoshka, precision=precision, workers=1, dim=32) as cut:
            assert (cut.dim, cut.hidden, cut.matryoshka) == (32, 64, (64, 32))
            found, tokens = cut.encode_all(texts)
            np.testing.assert_allclose(found, wanted, atol=1e-6)
            np.testing.assert_array_equal(found, cut.encode(texts))
            np.testing.assert_array_equal(found[7], cut.encode([texts[7]])[0])
            np.testing.assert_array_equal(tokens[3].vectors, whole.encode_tokens(texts)[3].vectors)


def test_a_dim_changes_the_fingerprint_and_the_full_one_does_not(matryoshka: Path) -> None:
    with Encoder.load(matryoshka, workers=1) as encoder:
        prints = [encoder.fingerprint, encoder.at_dim(32).fingerprint, encoder.at_dim(16, force=True).fingerprint]
        assert len(set(prints)) == 3
        assert encoder.at_dim(64).fingerprint == encoder.at_dim(32).at_dim(64).fingerprint == encoder.fingerprint
        np.testing.assert_array_equal(encoder.at_dim(64).encode(["x"]), encoder.encode(["x"]))


def test_a_dim_that_was_not_trained_is_refused_with_the_ones_that_were(matryoshka: Path, encoder: Encoder) -> None:
    with pytest.raises(EngineError, match=r"from 64 numbers to 48, only to 32\."):
        Encoder.load(matryoshka, dim=48)
    with pytest.raises(EngineError, match="nor to any other width"):
        encoder.at_dim(32)
    assert Encoder.load(TINY, dim=48, force_dim=True).encode(["x"]).shape == (1, 48)
    for impossible in (0, 65, -1):
        with pytest.raises(EngineError, match=f"cannot be cut to {impossible}"):
            encoder.at_dim(impossible, force=True)


def test_a_cut_encoder_shares_its_weights_and_their_end(matryoshka: Path) -> None:
    encoder = Encoder.load(matryoshka, workers=1)
    cut = encoder.at_dim(32)
    cut.close()
    with pytest.raises(EngineError, match="closed"):
        encoder.encode(["x"])


def test_fewer_tokens_cut_texts_earlier(encoder: Encoder) -> None:
    long, precision = "x " * 60, encoder.precision
    with Encoder.load(TINY, precision=precision, workers=1, max_tokens=16) as short:
        (tokens,) = short.encode_tokens([long])
        assert len(tokens.ids) == short.max_tokens == 16
        np.testing.assert_array_equal(short.encode([long, "tea"]), encoder.encode(["x " * 14, "tea"]))
        assert short.fingerprint != encoder.fingerprint
    with Encoder.load(TINY, precision=precision, workers=1, max_tokens=48) as same:
        assert same.fingerprint == encoder.fingerprint
    for impossible in (0, 49):
        with pytest.raises(EngineError, match=f"up to 48 tokens; {impossible} is not possible"):
            Encoder.load(TINY, max_tokens=impossible)


def test_progress_counts_texts_up_to_all_of_them(encoder: Encoder) -> None:
    texts = ordinary(1200)
    for call in (encoder.encode, encoder.encode_tokens, encoder.encode_all):
        seen: list[tuple[int, int]] = []
        call(texts, progress=lambda done, total, seen=seen: seen.append((done, total)))
        assert seen == sorted(set(seen)) and len(seen) > 3 and seen[-1] == (1200, 1200)


def test_many_texts_keep_their_order(encoder: Encoder) -> None:
    texts = [f"{text} {i}" for i, text in enumerate(ordinary(1200))]
    vectors, tokens = encoder.encode_all(texts)
    assert vectors.shape == (1200, 64) and len(tokens) == 1200
    for i in (0, 511, 512, 700, 1024, 1199):
        (vector,), (token,) = encoder.encode_all([texts[i]])
        np.testing.assert_array_equal(vectors[i], vector)
        np.testing.assert_array_equal(tokens[i].vectors, token.vectors)


def test_a_call_that_is_cancelled_stops_between_batches(encoder: Encoder) -> None:
    texts, done = ordinary(1200), [0]

    def note(count: int, total: int) -> None:
        done[0] = count

    for call in (encoder.encode, encoder.encode_tokens, encoder.encode_all):
        done[0] = 0
        with pytest.raises(Cancelled, match=r"Stopped after \d+ of 1200 texts"):
            call(texts, progress=note, cancel=lambda: done[0] > 0)
        assert 0 < done[0] < 600
        with pytest.raises(Cancelled, match="after 0 of"):
            call(["x"], cancel=lambda: True)


def test_closing_while_others_compute_gives_them_a_sentence_or_the_right_vectors() -> None:
    texts = ordinary(40)
    for _ in range(10):
        encoder = Encoder.load(TINY, workers=2)
        wanted = encoder.encode(texts)
        begun = threading.Barrier(3)

        def work(encoder: Encoder, begun: threading.Barrier, wanted: np.ndarray) -> int:
            begun.wait()
            count = 0
            with pytest.raises(EngineError, match="tiny_bert was closed"):
                while True:
                    np.testing.assert_array_equal(encoder.encode(texts), wanted)
                    count += 1
            return count

        with ThreadPoolExecutor(2) as pool:
            found = [pool.submit(work, encoder, begun, wanted) for _ in range(2)]
            begun.wait()
            encoder.close()
            assert all(each.result() >= 0 for each in found)


def test_auto_takes_int8(tmp_path: Path) -> None:
    convert(TINY, tmp_path / "packed")
    with Encoder.load(tmp_path / "packed", workers=1) as packed, Encoder.load(TINY, workers=1) as published:
        assert packed.precision == published.precision == "int8"
        texts = ordinary(30)
        np.testing.assert_array_equal(packed.encode(texts), published.encode(texts))


def test_the_default_model_loads_by_its_name() -> None:
    with Encoder.load(DEFAULT_MODEL, workers=1) as encoder:
        assert (encoder.name, encoder.dim, encoder.max_tokens) == (DEFAULT_MODEL, 384, 256)
        river, bank, cat = encoder.encode(["the river bank", "the shore of a stream", "my cat sleeps"])
        assert river @ bank > river @ cat
    with pytest.raises(ModelError, match="int8 weights only"):
        Encoder.load(DEFAULT_MODEL, precision="fp32")


def test_impossible_arguments_are_sentences() -> None:
    with pytest.raises(EngineError, match="'fp64'"):
        Encoder.load(TINY, precision="fp64")
    with pytest.raises(EngineError, match="0"):
        Encoder.load(TINY, workers=0)
    with pytest.raises(ModelError, match="no known model called"):
        Encoder.load("no-such-model")


def overflowing(folder: Path, model: str, word: str) -> Path:
    """A copy of a model whose weights for one word are too large to be computed with."""
    shutil.copytree(TINY.parent / model, folder, ignore=shutil.ignore_patterns("*.npz"))
    with Encoder.load(TINY, workers=1) as encoder:
        number = int(encoder.token_ids([word])[0][1])
    tensors = safetensors.numpy.load_file(folder / "model.safetensors")
    (table,) = (name for name in tensors if name.endswith("word_embeddings.weight"))
    tensors[table][number] = np.where(np.arange(tensors[table].shape[1]) % 2, 3e38, -3e38)
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")
    return folder


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_numbers_that_are_not_finite_never_come_out_and_their_text_is_named(tmp_path: Path, precision: str) -> None:
    texts = [*["this one is fine"] * 40, "this one says hello", *["this one is fine"] * 600]
    with Encoder.load(overflowing(tmp_path / "tiny", "tiny_bert", "hello"), precision=precision, workers=2) as encoder:
        assert np.isfinite(encoder.encode(texts[:40])).all()
        for call in (encoder.encode, encoder.encode_tokens, encoder.encode_all):
            with pytest.raises(ModelError, match=r"^tiny makes numbers that are not finite of text 41 of 641: its"):
                call(texts)
        with pytest.raises(ModelError, match="not finite"):
            encoder.encode_long(texts[:41])


def test_scores_that_are_not_finite_never_come_out(tmp_path: Path) -> None:
    with CrossEncoder.load(overflowing(tmp_path / "ranker", "reranker_bert", "hello"), workers=1) as reranker:
        assert np.isfinite(reranker.score("query", ["good", "better"])).all()
        with pytest.raises(ModelError, match=r"^ranker makes numbers that are not finite of text 2 of 2"):
            reranker.score("query", ["good", "hello"])


def test_a_closed_encoder_says_so() -> None:
    encoder = Encoder.load(TINY, workers=1)
    encoder.close()
    encoder.close()
    with pytest.raises(EngineError, match="closed"):
        encoder.encode(["x"])


def test_more_threads_than_the_system_gives_are_a_sentence() -> None:
    found = SimpleNamespace(functions=SimpleNamespace(ink_new_pool=lambda workers: None))
    with pytest.raises(EngineError, match="no room for 12345 worker threads"):
        Pool(cast(Library, found), 12345)


def test_int8_full_is_close_to_fp32_and_has_a_fingerprint_of_its_own() -> None:
    texts = ordinary(40)
    with Encoder.load(TINY, precision="fp32", workers=1) as exact:
        wanted = exact.encode(texts)
    prints = set()
    for precision in ("int8", "int8-full"):
        # Without the compiled kernels, which not every processor has for int8-full.
        with Encoder.load(TINY, precision=precision, workers=1, compiled=False) as encoder:
            assert encoder.precision == precision
            prints.add(encoder.fingerprint)
            assert (encoder.encode(texts) * wanted).sum(axis=1).min() >= 0.99
    assert len(prints) == 2
