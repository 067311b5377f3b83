"""Spans of text: joining, clipping, and the step from Python's code points to Qt's UTF-16 units."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from ui.clients import Span


def merge(spans: Iterable[Span]) -> list[Span]:
    """Sorted spans without overlap; empty and backward ones are dropped, touching ones joined."""
    merged: list[Span] = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def clip(spans: Iterable[Span], start: int, end: int) -> list[Span]:
    """The parts of `spans` inside [start, end), relative to `start`."""
    return [
        (max(a, start) - start, min(b, end) - start) for a, b in spans if max(a, start) < min(b, end)
    ]


class Utf16:
    """Maps code point offsets of one text to UTF-16 offsets. Cheap for text inside the basic plane."""

    def __init__(self, text: str) -> None:
        self._wide = [] if text.isascii() else [i for i, char in enumerate(text) if ord(char) > 0xFFFF]

    def offset(self, position: int) -> int:
        """UTF-16 units before code point `position`."""
        return position + bisect_left(self._wide, position)

    def span(self, span: Span) -> Span:
        return (self.offset(span[0]), self.offset(span[1]))


def unwrap(text: str) -> str:
    """`text` with the line ends of a printed column made blanks; every character keeps its place.

    A line end stays where a paragraph seems to end: at an empty line, after a short line or one that ends a sentence,
    and before a line that begins like an item of a list.
    """
    lines = text.split("\n")
    usual = sorted(len(line) for line in lines if line.strip())
    long = 0.75 * usual[(len(usual) * 3) // 4] if usual else 0.0
    joined: list[str] = []
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        runs_on = len(line) >= max(long, 30) and not line.rstrip().endswith((".", "!", "?", ":", ";"))
        joined += [line, " " if runs_on and after[:1].isalpha() else "\n"]
    return "".join(joined[:-1])


def one_line(text: str, spans: Iterable[Span]) -> tuple[str, list[Span]]:
    """`text` with every run of white space as one blank, stripped; `spans` follow their characters."""
    places: list[int] = []  # new offset of every old offset
    kept: list[str] = []
    for char in text:
        places.append(len(kept))
        if not char.isspace():
            kept.append(char)
        elif kept and kept[-1] != " ":
            kept.append(" ")
    places.append(len(kept))
    line = "".join(kept)
    stripped = line.rstrip()
    moved = [(min(places[a], len(stripped)), min(places[b], len(stripped))) for a, b in spans if b <= len(text)]
    return stripped, merge(moved)
