"""How near a model finds what means nothing: the level below which a hit is probably no answer.

Cosines and MaxSim scores mean something else in every model. So a few texts without meaning are searched for once; what
they reach in this store with this model is noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.search import maxsim
from engine.search.candidates import NO_FILTERS, CandidateSource
from engine.search.dense import QueryEncoder, encode_query

NONSENSE = (
    "asdf",
    "qwer hjkl",
    "xyzzy plugh",
    "zkqv",
    "wubblefrotz",
    "jkl jkl",
    "brxt moplin",
    "ggggg",
    "tuvik",
    "qzx",
)
MARGIN = 1.1  # on three relevance sets all true answers lie above, all of 70 other nonsense words below
DEEP = 20


@dataclass(frozen=True, slots=True)
class Noise:
    """The best that nonsense reached. tokens: MaxSim with equal weights."""

    cosine: float
    tokens: float

    def drowns(self, cosine: float, tokens: float) -> bool:
        """Scores are no better than nonsense would get; NaN counts as that."""
        return not cosine > self.cosine * MARGIN and not tokens > self.tokens * MARGIN


def measure_noise(source: CandidateSource, encoder: QueryEncoder) -> Noise:
    """Search for nonsense by meaning; takes as long as ten small searches."""
    best_cosine, best_tokens = 0.0, 0.0
    for text in NONSENSE:
        meaning = encode_query(encoder, text)
        with source.snapshot():
            chunk_ids, cosines = source.nearest(meaning.vector, DEEP, source.scope(NO_FILTERS, (), ()))
            bits, starts = source.token_bits(chunk_ids)
        tokens = maxsim.scores(meaning.tokens, np.ones(meaning.tokens.shape[0], np.float32), bits, starts)
        best_cosine = max([best_cosine, *cosines.tolist()])
        best_tokens = max([best_tokens, *tokens[~np.isnan(tokens)].tolist()])
    return Noise(best_cosine, best_tokens)
