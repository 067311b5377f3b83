"""What a caller may choose when a model is loaded, encoder or reranker: how it computes, and on how many threads."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any, Protocol

from engine import kernels
from engine.arguments import whole_number
from engine.errors import EngineError
from engine.record import Record
from engine.weights.packed import is_packed
from engine.weights.safetensors import Weights
from engine.weights.stored import Precision

# Goes into every fingerprint and measurement: raised when a change of the engine changes vectors beyond rounding.
NUMERICS = 1

# What may be asked for; "auto" takes what suits the model.
COMPUTED: tuple[Precision, ...] = ("fp32", "int8", "int8-full")
PRECISIONS = ("auto", *COMPUTED)

MOST_WORKERS = 256


class Folder(Protocol):
    """What an encoder's folder and a reranker's have in common."""

    @property
    def path(self) -> Path: ...

    def weights(self) -> Weights: ...


def check_precision(asked: str) -> None:
    """EngineError where there is no such precision."""
    if asked not in PRECISIONS:
        raise EngineError(f"Precision {asked!r} is not one of {', '.join(PRECISIONS)}.")


def chosen_precision(asked: str, folder: Folder) -> Precision:
    """What is really computed; EngineError where there is no such precision.

    "auto" is int8, but fp32 where int8 was measured to change this model too much and fp32 weights are there. It is
    never int8-full, whose error is several times that of int8: whoever wants the speed asks for it.
    """
    check_precision(asked)
    for precision in COMPUTED:
        if asked == precision:
            return precision
    fidelity = Record.read(folder.path).fidelity
    if fidelity is None or fidelity.numerics != NUMERICS or fidelity.int8_suffices:
        return "int8"
    with folder.weights() as weights:
        return "int8" if is_packed(weights) else "fp32"


def available_precisions(folder: Folder) -> tuple[str, ...]:
    """What the folder's weights can be computed in on this machine."""
    with folder.weights() as weights:
        packed = is_packed(weights)
    found = kernels.library()
    lacking = {"auto", "fp32"} if packed else {"auto"}
    if found is not None and not found.has_u8:
        lacking.add("int8-full")
    return tuple(name for name in PRECISIONS if name not in lacking)


def chosen_workers(asked: int | None) -> int:
    """Threads at most; None leaves one core free. EngineError where the number is impossible."""
    if asked is None:
        return min(MOST_WORKERS, max(1, (os.cpu_count() or 1) - 1))
    count = whole_number("workers", asked)
    if not 1 <= count <= MOST_WORKERS:
        raise EngineError(f"A worker count of {count} is not possible; it must be from 1 to {MOST_WORKERS}.")
    return count


def chosen_idle_seconds(asked: float | None) -> float | None:
    """After how long a model is idle, None for never; EngineError where that is no time."""
    value: Any = asked
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0):
        raise EngineError(f"idle_seconds is {value!r}, which is not a number of seconds.")
    return None if value == math.inf else value


def chosen_folder(name: str, asked: str | Path | None) -> Path | None:
    """A folder that may be given as a text, None for none; EngineError where it is neither."""
    if asked is not None and not isinstance(asked, str | Path):
        raise EngineError(f"{name} is {asked!r}, which is not a folder's path.")
    return None if asked is None else Path(asked)
