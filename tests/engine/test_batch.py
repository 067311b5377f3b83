"""How texts are put together to batches."""

from __future__ import annotations

import pytest

from engine.batch import TOKEN_BUDGET, cut, token_budget


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 8, 64])
def test_more_workers_get_more_tokens_up_to_a_limit(workers: int) -> None:
    assert token_budget(1) == token_budget(2) <= token_budget(workers) <= token_budget(workers + 1) <= TOKEN_BUDGET


def test_texts_stay_in_order_and_batches_within_the_budget_but_for_a_text_that_is_larger() -> None:
    lengths = [3, 4, 5, 20, 1, 1, 8]
    parts = list(cut(lengths, 8))
    assert [i for part in parts for i in range(part.start, part.stop)] == list(range(len(lengths)))
    for part in parts:
        assert sum(lengths[part]) <= 8 or part.stop - part.start == 1
    assert list(cut([], 8)) == []
