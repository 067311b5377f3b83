"""Parameters in the form that a plan runs on: float32 or int8, in the kernels' panel layout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from engine.weights.int8 import (
    ACTIVATION_LIMIT,
    DEPTH,
    FAINTEST,
    GROUP,
    PANEL,
    dequantize_table,
    group_scales,
    spread,
    widened,
)

F32 = NDArray[np.float32]


class Loaded(Protocol):
    """One parameter; each kind answers the questions that make sense for it."""

    def dense(self) -> F32:
        """The values of a vector, (width,) float32."""
        ...

    def rows(self, index: NDArray[np.int32]) -> F32:
        """Rows of a table: (len(index), width) float32."""
        ...

    def product(self, x: F32) -> F32:
        """x (rows, k) @ weight.T -> (rows, n) float32."""
        ...

    def index(self) -> NDArray[np.int32]:
        """Rows of another table: (count,) int32."""
        ...


class _Only:
    """A parameter answers one question; the others are a programming error."""

    def dense(self) -> F32:
        raise TypeError(f"{type(self).__name__} is not a vector")

    def rows(self, index: NDArray[np.int32]) -> F32:
        raise TypeError(f"{type(self).__name__} is not a table")

    def product(self, x: F32) -> F32:
        raise TypeError(f"{type(self).__name__} is not a linear weight")

    def index(self) -> NDArray[np.int32]:
        raise TypeError(f"{type(self).__name__} is not an index")


@dataclass(frozen=True)
class Vector(_Only):
    """values: (width,) float32, contiguous."""

    values: F32

    def dense(self) -> F32:
        return self.values


@dataclass(frozen=True)
class Index(_Only):
    """values: (count,) int32, contiguous."""

    values: NDArray[np.int32]

    def index(self) -> NDArray[np.int32]:
        return self.values


@dataclass(frozen=True)
class TableF32(_Only):
    """values: (count, width) float32, contiguous."""

    values: F32

    def rows(self, index: NDArray[np.int32]) -> F32:
        return self.values[index]


@dataclass(frozen=True)
class TableI8(_Only):
    """codes: (count, width) int8, contiguous; scales: (count, groups) float32, one a row or one for every GROUP."""

    codes: NDArray[np.int8]
    scales: F32

    def rows(self, index: NDArray[np.int32]) -> F32:
        return dequantize_table(self.codes[index], self.scales[index])


@dataclass(frozen=True)
class LinearF32(_Only):
    """panels: (ceil(n / 16), k, 16) float32, contiguous; n outputs."""

    panels: F32
    outputs: int

    def product(self, x: F32) -> F32:
        weight = self.panels.transpose(1, 0, 2).reshape(self.panels.shape[1], -1)[:, : self.outputs]
        return x @ weight


@dataclass(frozen=True)
class LinearI8(_Only):
    """panels: (ceil(n / 16), padded k / 2, 16, 2) int8; multipliers: (ceil(n / 16), padded k / 64, 16) int16; scales:
    (ceil(n / 16), blocks, 16) float32. See engine.weights.int8."""

    panels: NDArray[np.int8]
    multipliers: NDArray[np.int16]
    scales: F32
    outputs: int
    inputs: int

    @classmethod
    def of_groups(cls, panels: NDArray[np.int8], scales: NDArray[Any], outputs: int, inputs: int) -> LinearI8:
        """From codes and a scale for every group: (ceil(n / 16), padded k / 64, 16) float16 or float32."""
        return cls(panels, *spread(panels, scales), outputs, inputs)

    def product(self, x: F32) -> F32:
        """Integer products block by block, as the kernel does: activations rounded to int16 with one scale a row."""
        weight = _matrix(widened(self.panels, self.multipliers))
        codes, row_scales = quantize_rows(x, weight.shape[0])
        y = np.zeros((x.shape[0], weight.shape[1]), np.float32)
        for b in range(self.scales.shape[1]):
            part = slice(b * DEPTH, (b + 1) * DEPTH)
            sums = codes[:, part].astype(np.float64) @ weight[part]
            y += sums.astype(np.float32) * self.scales[:, b].reshape(-1)
        return (y * row_scales[:, None])[:, : self.outputs]


def _matrix(panels: NDArray[Any]) -> NDArray[np.float64]:
    """Panels (ceil(n / 16), padded k / 2, 16, 2) as a matrix (padded k, 16 ceil(n / 16))."""
    count, pairs = panels.shape[:2]
    return panels.transpose(1, 3, 0, 2).reshape(pairs * 2, count * PANEL).astype(np.float64)


@dataclass(frozen=True)
class LinearU8(LinearI8):
    """The same weights for activations of 8 bits: 4 products an instruction, where the processor has such."""

    @classmethod
    def of(cls, weight: LinearI8) -> LinearU8:
        """The same arrays, to be computed so."""
        return cls(weight.panels, weight.multipliers, weight.scales, weight.outputs, weight.inputs)

    def group_scales(self) -> F32:
        """(ceil(n / 16), padded k / 64, 16) float32: codes of 8 bits meet the codes of weights as they are stored."""
        return group_scales(self.multipliers, self.scales)

    def column_sums(self) -> F32:
        """What a row of ones would give: (16 ceil(n / 16),) float32."""
        count, pairs = self.panels.shape[:2]
        groups = self.panels.reshape(count, pairs * 2 // GROUP, GROUP // 2, PANEL, 2).sum(axis=(2, 4), dtype=np.int32)
        sums: F32 = (groups * self.group_scales()).sum(axis=1, dtype=np.float32)
        return sums.reshape(-1)

    def product(self, x: F32) -> F32:
        """Integer products group by group, as the kernel does: x ~ scale * code + shift; the shift meets the sums."""
        weight, by_group = _matrix(self.panels), self.group_scales()
        codes, scales, shifts = quantize_rows8(x, weight.shape[0])
        y = np.zeros((x.shape[0], weight.shape[1]), np.float32)
        for g in range(by_group.shape[1]):
            part = slice(g * GROUP, (g + 1) * GROUP)
            y += (codes[:, part].astype(np.float64) @ weight[part]).astype(np.float32) * by_group[:, g].reshape(-1)
        return (y * scales[:, None] + shifts[:, None] * self.column_sums())[:, : self.outputs]


def quantize_rows(x: F32, depth: int) -> tuple[NDArray[np.int16], F32]:
    """Round rows to int16 with one scale a row.

    x: (rows, k) float32; depth >= k, what is past k is zero.
    Returns codes (rows, depth) int16 in +-ACTIVATION_LIMIT and scales (rows,) float32 with x ~ codes * scale.
    """
    largest = np.abs(x).max(axis=1)
    scales = (largest / np.float32(ACTIVATION_LIMIT)).astype(np.float32)
    inverse = np.where(largest > FAINTEST, np.float32(ACTIVATION_LIMIT) / np.where(largest > FAINTEST, largest, 1), 0)
    codes = np.zeros((x.shape[0], depth), np.int16)
    codes[:, : x.shape[1]] = np.rint(x * inverse[:, None].astype(np.float32))
    return codes, scales


def quantize_rows8(x: F32, depth: int) -> tuple[NDArray[np.uint8], F32, F32]:
    """Round rows to 8 bits between their least and their greatest value.

    x: (rows, k) float32; depth >= k, what is past k is zero.
    Returns codes (rows, depth) uint8, scales and shifts (rows,) float32 with x ~ codes * scale + shift.
    """
    least, most = x.min(axis=1), x.max(axis=1)
    span = most - least
    scales = np.where(span > 0, span / np.float32(255), 1).astype(np.float32)
    inverse = np.where(span > 0, np.float32(255) / np.where(span > 0, span, 1), 0).astype(np.float32)
    codes = np.zeros((x.shape[0], depth), np.uint8)
    codes[:, : x.shape[1]] = np.rint((x - least[:, None]) * inverse[:, None])
    return codes, scales, least
