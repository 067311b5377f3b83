"""The query as the model sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from engine.search.candidates import F32, I32, Statistics
from engine.search.lexical import Words, idf, prepare_text
from engine.search.maxsim import unit_rows


class TokenVectors(Protocol):
    """ids: (t,) int32, specials included; vectors: (t, hidden) float32, not normalised."""

    @property
    def ids(self) -> NDArray[np.int32]: ...

    @property
    def vectors(self) -> F32: ...


class QueryEncoder(Protocol):
    """What a search needs from engine.Encoder."""

    def encode_all(
        self, texts: Sequence[str], *, role: Literal["query", "document"] | None = None
    ) -> tuple[F32, Sequence[TokenVectors]]: ...

    def token_spans(self, text: str) -> I32: ...


@dataclass(frozen=True, slots=True)
class Meaning:
    """vector: (dim,) float32, unit length; tokens: (q, hidden) float32, unit rows; spans: (q, 2) int32, which
    characters of the query each token covers, empty for special tokens and prefix.
    """

    vector: F32
    tokens: F32
    spans: I32


def encode_query(encoder: QueryEncoder, text: str) -> Meaning:
    """One forward pass for both the query's vector and its tokens."""
    vectors, tokens = encoder.encode_all([text], role="query")
    rows = unit_rows(tokens[0].vectors)
    return Meaning(vectors[0], rows, _aligned(encoder.token_spans(text), rows.shape[0]))


def token_weights(
    meaning: Meaning, text: str, words: Words, statistics: Statistics, stem: Callable[[str], list[str]]
) -> F32:
    """How much each query token counts in MaxSim, by how rare the word is that it belongs to: (q,) float32.

    Special tokens and punctuation count little: they match everywhere.
    """
    weight_of = dict(zip(words.stems, idf(words.frequencies, statistics).tolist(), strict=True))
    mean = float(np.mean(list(weight_of.values()))) if weight_of else 1.0
    out = np.full(meaning.tokens.shape[0], SPECIAL_WEIGHT * mean, np.float32)
    for row, (start, end) in enumerate(meaning.spans.tolist()):
        if end > start:
            stems = stem(prepare_text(_word_around(text, start, end)))
            out[row] = max((weight_of.get(part, 0.0) for part in stems), default=SPECIAL_WEIGHT * mean)
    return out


SPECIAL_WEIGHT = 0.25


def _word_around(text: str, start: int, end: int) -> str:
    while start > 0 and text[start - 1].isalnum():
        start -= 1
    while end < len(text) and text[end].isalnum():
        end += 1
    return text[start:end]


def _aligned(spans: I32, rows: int) -> I32:
    """Spans for all rows: tokens of the text lie behind a prefix and one special token, and before the last special."""
    out = np.zeros((rows, 2), np.int32)
    count = min(spans.shape[0], max(rows - 2, 0))
    begin = max(rows - 1 - spans.shape[0], 1) if rows > 1 else 0
    out[begin : begin + count] = spans[:count]
    return out
