"""Where tokens go when rows are multiplied in pairs."""

import numpy as np
import pytest

from engine.batch import Batch
from engine.kernels.pairing import PAIRED_TOKENS, lay_rows

LONG = PAIRED_TOKENS


def batch(*lengths: int) -> Batch:
    starts = np.cumsum([0, *lengths])
    ids = np.arange(starts[-1], dtype=np.int32)
    return Batch(ids, ids + 1000, ids % 2, starts)


@pytest.mark.parametrize(
    "lengths",
    [(LONG + 1,), (3, LONG, 5), (LONG + 1, 1, LONG + 2, LONG + 3, LONG - 1), (LONG, LONG + 5, 2 * LONG, 1)],
)
def test_long_texts_come_first_each_with_an_even_number_of_rows(lengths: tuple[int, ...]) -> None:
    before = batch(*lengths)
    laid = lay_rows(before)
    assert laid.ends is not None and laid.of_tokens is not None
    after, starts = laid.batch, laid.batch.starts[:-1]
    assert after.texts == before.texts and laid.paired % 2 == 0
    np.testing.assert_array_equal(laid.ends - starts, lengths)
    for i, length in enumerate(lengths):
        assert (starts[i] < laid.paired) == (length >= LONG)
        assert starts[i] % 2 == 0 or length < LONG
        for field in ("ids", "positions", "types"):
            wanted = getattr(before, field)[before.starts[i] : before.starts[i + 1]]
            found = getattr(after, field)[starts[i] : laid.ends[i] + (length % 2 if length >= LONG else 0)]
            np.testing.assert_array_equal(found[:length], wanted)
            assert (found[length:] == wanted[-1]).all()  # a row that is nobody's repeats the one before
    np.testing.assert_array_equal(after.ids[laid.of_tokens], before.ids)
    assert after.tokens == sum(n + (n % 2 if n >= LONG else 0) for n in lengths)


def test_a_batch_without_long_texts_or_of_even_ones_alone_stays_as_it_is() -> None:
    for lengths, paired in (((1, LONG - 1), 0), ((LONG, LONG + 2), 2 * LONG + 2)):
        before = batch(*lengths)
        laid = lay_rows(before)
        assert laid.batch is before and laid.ends is None and laid.of_tokens is None and laid.paired == paired
