"""Ragged batches: the token ids of several texts back to back, with cumulative lengths and no padding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Activations (tokens x inner width x 4 bytes) should stay in the second-level cache, while every worker has enough to
# do between two operations: 288 tokens, two blocks of rows as the kernels multiply them, are best for one worker and
# for two, and more workers need more. Measured with MiniLM, texts of 32 tokens: 384 tokens cost one worker 1 to 3 %
# more time a token.
SMALL_BUDGET = 288
TOKENS_A_WORKER = 144
TOKEN_BUDGET = 1024  # at most

# Texts tokenised before their batches run: many batches' worth, few enough that work can be stopped soon and that
# token ids take no room to speak of.
READ_AT_ONCE = 512


def token_budget(workers: int) -> int:
    """Tokens of one batch."""
    return min(TOKEN_BUDGET, max(SMALL_BUDGET, TOKENS_A_WORKER * workers))


@dataclass(frozen=True)
class Batch:
    """ids, positions, types: (tokens,) int32; starts: (texts + 1,) int64, text i owns starts[i]:starts[i + 1].

    prompt: how many tokens at the start of every text are its prompt.
    visible: (texts,) int32, how many tokens at the start of each text its tokens attend to; None for all.
    """

    ids: NDArray[np.int32]
    positions: NDArray[np.int32]
    types: NDArray[np.int32]
    starts: NDArray[np.int64]
    prompt: int = 0
    visible: NDArray[np.int32] | None = None

    @property
    def tokens(self) -> int:
        return int(self.ids.shape[0])

    @property
    def texts(self) -> int:
        return int(self.starts.shape[0]) - 1

    @staticmethod
    def of(
        ids: Sequence[NDArray[np.int32]],
        padding_id: int | None = None,
        prompt: int = 0,
        types: Sequence[NDArray[np.int32]] | None = None,
        visible: NDArray[np.int32] | None = None,
    ) -> Batch:
        """A batch of token id arrays, each (length,) int32; token types as long as they, or all 0.

        Positions count from 0; with a padding id they count from that id + 1, and a padding token inside a text has
        the padding id for its position and is not counted, as the RoBERTa classes do it.
        """
        starts = np.zeros(len(ids) + 1, np.int64)
        np.cumsum([len(x) for x in ids], out=starts[1:])
        flat = np.concatenate(ids).astype(np.int32, copy=False) if ids else np.zeros(0, np.int32)
        lengths = np.diff(starts)
        positions = np.arange(flat.shape[0]) - np.repeat(starts[:-1], lengths)
        if padding_id is not None:
            counted = np.cumsum(flat != padding_id)
            before = np.concatenate([[0], counted])[starts[:-1]]
            positions = np.where(flat == padding_id, 0, counted - np.repeat(before, lengths)) + padding_id
        kinds = np.zeros_like(flat) if types is None else np.concatenate(types).astype(np.int32, copy=False)
        return Batch(flat, positions.astype(np.int32), kinds, starts, prompt, visible)


def cut(lengths: Sequence[int], budget: int) -> Iterator[slice]:
    """Slices of consecutive texts whose tokens fit the budget; a text larger than the budget goes alone."""
    start = total = 0
    for i, length in enumerate(lengths):
        if i > start and total + length > budget:
            yield slice(start, i)
            start, total = i, 0
        total += length
    if start < len(lengths):
        yield slice(start, len(lengths))
