"""Chunks are exact cut-outs within the budget, cut where a reader would, and lose nothing but white space."""

from __future__ import annotations

import re
import unicodedata

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from indexer.chunk import LONGEST_CHARS, Chunker, ChunkRules, safe_cut
from indexer.store.records import NewChunk

RULES = ChunkRules(target_tokens=40, budget_tokens=60, vector_chunks=10_000, with_lines=True)


def word_spans(text: str) -> NDArray[np.int32]:
    """A tokenizer: runs of letters and single other characters that are not white space."""
    return np.array([m.span() for m in re.finditer(r"\w+|[^\w\s]", text)], np.int32).reshape(-1, 2)


def chunks_of(text: str, rules: ChunkRules = RULES, piece: int = 50_000) -> list[NewChunk]:
    chunker = Chunker(word_spans, rules)
    found: list[NewChunk] = []
    for start in range(0, len(text), piece):
        found += chunker.add(text[start : start + piece])
    found += chunker.finish()
    assert chunker.char_count == len(text) and chunker.chunk_count == len(found)
    return found


def check(text: str, chunks: list[NewChunk], rules: ChunkRules = RULES) -> None:
    position = 0
    for chunk in chunks:
        assert chunk.text == text[chunk.start_char : chunk.end_char]
        assert chunk.text and chunk.text == chunk.text.strip()
        assert not text[position : chunk.start_char].strip()
        assert chunk.line == text.count("\n", 0, chunk.start_char) + 1
        if chunk.embed:
            assert len(word_spans(chunk.text)) <= rules.budget_tokens
        assert len(chunk.text) <= LONGEST_CHARS
        position = chunk.end_char
    assert not text[position:].strip()


PARTS = ["a" * 4000, "word ", "Hello. ", "\n", "\n\n", "日本", "。", "\t"]
PARTS += ["👨‍👩‍👧", "e\u0301", "x" * 50, "\r\n", "\n\n# H ", "! "]


@given(st.lists(st.sampled_from(PARTS), max_size=400).map("".join), st.sampled_from([7, 1_000, 70_000]))
def test_nothing_but_white_space_is_lost(text: str, piece: int) -> None:
    check(text, chunks_of(text, piece=piece))


@given(st.text(max_size=600))
def test_any_text_at_all_can_be_cut(text: str) -> None:
    check(text, chunks_of(text))


def test_long_documents_are_cut_in_windows_without_a_seam() -> None:
    ends = ["\n\n", *["Para. "] * 8]
    text = "".join(f"Sentence number {n} says something of its own. {ends[n % 9]}" for n in range(9000))
    assert len(text) > 4 * 65_536
    check(text, chunks_of(text, piece=131_072))


def test_the_same_pieces_give_the_same_chunks() -> None:
    text = "".join(f"line {n} of a log that goes on\n" for n in range(20_000))
    assert chunks_of(text) == chunks_of(text)


def test_a_short_document_is_one_chunk() -> None:
    assert [chunk.text for chunk in chunks_of("  One.\n\nTwo.  ")] == ["One.\n\nTwo."]


def test_an_empty_document_has_no_chunks() -> None:
    assert chunks_of("") == chunks_of(" \n\n\t ") == []


def test_cuts_fall_between_sentences() -> None:
    text = " ".join(f"This is sentence {n} with some more words in it." for n in range(60))
    chunks = chunks_of(text)
    assert len(chunks) > 5
    assert all(chunk.text.endswith(".") for chunk in chunks)


def test_a_paragraph_is_a_better_place_than_a_sentence() -> None:
    paragraph = " ".join(f"Short one {n}." for n in range(9))
    text = "\n\n".join([paragraph] * 4)
    assert {chunk.text for chunk in chunks_of(text)} == {paragraph}


def test_the_end_is_shared_out_rather_than_left_as_a_scrap() -> None:
    text = " ".join(f"w{n}." for n in range(35))  # 70 tokens, budget 60
    sizes = [len(word_spans(chunk.text)) for chunk in chunks_of(text)]
    assert len(sizes) == 2 and min(sizes) >= 25


def test_past_the_limit_chunks_get_no_vectors_but_all_words_are_there() -> None:
    rules = ChunkRules(40, 60, vector_chunks=5, with_lines=True)
    text = "".join(f"line {n} of a long log, with figures {n * 7}\n" for n in range(9_000))
    chunker = Chunker(word_spans, rules)
    chunks = chunker.add(text[:100_000]) + chunker.add(text[100_000:]) + chunker.finish()
    check(text, chunks, rules)
    assert [chunk.embed for chunk in chunks] == [True] * 5 + [False] * (len(chunks) - 5)
    assert chunker.beyond_limit == len(chunks) - 5


def test_each_chunk_tells_the_page_on_which_it_begins() -> None:
    chunker = Chunker(word_spans, ChunkRules(40, 60, 100, with_lines=False))
    found: list[NewChunk] = []
    for number in range(1, 6):
        chunker.page(number)
        found += chunker.add(" ".join([f"page{number}"] * 70) + "\n\n")
    found += chunker.finish()
    assert [int(chunk.text[4]) for chunk in found] == [chunk.page for chunk in found]
    assert all(chunk.line is None for chunk in found)


@given(st.text(st.sampled_from("ae\u0301\u200d👩👧🏽🇩🇪\u1100\u1161\r\nx"), min_size=1, max_size=30), st.integers(1, 29))
def test_a_cut_never_begins_with_a_mark_of_the_character_before(text: str, wanted: int) -> None:
    cut = safe_cut(text, wanted, 0)
    assert 0 < cut <= len(text)
    if cut < len(text) and cut > 1:
        assert unicodedata.category(text[cut]) not in ("Mn", "Me", "Mc") and text[cut] != "\u200d"


def test_flags_and_families_stay_whole() -> None:
    flags = "🇩🇪🇫🇷🇮🇹"
    assert safe_cut(flags, 3, 0) == 2
    assert safe_cut("ab👨‍👩‍👧", 5, 0) == 2
    assert safe_cut("x\r\ny", 2, 0) == 1
