"""How often each stem occurs in a chunk, as a small blob beside it.

Layout: for each stem a little-endian uint32 key and a uint8 count (255 means 255 or more), by ascending key.
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
RECORD = np.dtype([("key", "<u4"), ("count", "u1")])
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
    packed = np.empty(len(counts), RECORD)
    packed["key"] = list(counts)
    packed["count"] = [min(count, 255) for count in counts.values()]
    packed.sort(order="key")
    return packed.tobytes()


def unpack_counts(blobs: Sequence[bytes]) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint8]]:
    """Of many blobs back to back: how many entries each has, all keys, all counts."""
    packed = np.frombuffer(b"".join(blobs), RECORD)
    sizes = np.array([len(blob) // RECORD.itemsize for blob in blobs], np.int64)
    return sizes, np.ascontiguousarray(packed["key"]), np.ascontiguousarray(packed["count"])
