"""What each kernel computes, in NumPy: the definition of correct, and the fallback where no compiled kernel loads."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]
I8 = NDArray[np.int8]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]


def scan_int8(codes: I8, scales: F32, query: F32) -> F32:
    """Score every compact code against one query.

    codes: (n, dim) int8, C-contiguous; scales: (n,) float32; query: (dim,) float32.
    Returns (n,) float32: scales[i] * (codes[i] . query).
    """
    out = np.empty(codes.shape[0], np.float32)
    for start in range(0, codes.shape[0], 4096):
        block = codes[start : start + 4096].astype(np.float32)
        out[start : start + 4096] = block @ query
    return out * scales


def pack_sign_bits(vectors: F32) -> U8:
    """One bit a dimension: set where the value is >= 0.

    vectors: (tokens, dim) float32, dim a multiple of 8. Returns (tokens, dim // 8) uint8, lowest bit first.
    """
    return np.packbits(vectors >= 0, axis=1, bitorder="little")


def maxsim_bits_argmax(query: F32, bits: U8, starts: I64) -> tuple[F32, I32]:
    """Late interaction against one-bit document tokens.

    query: (q, dim) float32, rows already of the length that the caller wants (unit for cosine);
    bits: (tokens, dim // 8) uint8 as `pack_sign_bits` makes them;
    starts: (candidates + 1,) int64; candidate c owns token rows starts[c]:starts[c + 1].
    Returns (candidates, q) float32, the maximum over the candidate's tokens of query . sign(token) / sqrt(dim),
    and (candidates, q) int32, which token (counted from starts[c]) gave it. A candidate without tokens scores 0 at -1.
    """
    count, dim = starts.shape[0] - 1, query.shape[1]
    best = np.zeros((count, query.shape[0]), np.float32)
    where = np.full((count, query.shape[0]), -1, np.int32)
    scale = np.float32(1.0 / np.sqrt(dim))
    for c in range(count):
        rows = bits[starts[c] : starts[c + 1]]
        if rows.shape[0] == 0:
            continue
        signs = np.unpackbits(rows, axis=1, bitorder="little").astype(np.float32) * 2 - 1
        scores = (query @ signs.T) * scale
        where[c] = scores.argmax(axis=1)
        best[c] = scores.max(axis=1)
    return best, where


def maxsim_bits(query: F32, bits: U8, starts: I64) -> F32:
    """The scores of `maxsim_bits_argmax` without the positions."""
    return maxsim_bits_argmax(query, bits, starts)[0]
