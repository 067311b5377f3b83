"""What a family needs from a published checkpoint: one record per parameter that the forward pass names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["linear", "table", "small", "vector", "index"]


@dataclass(frozen=True)
class Parameter:
    """One parameter under the name that the plan uses.

    kind: "linear" (n outputs, k inputs: quantised by groups, packed into panels), "table" (rows looked up by index),
    "small" (a table that stays float32: every token reads it), "vector" (bias, norm weight: always float32),
    "index" (rows of the first table: int32).
    sources: published tensor names; several are concatenated along axis 0 (query, key and value become one linear).
    A name begins behind the checkpoint's prefix, unless it begins with a slash or names a module's folder before one.
    """

    name: str
    kind: Kind
    shape: tuple[int, ...]
    sources: tuple[str, ...]


def linear(name: str, outputs: int, inputs: int, *sources: str, bias: bool = True) -> list[Parameter]:
    """The weight and bias of a linear layer; `sources` are published module names without `.weight` and `.bias`."""
    found = [Parameter(f"{name}.weight", "linear", (outputs, inputs), tuple(f"{s}.weight" for s in sources))]
    if bias:
        found.append(Parameter(f"{name}.bias", "vector", (outputs,), tuple(f"{s}.bias" for s in sources)))
    return found


def norm(name: str, width: int, source: str, *, bias: bool = True) -> list[Parameter]:
    """The weight and bias of a LayerNorm, or the weight of an RMSNorm."""
    parts = ("weight", "bias") if bias else ("weight",)
    return [Parameter(f"{name}.{part}", "vector", (width,), (f"{source}.{part}",)) for part in parts]


def table(name: str, rows: int, width: int, source: str) -> Parameter:
    """An embedding table."""
    return Parameter(name, "table", (rows, width), (f"{source}.weight",))
