"""The table of how far every family is from its reference: a row for every golden, with true numbers."""

import pytest

from tests.goldens.reading import HERE, STATE_BOUND, VECTOR_BOUND, checkpoints
from tests.goldens.table import folders, line, measure


def test_every_golden_folder_has_a_row() -> None:
    kinds = {"reference.npz", "tokens.npz", "pairs.npz"}
    assert folders() == sorted(f.parent.name for f in HERE.glob("*/*.npz") if f.name in kinds)
    assert set(checkpoints()) < set(folders())


@pytest.mark.parametrize("name", ["odd_bert", "late_stanford", "reranker_bert"])
def test_a_row_of_each_kind_is_within_the_bounds(name: str) -> None:
    row = measure(name)
    assert row.ids_equal and row.same_bits and row.texts >= 24 and row.lengths >= 10
    assert 0 < row.fp32_difference <= VECTOR_BOUND
    if name == "odd_bert":
        assert row.states_difference is not None and 0 < row.states_difference <= STATE_BOUND
    if row.int8_worst is None:
        assert row.int8_difference is not None and 0 < row.int8_difference < 0.03
    else:
        assert row.int8_mean is not None and 0.999 <= row.int8_worst < row.int8_mean < 1
    assert line(name, row).startswith(f"| {name} | {row.texts} ({row.lengths}) | equal | ")
