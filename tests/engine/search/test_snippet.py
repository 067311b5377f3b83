from __future__ import annotations

import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.search.parse import parse
from engine.search.snippet import (
    SNIPPET_CHARS,
    WordMarker,
    best_sentence,
    even_spans,
    sentences,
    snippet,
    token_spans_hit,
)


def stem(text: str) -> list[str]:
    return [word.rstrip("s") for word in re.findall(r"\w+", text)]


def marked(text: str, query: str) -> list[str]:
    terms = parse(query).terms
    stems = {part for term in terms for part in stem(term.prepared)}
    return [text[start:end] for start, end in WordMarker(stems, terms, stem)(text)]


def find_words(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(r"abc", text)]


def test_sentences_hold_all_that_is_not_white_space() -> None:
    text = "  One. Two!  Three?\n\nA heading\n- item\n\n東京。大阪。 end"
    found = [text[start:end] for start, end in sentences(text)]
    assert found == ["One.", "Two!", "Three?", "A heading", "- item", "東京。", "大阪。", "end"]


def test_the_sentence_with_the_most_gain_is_the_passage() -> None:
    text = "Nothing here. The cat sat. Nothing there."
    at = text.index("cat")
    assert text[slice(*best_sentence(text, [(1.0, at, at + 3)]))] == "The cat sat."
    assert best_sentence("", []) == (0, 0)


def test_a_neighbour_with_nearly_as_much_comes_along() -> None:
    text = "A cat. A dog. A cow."
    spans = [(1.0, 2, 5), (0.9, 9, 12)]
    assert text[slice(*best_sentence(text, spans))] == "A cat. A dog."


def test_words_are_marked_by_stem_case_and_prefix() -> None:
    assert marked("Cats and a Cat, not catalogue.", "cats") == ["Cats", "Cat"]
    assert marked("Catalogue of cats", "catal*") == ["Catalogue"]
    assert marked("naïve Café", "café") == ["Café"]
    assert marked("die Katzen", "hund") == []


def test_unspaced_scripts_are_marked_where_they_stand() -> None:
    assert marked("私は東京都に住む", "東京都") == ["東京都"]
    assert marked("漢字", "字") == ["字"]


def test_matched_tokens_are_located() -> None:
    spans = np.array([[0, 3], [4, 7]], np.int32)
    rows, gains = np.array([1, -1, 9], np.int32), np.array([0.5, 1, 1], np.float32)
    assert token_spans_hit(rows, gains, spans) == [(0.5, 4, 7)]
    assert even_spans(4, "abcdefgh").tolist() == [[0, 2], [2, 4], [4, 6], [6, 8]]


def test_a_long_text_is_cut_at_words_around_the_focus() -> None:
    text = " ".join(f"word{number}" for number in range(300))
    start = text.index("word150")
    shown = snippet(text, (start, start + 7), find_words)
    assert shown.text.startswith("…word") and shown.text.endswith("…")
    assert shown.text[slice(*shown.focus)] == "word150"
    assert len(shown.text) <= SNIPPET_CHARS + 2


@given(st.text(alphabet="abc .\n\t\u3000é", max_size=900), st.integers(0, 900), st.integers(0, 900))
def test_highlights_lie_on_their_words(text: str, a: int, b: int) -> None:
    start, end = sorted((min(a, len(text)), min(b, len(text))))
    shown = snippet(text, (start, end), find_words)
    assert all(shown.text[s:e] == "abc" for s, e in shown.highlights)
    assert len(shown.highlights) == shown.text.count("abc")
    assert 0 <= shown.focus[0] <= shown.focus[1] <= len(shown.text)
    assert "\n" not in shown.text and "  " not in shown.text
