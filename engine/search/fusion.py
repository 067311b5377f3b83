"""Putting scores of different kinds together."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from engine.search.candidates import F32


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each standardised score counts. Chosen leave-one-set-out by tests/benchmarks/ranking.py."""

    meaning: float = 1.0
    words: float = 0.75
    tokens: float = 1.3
    first_words: float = 0.5  # before reranking, when there are no token scores
    document_words: float = 0.3  # share of a word score that is the whole document's, not the passage's


WEIGHTS = Weights()
# Where the model cannot read the query's script its scores are noise; words alone decide between those it brings.
FOREIGN = Weights(meaning=0.1, words=1.0, tokens=0.0, first_words=1.0)
OTHER_SCRIPTS = frozenset(
    "am ar be bg bn el fa gu he hi hy ja ka kk km kn ko lo mk ml mn mr my ne pa ru si sr ta te th uk ur".split()
)
OTHER_SCRIPTS |= {"zh", "multilingual"}


def reads(languages: Collection[str], text: str) -> bool:
    """Whether a model can read a text's script. languages: ISO 639-1 codes or "multilingual"; none means unknown.

    Only texts mostly in another script than Latin are doubted, and only where all languages are written in Latin.
    """
    if not languages or not OTHER_SCRIPTS.isdisjoint(languages):
        return True
    letters = [char for char in text if char.isalpha()]
    latin = sum(char.isascii() or unicodedata.name(char, "").startswith("LATIN") for char in letters)
    return 2 * latin >= len(letters)


def standardise(scores: F32) -> F32:
    """Mean 0 and deviation 1 over the candidates that have a score; those without one (NaN) get the mean.

    So a passage that has no vector yet is neither favoured nor buried.
    scores: (n,) float32. Returns (n,) float32; all 0 where the scores do not differ.
    """
    known = ~np.isnan(scores)
    out = np.zeros(scores.shape, np.float32)
    if not known.any():
        return out
    values = scores[known]
    deviation = float(values.std())
    if deviation > 1e-9:
        out[known] = (values - values.mean()) / deviation
    return out


def fuse(parts: list[tuple[float, F32]]) -> F32:
    """The weighted sum of standardised scores: [(weight, (n,) float32), ...] -> (n,) float32."""
    total = np.zeros(parts[0][1].shape, np.float32)
    for weight, scores in parts:
        total += np.float32(weight) * standardise(scores)
    return total
