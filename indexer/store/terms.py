"""How often each stem occurs in a chunk, as a small blob beside it.

Layout: n uint32 term keys in ascending order, then n uint8 counts (255 means 255 or more); little-endian.
A key is the CRC-32 of the stem's UTF-8: a collision within one chunk's hundred stems is about one in ten million.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeAlias

import apsw
import numpy as np
from numpy.typing import NDArray

Stemmer: TypeAlias = Callable[[str], list[str]]
DOCUMENT = apsw.FTS5_TOKENIZE_DOCUMENT
TOKENIZER_ARGUMENTS = ["unicode61", "remove_diacritics", "2", "categories", "L* N* Co M*"]


def stemmer(connection: apsw.Connection) -> Stemmer:
    """The tokenizer of the table `stems` as a function: prepared text -> stems in order."""
    tokenizer = connection.fts5_tokenizer("porter", TOKENIZER_ARGUMENTS)

    def stems(text: str) -> list[str]:
        found = tokenizer(text.encode("utf-8"), DOCUMENT, None, include_offsets=False, include_colocated=False)
        return [str(stem) for stem in found]

    return stems


def term_key(stem: str) -> int:
    """The 32-bit key of a stem."""
    return zlib.crc32(stem.encode("utf-8"))


def pack_counts(stems: Sequence[str]) -> bytes:
    """The blob for a chunk with these stems."""
    counts = Counter(map(term_key, stems))
    keys = sorted(counts)
    return np.array(keys, "<u4").tobytes() + bytes(min(counts[key], 255) for key in keys)


def unpack_counts(blob: bytes) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
    """Keys (n,) uint32 ascending and counts (n,) uint8."""
    n = len(blob) // 5
    return np.frombuffer(blob, "<u4", n), np.frombuffer(blob, np.uint8, n, 4 * n)
