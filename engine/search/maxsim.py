"""Late interaction: each token of the query finds its best match among a candidate's tokens (Khattab and Zaharia 2020).

Candidates' tokens are one sign bit a dimension, which on four relevance sets loses nothing against float32.
"""

from __future__ import annotations

import numpy as np

from engine.kernels import maxsim_bits, maxsim_bits_argmax
from engine.search.candidates import F32, I32, I64, U8


def unit_rows(vectors: F32) -> F32:
    """Rows scaled to length 1: (t, hidden) float32 -> the same shape; rows of zeros stay zeros."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.ascontiguousarray(vectors / np.where(lengths > 0, lengths, 1.0), np.float32)


def scores(query: F32, weights: F32, bits: U8, starts: I64) -> F32:
    """How well each candidate answers the query's tokens.

    query: (q, hidden) float32, unit rows; weights: (q,) float32, how much each query token counts;
    bits: (tokens, hidden // 8) uint8; starts: (n + 1,) int64. Returns (n,) float32, NaN for a candidate without tokens.
    """
    best = maxsim_bits(query, bits, starts)
    # A sum, not a matrix product: few numbers, and some BLAS report invalid ones that they read past the end.
    total = (best * (weights / max(float(weights.sum()), 1e-9))).sum(axis=1)
    return np.where(np.diff(starts) > 0, total, np.float32(np.nan)).astype(np.float32)


def where(query: F32, weights: F32, bits: U8) -> tuple[I32, F32]:
    """Which tokens of one candidate answer the query: token rows (q,) int32 and what each adds to the score (q,)."""
    best, rows = maxsim_bits_argmax(query, bits, np.array([0, bits.shape[0]], np.int64))
    return rows[0], (best[0] * weights).astype(np.float32)
