"""Eight-bit weights: one fp16 scale for each output channel and group of 64 inputs, laid out for the kernels.

Groups of 64 keep the worst cosine against fp32 above 0.999, where one scale a channel falls to 0.99. The panel layout
is what the kernels stream: 16 output channels side by side, inputs in pairs, because one multiply-add instruction eats
a pair of int16.

The scales of groups do not reach the sums. The kernels widen each code to int16 times its group's multiplier, so that
all codes of one channel in a block of 384 inputs have one scale, and add up the products of the whole block in int32.
Rows of activations use 14 bits, and the scale of a channel is such that no sum can overflow, whatever the row: for
usual weights that leaves multipliers around 18, whose rounding adds less than one percent to what rounding to eight
bits costs. Four activations, and four widened codes, add up within int16, which products of pairs of rows need
(strassen.h).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

GROUP = 64  # inputs that share a scale
PANEL = 16  # output channels side by side in a panel
DEPTH = 384  # inputs whose products are summed in int32
ONE = 128  # the multiplier that leaves codes as they are
ACTIVATION_LIMIT = 8191  # the largest code of a row of activations
FAINTEST = np.float32(1e-30)  # a row of no larger activations is zeros
NARROW = 384  # numbers in a table's row that one scale suffices for

F32 = NDArray[np.float32]
F16 = NDArray[np.float16]
I16 = NDArray[np.int16]
I8 = NDArray[np.int8]

# What the widened codes of a channel in a block may add up to, less what rounding each code and its multiplier can add.
_MOST_CODES = np.float32((2**31 - 1) // ACTIVATION_LIMIT - 2 * DEPTH)
_MOST_MULTIPLIER = np.float32(63.0)  # in ones: four times 128 x 63 fit int16

# fp16's largest finite number, and the smallest one that is not subnormal and so keeps its 11 bits.
_LARGEST_SCALE = np.float32(65504.0)
_SMALLEST_SCALE = np.float32(2.0**-14)


def padded_inputs(inputs: int) -> int:
    """The number of inputs a panel stores: rounded up to whole groups."""
    return -(-inputs // GROUP) * GROUP


def panel_count(outputs: int) -> int:
    """The number of panels that hold this many output channels."""
    return -(-outputs // PANEL)


def quantize_groups(weight: F32, group: int = GROUP) -> tuple[I8, F16]:
    """Round a weight matrix to int8 by groups of inputs.

    weight: (outputs, inputs) float32, finite.
    Returns codes (outputs, inputs) int8 in -127..127 and scales (outputs, ceil(inputs / group)) float16, such that
    weight ~ codes * scale of its group. The codes are rounded against the scale as fp16 keeps it. A group of zeros
    has scale 0. Raises ValueError where a weight is not finite or too large for an fp16 scale.
    """
    outputs, inputs = weight.shape
    groups = -(-inputs // group)
    padded = np.zeros((outputs, groups * group), np.float32)
    padded[:, :inputs] = weight
    blocks = padded.reshape(outputs, groups, group)
    largest = np.abs(blocks).max(axis=2)
    if not np.isfinite(largest).all() or (largest > 127 * _LARGEST_SCALE).any():
        raise ValueError("a weight is not finite, or too large for an fp16 scale")
    # A subnormal scale would lose bits, a flushed one the whole group: so faint a group takes the smallest normal one.
    scales = np.where(largest > 0, np.maximum(largest / np.float32(127), _SMALLEST_SCALE), 0).astype(np.float16)
    divisor = np.where(scales > 0, scales, 1).astype(np.float32)[:, :, None]
    codes = np.clip(np.rint(blocks / divisor), -127, 127).astype(np.int8)
    return np.ascontiguousarray(codes.reshape(outputs, -1)[:, :inputs]), scales


def to_panels(codes: I8) -> I8:
    """Lay codes out for the kernels.

    codes: (outputs, inputs) int8. Returns (panels, padded inputs / 2, 16, 2) int8, where entry [p, i, c, j] is the
    code of output 16 p + c and input 2 i + j; what pads outputs to 16 and inputs to 64 is zero.
    """
    outputs, inputs = codes.shape
    panels, depth = panel_count(outputs), padded_inputs(inputs)
    padded = np.zeros((panels * PANEL, depth), np.int8)
    padded[:outputs, :inputs] = codes
    return np.ascontiguousarray(padded.reshape(panels, PANEL, depth // 2, 2).transpose(0, 2, 1, 3))


def from_panels(panels: I8, outputs: int, inputs: int) -> I8:
    """The inverse of `to_panels`: (panels, padded inputs / 2, 16, 2) int8 back to (outputs, inputs) int8."""
    count, pairs = panels.shape[:2]
    flat = panels.transpose(0, 2, 1, 3).reshape(count * PANEL, pairs * 2)
    return np.ascontiguousarray(flat[:outputs, :inputs])


def scales_to_panels(scales: F16) -> F16:
    """Scales beside their panels: (outputs, groups) float16 to (panels, groups, 16) float16, padded with zeros."""
    outputs, groups = scales.shape
    padded = np.zeros((panel_count(outputs) * PANEL, groups), np.float16)
    padded[:outputs] = scales
    return np.ascontiguousarray(padded.reshape(-1, PANEL, groups).transpose(0, 2, 1))


def scales_from_panels(panels: F16, outputs: int) -> F16:
    """The inverse of `scales_to_panels`: (panels, groups, 16) float16 back to (outputs, groups) float16."""
    groups = panels.shape[1]
    return np.ascontiguousarray(panels.transpose(0, 2, 1).reshape(-1, groups)[:outputs])


def quantize_panels(weight: F32) -> tuple[I8, F16]:
    """`quantize_groups` in panels: codes as of `to_panels`, scales as of `scales_to_panels`."""
    codes, scales = quantize_groups(weight)
    return to_panels(codes), scales_to_panels(scales)


def block_count(inputs: int) -> int:
    """The number of blocks of DEPTH inputs that share a scale in the kernels."""
    return -(-padded_inputs(inputs) // DEPTH)


def spread(panels: I8, scales: F32 | F16) -> tuple[I16, F32]:
    """Scales of groups as multipliers of the codes and scales of blocks.

    panels: as of `to_panels`; scales: (panels, groups, 16). Returns multipliers (panels, groups, 16) int16, in units
    of 1 / ONE, and scales (panels, blocks, 16) float32: scale of the group ~ multiplier / ONE * scale of the block.
    """
    count, groups = scales.shape[:2]
    # A tree of halves: NumPy's own sum over an axis in the middle takes fifteen times as long.
    # As they may come from a file, codes may be -128, whose size int8 does not hold, and scales below zero.
    sizes = np.abs(panels).view(np.uint8).reshape(count * groups, GROUP // 2, 2 * PANEL)
    half = GROUP // 4
    added = sizes[:, :half].astype(np.int16) + sizes[:, half:]
    while half > 1:
        half //= 2
        added = added[:, :half] + added[:, half:]
    of_group = scales.astype(np.float32)
    size_of_group = np.abs(of_group)
    amounts = added.reshape(count, groups, PANEL, 2).sum(axis=3, dtype=np.int32) * size_of_group
    starts = np.arange(0, groups, DEPTH // GROUP)
    of_block = np.maximum(
        np.maximum.reduceat(size_of_group, starts, axis=1) / _MOST_MULTIPLIER,
        np.add.reduceat(amounts, starts, axis=1) / _MOST_CODES,
    ).astype(np.float32)
    wide = np.repeat(of_block, DEPTH // GROUP, axis=1)[:, :groups]
    ratio = np.divide(of_group, wide, out=np.zeros_like(of_group), where=wide > 0)
    most = _MOST_MULTIPLIER * ONE  # which scales that are no numbers, or hardly any, would pass
    return np.clip(np.nan_to_num(np.rint(ratio * ONE)), -most, most).astype(np.int16), of_block


def group_scales(multipliers: I16, scales: F32) -> F32:
    """The inverse of `spread`, up to the rounding of the multipliers: (panels, groups, 16) float32."""
    wide = np.repeat(scales, DEPTH // GROUP, axis=1)[:, : multipliers.shape[1]]
    return multipliers.astype(np.float32) * (wide / np.float32(ONE))


def widened(panels: I8, multipliers: I16) -> NDArray[np.int32]:
    """Codes times their multipliers, rounded to the nearest, halves up: (panels, padded inputs / 2, 16, 2)."""
    by = np.repeat(multipliers, GROUP // 2, axis=1)[:, :, :, None].astype(np.int32)
    found: NDArray[np.int32] = (panels.astype(np.int32) * by + ONE // 2) >> ONE.bit_length() - 1
    return found


def dequantize_groups(codes: I8, scales: F16, group: int = GROUP) -> F32:
    """What the codes stand for: (outputs, inputs) int8 and (outputs, groups) float16 to (outputs, inputs) float32."""
    wide = np.repeat(scales.astype(np.float32), group, axis=1)[:, : codes.shape[1]]
    return codes.astype(np.float32) * wide


def table_groups(width: int) -> int:
    """Scales a row of a table: one, or for wide rows one for every group.

    A few numbers of MPNet's positions stand out 14 times above the others: with one scale a row, its 768 numbers lost
    so much that the worst cosine fell to 0.995. Rows of 384 numbers lose nothing measurable.
    """
    return 1 if width <= NARROW else -(-width // GROUP)


def quantize_table(rows: F32) -> tuple[I8, F32]:
    """Round an embedding table to int8, with `table_groups` scales a row.

    rows: (count, dim) float32, finite. Returns codes (count, dim) int8 in -127..127 and scales (count, groups) float32,
    such that rows ~ codes * scale of the group; a group of zeros has scale 0. Raises ValueError where a value is not
    finite.
    """
    count, width = rows.shape
    groups = table_groups(width)
    depth = width if groups == 1 else GROUP
    padded = np.zeros((count, groups * depth), np.float32)
    padded[:, :width] = rows
    blocks = padded.reshape(count, groups, depth)
    largest = np.abs(blocks).max(axis=2)
    if not np.isfinite(largest).all():
        raise ValueError("a table value is not finite")
    scales = (largest / np.float32(127)).astype(np.float32)
    divisor = np.where(scales > 0, scales, 1).astype(np.float32)[:, :, None]
    codes = np.clip(np.rint(blocks / divisor), -127, 127).astype(np.int8)
    return np.ascontiguousarray(codes.reshape(count, -1)[:, :width]), scales


def dequantize_table(codes: I8, scales: F32) -> F32:
    """What a table's codes stand for: (count, dim) int8 and (count, groups) float32 to (count, dim) float32."""
    wide = scales if scales.shape[1] == 1 else np.repeat(scales, GROUP, axis=1)[:, : codes.shape[1]]
    return codes.astype(np.float32) * wide


def fp32_panels(weight: F32) -> F32:
    """Lay fp32 weights out for the kernels: (outputs, inputs) to (panels, inputs, 16) float32, padded with zeros."""
    outputs, inputs = weight.shape
    padded = np.zeros((panel_count(outputs) * PANEL, inputs), np.float32)
    padded[:outputs] = weight
    return np.ascontiguousarray(padded.reshape(-1, PANEL, inputs).transpose(0, 2, 1))
