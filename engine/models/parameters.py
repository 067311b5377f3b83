"""What a family needs from a published checkpoint: one record per parameter that the forward pass names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["linear", "table", "vector"]


@dataclass(frozen=True)
class Parameter:
    """One parameter under the name that the plan uses.

    kind: "linear" (n outputs, k inputs: quantised by groups, packed into panels), "table" (rows looked up by index),
    "vector" (bias, norm weight: always float32).
    sources: published tensor names; several are concatenated along axis 0 (query, key and value become one linear).
    """

    name: str
    kind: Kind
    shape: tuple[int, ...]
    sources: tuple[str, ...]


def linear(name: str, outputs: int, inputs: int, *sources: str) -> list[Parameter]:
    """The weight and bias of a linear layer; `sources` are published module names without `.weight` and `.bias`."""
    return [
        Parameter(f"{name}.weight", "linear", (outputs, inputs), tuple(f"{s}.weight" for s in sources)),
        Parameter(f"{name}.bias", "vector", (outputs,), tuple(f"{s}.bias" for s in sources)),
    ]


def norm(name: str, width: int, source: str) -> list[Parameter]:
    """The weight and bias of a LayerNorm."""
    return [
        Parameter(f"{name}.weight", "vector", (width,), (f"{source}.weight",)),
        Parameter(f"{name}.bias", "vector", (width,), (f"{source}.bias",)),
    ]
