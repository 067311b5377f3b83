"""What a caller may choose when a model is loaded, encoder or reranker: how it computes, and on how many threads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, Protocol

from engine.errors import EngineError
from engine.record import Record
from engine.weights.packed import is_packed
from engine.weights.safetensors import Weights

Precision = Literal["fp32", "int8"]

# Goes into every fingerprint and measurement: raised when a change of the engine changes vectors beyond rounding.
NUMERICS = 1

# What may be asked for; "auto" takes what suits the model.
PRECISIONS = ("auto", "fp32", "int8")


class Folder(Protocol):
    """What an encoder's folder and a reranker's have in common."""

    @property
    def path(self) -> Path: ...

    def weights(self) -> Weights: ...


def chosen_precision(asked: str, folder: Folder) -> Precision:
    """What is really computed; EngineError where there is no such precision.

    "auto" is int8, but fp32 where int8 was measured to change this model too much and fp32 weights are there.
    """
    if asked not in PRECISIONS:
        raise EngineError(f"Precision {asked!r} is not one of {', '.join(PRECISIONS)}.")
    if asked != "auto":
        return "fp32" if asked == "fp32" else "int8"
    fidelity = Record.read(folder.path).fidelity
    if fidelity is None or fidelity.numerics != NUMERICS or fidelity.int8_suffices:
        return "int8"
    with folder.weights() as weights:
        return "int8" if is_packed(weights) else "fp32"


def available_precisions(folder: Folder) -> tuple[str, ...]:
    """What the folder's weights can be computed in."""
    with folder.weights() as weights:
        packed = is_packed(weights)
    return tuple(name for name in PRECISIONS if name != "auto" and not (packed and name == "fp32"))


def chosen_workers(asked: int | None) -> int:
    """Threads at most; None leaves one core free. EngineError where the number is impossible."""
    if asked is not None and asked < 1:
        raise EngineError(f"A worker count of {asked} is not possible; at least 1 is needed.")
    return asked or max(1, (os.cpu_count() or 1) - 1)
