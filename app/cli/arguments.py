"""Types of arguments: what does not fit is wrong usage, said in words, before anything is opened or started."""

import argparse
from pathlib import Path

from app.settings import MOST_WORKERS

MOST_HITS = 1_000_000
MOST_COUNT = 1_000_000


def given_path(text: str) -> Path:
    """A file or folder. An empty text, mostly a variable that is not set, must not become the current folder."""
    return Path(given_text(text))


def given_text(text: str) -> str:
    """A name or path that is not empty."""
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty: leave it out, or say which")
    return text


def workers(text: str) -> int:
    """How many processor cores to use."""
    return _number(text, MOST_WORKERS)


def hits(text: str) -> int:
    """How many documents to find."""
    return _number(text, MOST_HITS)


def count(text: str) -> int:
    """How many numbers of a vector, tokens of a text, and the like."""
    return _number(text, MOST_COUNT)


def _number(text: str, most: int) -> int:
    # The length first: Python refuses to read numbers of thousands of digits.
    if not (text.isascii() and text.isdecimal() and len(text) <= 18 and 1 <= int(text) <= most):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to {most}")
    return int(text)
