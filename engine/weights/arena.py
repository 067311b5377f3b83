"""Memory for weights in few large pieces: the system backs those with large pages, which a stream of weights needs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# NumPy asks for large pages from 4 MiB on. A short query reads every weight once, straight from memory: with pages of
# 4 KiB it took a fifth longer, for the processor looked up a page for every 64 lines.
PIECE_BYTES = 32 << 20
ALIGNMENT_BYTES = 64


class Arena:
    """Copies arrays into shared pieces of memory; a piece lives as long as an array in it."""

    def __init__(self) -> None:
        self._piece = np.empty(0, np.uint8)
        self._used = 0

    def keep(self, array: NDArray[Any]) -> NDArray[Any]:
        """The same numbers, contiguous and 64-byte aligned, in a piece of the arena."""
        start = self._used + -(self._piece.ctypes.data + self._used) % ALIGNMENT_BYTES
        if start + array.nbytes > self._piece.nbytes:
            self._piece = np.empty(max(PIECE_BYTES, array.nbytes) + ALIGNMENT_BYTES, np.uint8)
            start = -self._piece.ctypes.data % ALIGNMENT_BYTES
        self._used = start + array.nbytes
        room = self._piece[start : self._used].view(array.dtype).reshape(array.shape)
        room[...] = array
        return room
