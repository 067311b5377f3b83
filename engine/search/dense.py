"""The query as the model sees it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from engine.search.candidates import F32, I32, Statistics
from engine.search.lexical import Words, idf, prepare_text
from engine.search.maxsim import unit_rows

SPECIAL_WEIGHT = 0.5


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

    A word in several tokens counts as the square root of their number; special tokens as half an average word.
    """
    weight_of = dict(zip(words.stems, idf(words.frequencies, statistics).tolist(), strict=True))
    mean = float(np.mean(list(weight_of.values()))) if weight_of else 1.0
    out = np.full(meaning.tokens.shape[0], mean, np.float32)
    around = [_word_around(text, start, end) for start, end in meaning.spans.tolist()]
    pieces = Counter(around)
    for row, (start, end) in enumerate(around):
        if end == start:
            out[row] = SPECIAL_WEIGHT * mean
        else:
            stems = stem(prepare_text(text[start:end]))
            weight = max((weight_of[part] for part in stems if part in weight_of), default=mean)
            out[row] = weight / np.sqrt(pieces[start, end])
    return out


def _word_around(text: str, start: int, end: int) -> tuple[int, int]:
    """The word that a token at (start, end) belongs to, in characters; an empty token has none."""
    if start == end:
        return 0, 0
    while start > 0 and text[start - 1].isalnum():
        start -= 1
    while end < len(text) and text[end].isalnum():
        end += 1
    return start, end


def _aligned(spans: I32, rows: int) -> I32:
    """Spans for all rows: the text's tokens lie before the one special token that ends it, behind what precedes it."""
    out = np.zeros((rows, 2), np.int32)
    begin = rows - 1 - spans.shape[0]
    if begin < 0:  # the model cut the text; it did so behind one leading special token
        begin = 1
    count = min(spans.shape[0], max(rows - 1 - begin, 0))
    out[begin : begin + count] = spans[:count]
    return out
