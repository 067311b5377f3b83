"""Where a batch's tokens go in the kernels' matrices, so that rows of float32 can be multiplied in pairs.

Products of pairs of rows (strassen.h) take an eighth less work, but round both rows together. So that a text's vector
does not depend on its neighbours, both are rows of one text: texts of PAIRED_TOKENS and more come first, each with an
even number of rows, and shorter ones are multiplied row by row, whatever else is in the batch.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.batch import Batch

PAIRED_TOKENS = 32  # shorter texts gain nothing

I64 = NDArray[np.int64]


class Laid(NamedTuple):
    """batch: its tokens are the rows, and text i owns starts[i]:ends[i].

    ends: (texts,) int64; None where each text ends where the next one starts. A row that is nobody's repeats the one
    before. paired: so many rows at the start are whole pairs of one text each. of_tokens: (tokens,) int64, the row of
    each token of the batch as it was; None where they are in order.
    """

    batch: Batch
    ends: I64 | None = None
    paired: int = 0
    of_tokens: I64 | None = None


def lay_rows(batch: Batch) -> Laid:
    """The rows of a batch where those of long texts are multiplied in pairs."""
    lengths = np.diff(batch.starts)
    long = lengths >= PAIRED_TOKENS
    if not long.any():
        return Laid(batch)
    odd = lengths & long
    if long.all() and not odd.any():
        return Laid(batch, None, batch.tokens)
    room, order = lengths + odd, np.argsort(~long, kind="stable")
    starts = np.empty_like(room)
    starts[order] = np.cumsum(room[order]) - room[order]
    token = np.arange(batch.tokens)
    of_tokens = token + np.repeat(starts - batch.starts[:-1], lengths)
    held = np.empty(int(room.sum()), np.int64)
    held[(starts + lengths)[odd > 0]] = batch.starts[1:][odd > 0] - 1
    held[of_tokens] = token
    ids, positions, types = batch.ids[held], batch.positions[held], batch.types[held]
    laid = replace(batch, ids=ids, positions=positions, types=types, starts=np.append(starts, 0))
    return Laid(laid, starts + lengths, int(room[long].sum()), of_tokens)
