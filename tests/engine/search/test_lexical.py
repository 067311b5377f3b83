from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.search.candidates import Statistics
from engine.search.lexical import bm25, bm25_of_documents, idf, normalise, prepare_text


@pytest.mark.parametrize(
    ("text", "prepared"),
    [
        ("Hello World", "hello world"),
        ("東京", " 東京 京 "),
        ("東", "  東 "),
        ("in東京都now", "in 東京 京都 都 now"),
        ("สวัสดี", " สว วั ัส สด ดี ี "),
        ("한국어", " 한국 국어 어 "),
        ("soft\u00adhyphen zero\u200bwidth", "softhyphen zerowidth"),
        ("ﬁle Ａ１ Straße", "file a1 strasse"),
        ("can\u0301", "cań"),
    ],
)
def test_text_is_prepared_for_the_word_index(text: str, prepared: str) -> None:
    assert prepare_text(text) == prepared


def test_signs_belong_to_the_name_only_at_its_end() -> None:
    assert prepare_text("C++ and c#") == "cᐩᐩ and cⵌ"
    for text in ("a + b", "abc++", "x++y", "#tag", "1+1"):
        assert prepare_text(text) == text


@given(st.text())
def test_preparing_is_repeatable_and_always_utf8(text: str) -> None:
    first = prepare_text(text)
    assert first == prepare_text(text)
    first.encode("utf-8")
    assert "\0" not in first
    assert normalise(normalise(text)) == normalise(text)


STATISTICS = Statistics(chunks=1000, average_length=100.0)


def test_rare_words_tell_more() -> None:
    weights = idf([1, 10, 500, 1000], STATISTICS)
    assert (np.diff(weights) < 0).all() and (weights > 0).all()


def test_scores_grow_with_counts_and_saturate() -> None:
    counts = np.array([[0], [1], [2], [50], [51]], np.float32)
    scores = bm25(counts, np.full(5, 100, np.float32), [10], STATISTICS)
    assert scores[0] == 0
    assert (np.diff(scores) > 0).all()
    assert scores[2] - scores[1] > 10 * (scores[4] - scores[3])


def test_the_formula_is_the_published_one() -> None:
    k1, b, n, df, tf, length = 1.2, 0.4, 1000, 10, 3, 150
    weight = np.log(1 + (n - df + 0.5) / (df + 0.5))
    expected = weight * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / 100))
    assert bm25(np.array([[tf]], np.float32), np.array([length], np.float32), [df], STATISTICS)[0] == pytest.approx(
        expected
    )


def test_a_document_counts_as_the_sum_of_its_candidates() -> None:
    counts = np.array([[1, 0], [0, 1], [1, 0]], np.float32)
    lengths = np.array([50, 50, 100], np.float32)
    scores = bm25_of_documents(counts, lengths, np.array([7, 7, 8]), [10, 10], STATISTICS)
    both = bm25(np.array([[1, 1]], np.float32), np.array([100], np.float32), [10, 10], STATISTICS)[0]
    assert scores.tolist() == pytest.approx([both, both, both / 2])


def test_no_words_score_nothing() -> None:
    assert bm25(np.zeros((3, 0), np.float32), np.ones(3, np.float32), [], STATISTICS).tolist() == [0, 0, 0]
