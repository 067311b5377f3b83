from __future__ import annotations

import numpy as np

from engine.kernels import pack_sign_bits
from engine.search import maxsim


def test_the_candidate_with_the_query_s_own_tokens_wins() -> None:
    chance = np.random.default_rng(0)
    tokens = chance.standard_normal((12, 64)).astype(np.float32)
    query = maxsim.unit_rows(tokens[4:8])
    bits = pack_sign_bits(tokens)
    starts = np.array([0, 4, 8, 8, 12], np.int64)
    scores = maxsim.scores(query, np.ones(4, np.float32), bits, starts)
    assert np.nanargmax(scores) == 1
    assert np.isnan(scores[2])
    rows, gains = maxsim.where(query, np.ones(4, np.float32), bits[4:8])
    assert rows.tolist() == [0, 1, 2, 3] and (gains > 0.5).all()


def test_weights_choose_which_tokens_matter() -> None:
    tokens = np.sign(np.random.default_rng(1).standard_normal((2, 64))).astype(np.float32)
    query = maxsim.unit_rows(tokens)
    bits, starts = pack_sign_bits(tokens), np.array([0, 1, 2], np.int64)
    assert maxsim.scores(query, np.array([1, 0.1], np.float32), bits, starts).argmax() == 0
    assert maxsim.scores(query, np.array([0.1, 1], np.float32), bits, starts).argmax() == 1


def test_rows_of_zeros_stay_zeros() -> None:
    assert maxsim.unit_rows(np.zeros((2, 8), np.float32)).tolist() == [[0.0] * 8] * 2
