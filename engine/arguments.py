"""What callers give to the engine: whatever is of another kind is a sentence that names the argument and the value."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, SupportsIndex

from engine.errors import EngineError


def whole_number(name: str, value: Any) -> int:
    """A whole number, of NumPy's kinds too, as an int; EngineError for anything else, true and false included."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise EngineError(f"{name} is {value!r}, which is not a whole number.")
    return operator.index(value)


def check_texts(name: str, texts: Any) -> None:
    """EngineError where it is no sequence of texts; a text alone is a sequence of letters, and hardly meant so."""
    if isinstance(texts, str | bytes):
        raise EngineError(f"{name} is one text, not a list of texts: put it into a list.")
    if not isinstance(texts, Sequence) and not (hasattr(texts, "__len__") and hasattr(texts, "__getitem__")):
        raise EngineError(f"{name} is of the type {type(texts).__name__}, not a list of texts.")
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise EngineError(f"{name} holds at index {i} something of the type {type(text).__name__}, not a text.")


def check_text(name: str, text: Any) -> None:
    """EngineError where it is no text."""
    if not isinstance(text, str):
        raise EngineError(f"{name} is of the type {type(text).__name__}, not a text.")
