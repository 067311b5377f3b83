"""Texts longer than a model takes: which windows they are cut into, and what becomes of the windows' vectors."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from engine import Cancelled, Encoder, EngineError
from engine.windows import cut_windows
from tests.goldens.reading import HERE
from tests.goldens.texts import AWKWARD, ordinary

# One of each kind of tokenizer: word pieces, byte pairs, sentence pieces, a static model's.
MODELS = ("tiny_bert", "qwen3", "gemma3", "xlm_roberta", "static", "static_shared")


@pytest.fixture(scope="module", params=MODELS)
def encoder(request: pytest.FixtureRequest) -> Encoder:
    return Encoder.load(HERE / request.param, workers=1)


def long_text(encoder: Encoder) -> str:
    """Of several windows, in many scripts, with words that windows cut."""
    text = " ".join([*AWKWARD.values(), *ordinary(30)])
    return text * (1 + 3 * min(encoder.max_tokens, 2000) // len(encoder.token_spans(text)))


def test_a_text_that_fits_has_the_vector_that_it_has_anyway(encoder: Encoder) -> None:
    for role in (None, "query"):
        prefix = encoder._reader.prefix(role)
        texts = [text for text in AWKWARD.values() if not encoder._tokenizer.excess(prefix + text)]
        wanted = encoder.encode(texts, role=role)
        assert len(texts) > 10
        for text, found, row in zip(texts, encoder.encode_long(texts, role=role), wanted, strict=True):
            np.testing.assert_array_equal(found.vector, row)
            np.testing.assert_array_equal(found.windows, row[None])
            assert found.spans.tolist() == [[0, len(text)]]
            assert found.tokens.tolist() == [len(encoder.token_spans(text))]


def test_windows_cover_the_text_and_are_read_as_texts_of_their_own(encoder: Encoder) -> None:
    text = long_text(encoder)
    (found,) = encoder.encode_long([text], role="document")
    spans = found.spans.tolist()
    assert len(spans) > 2 or encoder.name == "static_shared"
    assert spans[0][0] == 0 and spans[-1][1] == len(text)
    for (_, end), (start, next_end) in pairwise(spans):
        assert start <= end < next_end or text[end:start].isspace()
    pieces = [text[start:end] for start, end in spans]
    prefix = encoder._reader.prefix("document")
    for piece, tokens in zip(pieces, found.tokens, strict=True):
        assert encoder._tokenizer.excess(prefix + piece) == 0 or tokens == 1  # a word too long for any window
    np.testing.assert_array_equal(found.windows, encoder.encode(pieces, role="document"))


def test_the_vector_is_the_mean_by_tokens(encoder: Encoder) -> None:
    (found,) = encoder.encode_long([long_text(encoder)])
    mean = found.tokens @ found.windows.astype(np.float64) / found.tokens.sum()
    if encoder._folder.normalize:
        mean /= np.linalg.norm(mean)
    np.testing.assert_allclose(found.vector, mean, atol=1e-6)
    assert found.vector.dtype == found.windows.dtype == np.float32


def test_many_texts_at_once_are_as_each_alone(encoder: Encoder) -> None:
    texts = [long_text(encoder), "short", "", long_text(encoder)[500:]]
    for text, found in zip(texts, encoder.encode_long(texts), strict=True):
        (alone,) = encoder.encode_long([text])
        for name in ("vector", "windows", "spans", "tokens"):
            np.testing.assert_array_equal(getattr(found, name), getattr(alone, name))
    assert encoder.encode_long([]) == []


@pytest.mark.parametrize("overlap", [0, 5, 20])
def test_neighbours_share_as_many_tokens_as_was_asked_for(overlap: int) -> None:
    text = "x " * 200
    with Encoder.load(HERE / "tiny_bert", workers=1) as encoder:
        (found,) = encoder.encode_long([text], overlap=overlap)
        room = encoder.max_tokens - encoder.special_tokens
        assert found.tokens[0] == room
        (_, first_end), (second_start, _) = found.spans[:2].tolist()
        assert len(encoder.token_spans(text[second_start:first_end])) == overlap


def test_the_default_is_an_eighth_and_the_prompt_takes_its_place() -> None:
    text = "x " * 200
    with Encoder.load(HERE / "tiny_bert", workers=1) as encoder:
        (found,) = encoder.encode_long([text], prompt="one two three ")
        prompt = len(encoder.token_spans("one two three "))
        assert found.tokens[0] == encoder.max_tokens - encoder.special_tokens - prompt
        spans = found.spans.tolist()
        assert len(encoder.token_spans(text[spans[1][0] : spans[0][1]])) == found.tokens[0] // 8


def test_a_window_whose_cut_word_grows_ends_earlier() -> None:
    def excess(piece: str) -> int:  # a piece that does not end with a space has two tokens more
        return max(0, len(piece) + 2 * (not piece.endswith(" ")) - 10)

    text = "abcdefgh " * 4
    spans = np.array([(i, i + 1) for i in range(len(text))], np.int32)
    windows = list(cut_windows(text, spans, 10, 2, excess))
    assert [(w.start, w.end) for w in windows] == [(0, 8), (6, 14), (12, 20), (18, 26), (24, 32), (30, 36)]
    assert all(excess(text[w.start : w.end]) == 0 and w.tokens == w.end - w.start for w in windows)


def test_a_cut_encoder_pools_cut_vectors(tmp_path: Path) -> None:
    with Encoder.load(HERE / "tiny_bert", workers=1, dim=32, force_dim=True) as encoder:
        (found,) = encoder.encode_long(["x " * 200])
        assert found.windows.shape[1] == 32
        np.testing.assert_allclose(np.linalg.norm(found.vector), 1, atol=1e-6)


def test_what_is_impossible_is_a_sentence() -> None:
    with Encoder.load(HERE / "tiny_bert", workers=1) as encoder:
        for overlap in (-1, 46, 1000):
            with pytest.raises(EngineError, match=f"overlap of {overlap} tokens does not fit windows of 46"):
                encoder.encode_long(["x"], overlap=overlap)
        with pytest.raises(EngineError, match="no room"):
            encoder.encode_long(["x"], prompt="x " * 60)
        with pytest.raises(Cancelled):
            encoder.encode_long(["x " * 400], cancel=lambda: True)
