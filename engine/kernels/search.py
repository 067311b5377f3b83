"""The search's kernels in the compiled library: scanning compact codes, packing sign bits, late interaction."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.kernels.loader import Library, pointer
from engine.weights.int8 import GROUP, PANEL

F32 = NDArray[np.float32]


def scan_int8(found: Library, codes: NDArray[np.int8], scales: F32, query: F32) -> F32:
    """See reference.scan_int8."""
    out = np.empty(codes.shape[0], np.float32)
    arrays = _contiguous((codes, np.int8), (scales, np.float32), (query, np.float32))
    _address_call(found, "scan_int8", *arrays, out, codes.shape[0], codes.shape[1])
    return out


def pack_sign_bits(found: Library, vectors: F32) -> NDArray[np.uint8]:
    """See reference.pack_sign_bits."""
    (x,) = _contiguous((vectors, np.float32))
    out = np.empty((x.shape[0], x.shape[1] // 8), np.uint8)
    _address_call(found, "pack_bits", x, out, x.shape[0], x.shape[1])
    return out


def maxsim_bits_argmax(
    found: Library, query: F32, bits: NDArray[np.uint8], starts: NDArray[np.int64]
) -> tuple[F32, NDArray[np.int32]]:
    """See reference.maxsim_bits_argmax."""
    q, bits, starts = _contiguous((query, np.float32), (bits, np.uint8), (starts, np.int64))
    (count, dim), candidates = q.shape, starts.shape[0] - 1
    depth = -(-dim // GROUP) * GROUP
    best, where = np.empty((candidates, count), np.float32), np.empty((candidates, count), np.int32)
    groups = depth // GROUP
    floats, words = count + count * PANEL + groups * PANEL, groups * PANEL + count * depth
    scratch = np.empty(4 * floats + 2 * words + depth * PANEL, np.uint8)
    _address_call(found, "maxsim", q, count, dim, bits, starts, candidates, best, where, scratch)
    return best, where


def _contiguous(*pairs: tuple[NDArray[Any], Any]) -> list[NDArray[Any]]:
    return [np.ascontiguousarray(array, dtype) for array, dtype in pairs]


def _address_call(found: Library, name: str, *arguments: Any) -> None:
    kinds = getattr(found.functions, f"ink_{name}").argtypes[1:]
    found.call(
        name, *(pointer(a, k) if isinstance(a, np.ndarray) else a for a, k in zip(arguments, kinds, strict=True))
    )
