"""What a caller may choose when a model is loaded, encoder or reranker: how it computes, and on how many threads."""

from __future__ import annotations

import os
from typing import Literal

from engine.errors import EngineError

Precision = Literal["fp32", "int8"]

# What may be asked for; "auto" takes what suits the model.
PRECISIONS = ("auto", "fp32", "int8")


def chosen_precision(asked: str) -> Precision:
    """What is really computed; EngineError where there is no such precision."""
    if asked not in PRECISIONS:
        raise EngineError(f"Precision {asked!r} is not one of {', '.join(PRECISIONS)}.")
    return "fp32" if asked == "fp32" else "int8"


def chosen_workers(asked: int | None) -> int:
    """Threads at most; None leaves one core free. EngineError where the number is impossible."""
    if asked is not None and asked < 1:
        raise EngineError(f"A worker count of {asked} is not possible; at least 1 is needed.")
    return asked or max(1, (os.cpu_count() or 1) - 1)
