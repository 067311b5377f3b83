"""Weights in large pieces of memory."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from engine.weights import arena
from engine.weights.arena import Arena


def test_arrays_keep_their_numbers_and_share_a_piece_of_memory() -> None:
    arrays = [np.arange(n, dtype=np.float32).reshape(-1, 5)[:, ::2] for n in (5, 35, 1000)]
    arrays.append(np.arange(7, dtype=np.int8))
    kept = Arena()
    found = [kept.keep(array) for array in arrays]
    for array, copy in zip(arrays, found, strict=True):
        np.testing.assert_array_equal(array, copy)
        assert copy.dtype == array.dtype and copy.flags.c_contiguous and copy.ctypes.data % 64 == 0
    ends = [(copy.ctypes.data, copy.ctypes.data + copy.nbytes) for copy in found]
    assert all(stop <= start for (_, stop), (start, _) in pairwise(ends))
    assert ends[-1][1] - ends[0][0] < 64 * len(found) + sum(array.nbytes for array in arrays)


def test_an_array_larger_than_a_piece_has_one_of_its_own() -> None:
    kept = Arena()
    small, large = np.ones(3, np.float32), np.full(arena.PIECE_BYTES + 4, 7, np.uint8)
    first, second, third = kept.keep(small), kept.keep(large), kept.keep(small)
    assert (second == 7).all() and (first == third).all() and third is not first
