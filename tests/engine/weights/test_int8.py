"""Quantising by groups, and the panel layout."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.weights import int8


def random_weight(outputs: int, inputs: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 0.05, (outputs, inputs)).astype(np.float32)


@given(outputs=st.integers(1, 40), inputs=st.integers(1, 200), seed=st.integers(0, 99))
def test_panels_come_back_as_they_went_in(outputs: int, inputs: int, seed: int) -> None:
    codes, scales = int8.quantize_groups(random_weight(outputs, inputs, seed))
    panels, scale_panels = int8.to_panels(codes), int8.scales_to_panels(scales)
    assert panels.shape == (-(-outputs // 16), -(-inputs // 64) * 32, 16, 2)
    assert scale_panels.shape == (-(-outputs // 16), -(-inputs // 64), 16)
    assert panels.flags.c_contiguous and scale_panels.flags.c_contiguous
    np.testing.assert_array_equal(int8.from_panels(panels, outputs, inputs), codes)
    np.testing.assert_array_equal(int8.scales_from_panels(scale_panels, outputs), scales)
    assert np.abs(panels.astype(int)).sum() == np.abs(codes.astype(int)).sum()  # what pads is zero


def test_a_panel_entry_is_where_the_layout_says() -> None:
    codes = np.arange(20 * 70, dtype=np.int64).reshape(20, 70).astype(np.int8)
    panels = int8.to_panels(codes)
    for output, index in ((0, 0), (5, 1), (15, 69), (16, 2), (19, 69)):
        assert panels[output // 16, index // 2, output % 16, index % 2] == codes[output, index]


def test_rounding_errs_by_half_a_step_at_most() -> None:
    weight = random_weight(32, 192)
    codes, scales = int8.quantize_groups(weight)
    error = np.abs(int8.dequantize_groups(codes, scales) - weight).reshape(32, 3, 64).max(axis=2)
    # fp16 rounds the scale itself by one part in 2048, which moves the largest code by up to 127 / 2048 of a step.
    assert (error <= scales.astype(np.float32) * (0.5 + 127 / 2048)).all()
    assert np.abs(codes).max() == 127


def test_zero_and_faint_groups_stay_what_they_are() -> None:
    weight = np.zeros((2, 128), np.float32)
    weight[1, 64:] = 1e-9
    codes, scales = int8.quantize_groups(weight)
    assert scales[0].tolist() == [0, 0]
    assert np.isfinite(int8.dequantize_groups(codes, scales)).all()
    assert np.abs(int8.dequantize_groups(codes, scales) - weight).max() <= 1e-9


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30])
def test_numbers_that_fit_no_scale_are_refused(value: float) -> None:
    weight = random_weight(2, 64)
    weight[1, 3] = value
    with pytest.raises(ValueError, match="not finite"):
        int8.quantize_groups(weight)


@given(groups=st.integers(1, 13), signs=st.sampled_from([(0, 1), (-1, 0), (-1, 1)]), seed=st.integers(0, 9999))
def test_no_sum_of_a_block_leaves_int32_whatever_codes_scales_and_rows_are(
    groups: int, signs: tuple[int, int], seed: int
) -> None:
    random = np.random.default_rng(seed)
    panels = random.integers(128 * signs[0], 127 * signs[1] + 1, (1, groups * 32, 16, 2)).astype(np.int8)
    panels[:, :, ::2] = -128 if signs[0] else 127  # the most that a channel can add up to
    scales = (10.0 ** random.uniform(-7, 4, (1, groups, 16)) * random.choice([0, 1, -1], (1, groups, 16))).astype("f2")
    multipliers, blocks = int8.spread(panels, scales)
    codes = int8.widened(panels, multipliers)
    assert np.abs(codes).max() <= 32767 and (blocks >= 0).all()
    sums = np.add.reduceat(np.abs(codes).sum(axis=3), np.arange(0, groups * 32, int8.DEPTH // 2), axis=1)
    assert (sums.astype(np.int64) * int8.ACTIVATION_LIMIT < 2**31).all()
    error = np.abs(int8.group_scales(multipliers, blocks) - scales.astype(np.float32))
    assert (error <= 0.51 / int8.ONE * np.repeat(blocks, 6, axis=1)[:, :groups]).all()


def test_a_table_row_has_a_scale_of_its_own() -> None:
    rows = random_weight(5, 48) * np.array([[1], [100], [0], [0.001], [1]], np.float32)
    codes, scales = int8.quantize_table(rows)
    assert codes.dtype == np.int8 and scales.dtype == np.float32 and scales[2] == 0
    assert (np.abs(int8.dequantize_table(codes, scales) - rows) <= scales * 0.50001).all()
    with pytest.raises(ValueError, match="not finite"):
        int8.quantize_table(np.full((1, 4), np.nan, np.float32))


@pytest.mark.parametrize(("width", "groups"), [(384, 1), (385, 7), (768, 12)])
def test_a_wide_row_of_a_table_has_a_scale_for_every_64_numbers(width: int, groups: int) -> None:
    rows = random_weight(5, width)
    rows[:, 70] *= 100  # stands out, in the second group
    codes, scales = int8.quantize_table(rows)
    assert codes.shape == (5, width) and scales.shape == (5, groups) and codes.flags.c_contiguous
    error = np.abs(int8.dequantize_table(codes, scales) - rows)
    assert (error[:, :64].max() < 0.002) == (groups > 1)
    assert (error <= np.repeat(scales, 64 if groups > 1 else width, axis=1)[:, :width] * 0.50001).all()


def test_fp32_panels_hold_sixteen_outputs_side_by_side() -> None:
    weight = random_weight(20, 10)
    panels = int8.fp32_panels(weight)
    assert panels.shape == (2, 10, 16)
    np.testing.assert_array_equal(panels[1, :, 3], weight[19])
    assert not panels[1, :, 4:].any()
