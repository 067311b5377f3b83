"""Texts longer than a model takes: overlapping windows of them, and one vector from those of the windows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]
I32 = NDArray[np.int32]

OVERLAP_SHARE = 8  # of a window, one part in so many is also in the next unless the caller says otherwise


@dataclass(frozen=True)
class LongVector:
    """vector: (dim,) float32, of the whole text; windows: (w, dim) float32, of its windows.

    spans: (w, 2) int32, start and end characters of each window; tokens: (w,) int32, how many of the text's tokens
    lie in it, which is its weight in `vector`.
    """

    vector: F32
    windows: F32
    spans: I32
    tokens: I32


@dataclass(frozen=True)
class Window:
    """Characters start to end of a text, with so many of its tokens."""

    start: int
    end: int
    tokens: int


def cut_windows(text: str, spans: I32, room: int, overlap: int, excess: Callable[[str], int]) -> Iterator[Window]:
    """Windows that cover the text, cut between tokens; each shares `overlap` tokens with the next, or nearly so many.

    spans: (t, 2) int32, the characters of each token, t > 0. room: tokens that fit one window.
    excess: how many tokens are too many of a piece of text that is read alone. A word that a window cuts may be read
    as more tokens than it was; such a window ends earlier, so that nothing of it is lost.
    Only a single token that is too long by itself goes alone and loses its end.
    """
    # A character of several tokens is in all of their spans.
    starts, ends = np.maximum.accumulate(spans[:, 0]), np.maximum.accumulate(spans[:, 1])
    first = done = 0
    while done < len(spans):
        start, last = int(starts[first]) if first else 0, min(first + room, len(spans))
        while True:
            end = int(ends[last - 1]) if last < len(spans) else len(text)
            surplus = excess(text[start:end])
            if surplus <= 0 or last - first == 1:
                break
            last = max(first + 1, last - surplus)
        if last <= done:  # what follows does not fit beside all of the shared tokens
            first += (done - first + 1) // 2
            continue
        yield Window(start, end, last - first)
        first, done = max(first + 1, last - overlap), last


def weighted_mean(windows: F32, tokens: I32) -> F32:
    """The windows' mean, each counted by its tokens: (w, dim) float32 and (w,) int32 -> (1, dim) float32."""
    weights = np.maximum(tokens, 1).astype(np.float64)
    mean: F32 = (weights @ windows.astype(np.float64) / weights.sum()).astype(np.float32)
    return mean[None]
