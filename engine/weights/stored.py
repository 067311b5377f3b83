"""How a parameter is stored for the kernels: in which arrays, and how rows of published numbers become these.

Every form works row by row, in panels of 16, so a parameter can be made in blocks of rows: the arrays of the blocks,
one behind the other, are those of the whole, bit for bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from engine.models.parameters import Parameter
from engine.weights import int8
from engine.weights.loaded import Index, LinearF32, LinearI8, LinearU8, Loaded, TableF32, TableI8, Vector

F32 = NDArray[np.float32]
StoredPrecision = Literal["fp32", "int8"]
Precision = Literal["fp32", "int8", "int8-full"]  # how a plan computes; the last two share their weights
Form = Literal["panels", "panels8", "rows", "rows8", "vector", "index"]
Arrays = Mapping[str, NDArray[Any]]  # by their role: "values" or "codes", "multipliers" and "scales"

# A table of so few rows stays fp32. Token types are one row that is added to every token: rounding it to int8 cost
# more than all other weights together (worst cosine 0.9984 alone, against 0.9994 for every linear weight).
SMALL_TABLE_ROWS = 16


@dataclass(frozen=True)
class Stored:
    """One array of a parameter: its role, dtype (little-endian, as NumPy writes it) and shape."""

    role: str
    dtype: str
    shape: tuple[int, ...]


def stored_precision(precision: Precision) -> StoredPrecision:
    """What the weights are stored as for this precision."""
    return "fp32" if precision == "fp32" else "int8"


def computed(loaded: dict[str, Loaded], precision: Precision) -> dict[str, Loaded]:
    """Parameters such that a plan computes in this precision."""
    if precision != "int8-full":
        return loaded
    return {name: LinearU8.of(one) if isinstance(one, LinearI8) else one for name, one in loaded.items()}


def is_small(parameter: Parameter) -> bool:
    """Whether a table stays float32 in every precision."""
    few = parameter.kind == "table" and parameter.shape[0] <= SMALL_TABLE_ROWS
    return few or parameter.kind == "small"


def form_of(parameter: Parameter, precision: StoredPrecision) -> Form:
    """The form that a parameter is stored in."""
    if parameter.kind == "index":
        return "index"
    if parameter.kind == "vector":
        return "vector"
    eight = precision == "int8"
    if parameter.kind == "linear":
        return "panels8" if eight else "panels"
    return "rows8" if eight and not is_small(parameter) else "rows"


def arrays_of(form: Form, shape: tuple[int, ...]) -> tuple[Stored, ...]:
    """The arrays that a parameter of this shape consists of."""
    if form == "index":
        return (Stored("values", "<i4", shape),)
    if form in ("vector", "rows"):
        return (Stored("values", "<f4", shape),)
    if form == "rows8":
        return Stored("codes", "|i1", shape), Stored("scales", "<f4", (shape[0], int8.table_groups(shape[1])))
    panels = int8.panel_count(shape[0])
    if form == "panels":
        return (Stored("values", "<f4", (panels, shape[1], int8.PANEL)),)
    depth = int8.padded_inputs(shape[1])
    codes = Stored("codes", "|i1", (panels, depth // 2, int8.PANEL, 2))
    multipliers = Stored("multipliers", "<i2", (panels, depth // int8.GROUP, int8.PANEL))
    return codes, multipliers, Stored("scales", "<f4", (panels, int8.block_count(shape[1]), int8.PANEL))


def encode(form: Form, values: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """The arrays of a parameter, or of a block of its rows that begins at a multiple of 16.

    values: float32, for an index int32. Raises ValueError where a number cannot be rounded to eight bits.
    """
    if form == "panels":
        return {"values": int8.fp32_panels(values)}
    if form == "panels8":
        panels, of_group = int8.quantize_panels(values)
        multipliers, scales = int8.spread(panels, of_group)
        return {"codes": panels, "multipliers": multipliers, "scales": scales}
    if form == "rows8":
        return dict(zip(("codes", "scales"), int8.quantize_table(values), strict=True))
    return {"values": values}


def decode(form: Form, shape: tuple[int, ...], arrays: Arrays) -> Loaded:
    """The parameter that a plan runs on, from its arrays, which are not copied."""
    if form == "panels":
        return LinearF32(arrays["values"], shape[0])
    if form == "panels8":
        return LinearI8(arrays["codes"], arrays["multipliers"], arrays["scales"], shape[0], shape[1])
    if form == "rows8":
        return TableI8(arrays["codes"], arrays["scales"])
    if form == "rows":
        return TableF32(arrays["values"])
    return Index(arrays["values"]) if form == "index" else Vector(arrays["values"])
