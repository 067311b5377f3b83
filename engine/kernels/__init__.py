"""Hot kernels: one name each, computed by the compiled library or, where none loads, by the NumPy reference.

Shapes, dtypes and meanings stand in `engine.kernels.reference`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.kernels import reference
from engine.kernels.loader import info, library
from engine.kernels.reference import F32, I8, I32, I64, U8

__all__ = ["info", "library", "maxsim_bits", "maxsim_bits_argmax", "pack_sign_bits", "scan_int8"]


def scan_int8(codes: I8, scales: F32, query: F32) -> F32:
    """(n,) float32 scores of compact codes (n, dim) int8 with scales (n,) float32 against a query (dim,) float32."""
    found = library()
    if found is None:
        return reference.scan_int8(codes, scales, query)
    from engine.kernels import search

    return search.scan_int8(found, codes, scales, query)


def pack_sign_bits(vectors: F32) -> U8:
    """(tokens, dim) float32 -> (tokens, dim // 8) uint8, a bit set where the value is >= 0."""
    found = library()
    if found is None or vectors.shape[0] == 0:
        return reference.pack_sign_bits(vectors)
    from engine.kernels import search

    return search.pack_sign_bits(found, vectors)


def maxsim_bits_argmax(query: F32, bits: U8, starts: I64) -> tuple[F32, I32]:
    """Late-interaction scores (candidates, q) float32 and the token (candidates, q) int32 that gave each."""
    found = library()
    if found is None or starts.shape[0] <= 1 or query.shape[0] == 0:
        return reference.maxsim_bits_argmax(query, bits, starts)
    from engine.kernels import search

    return search.maxsim_bits_argmax(found, query, bits, starts)


def maxsim_bits(query: F32, bits: U8, starts: I64) -> NDArray[np.float32]:
    """The scores of `maxsim_bits_argmax` alone."""
    return maxsim_bits_argmax(query, bits, starts)[0]
