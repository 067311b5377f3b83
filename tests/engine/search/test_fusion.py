from __future__ import annotations

import numpy as np
import pytest

from engine.search.fusion import fuse, reads, standardise


def test_scores_get_mean_0_and_deviation_1() -> None:
    out = standardise(np.array([1, 2, 3, 10], np.float32))
    assert abs(float(out.mean())) < 1e-6 and abs(float(out.std()) - 1) < 1e-6


def test_candidates_without_a_score_are_neither_favoured_nor_buried() -> None:
    out = standardise(np.array([3, np.nan, 1], np.float32))
    assert out.tolist() == [1.0, 0.0, -1.0]


def test_equal_scores_decide_nothing() -> None:
    assert standardise(np.array([5, 5, np.nan], np.float32)).tolist() == [0, 0, 0]
    assert standardise(np.array([np.nan, np.nan], np.float32)).tolist() == [0, 0]


def test_weights_decide_between_disagreeing_scores() -> None:
    a, b = np.array([1, 2], np.float32), np.array([2, 1], np.float32)
    assert fuse([(1.0, a), (0.5, b)]).argmax() == 1
    assert fuse([(0.5, a), (1.0, b)]).argmax() == 0


@pytest.mark.parametrize(
    ("languages", "text", "readable"),
    [
        (["en"], "plain words", True),
        (["en"], "café in Zürich", True),
        (["en"], "東京の人口", False),
        (["en"], "население Москвы", False),
        (["en"], "iPhone 価格", True),
        (["en"], "2041-7", True),
        (["multilingual"], "東京の人口", True),
        (["en", "zh"], "東京の人口", True),
        ([], "東京の人口", True),
    ],
)
def test_a_model_is_doubted_only_in_scripts_it_cannot_read(languages: list[str], text: str, readable: bool) -> None:
    assert reads(languages, text) is readable
