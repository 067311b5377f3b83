"""Texts as they come in: lines, JSON lines or whole files, in portions that keep memory small however much comes."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, Literal, Protocol, cast

from app.terminal import printable_path
from engine import EngineError

Kind = Literal["lines", "jsonl", "whole"]

CHUNK_BYTES = 1 << 16  # read at once, less where a pipe has less to give: what has come is answered without waiting
STANDARD_INPUT = "Standard input"
PORTION_LINES = 512
PORTION_CHARS = 1 << 20  # of whole files; one that is longer goes alone


class Chunks(Protocol):
    """A stream that gives what has come, without waiting for more."""

    def read1(self, size: int, /) -> bytes: ...


@dataclass(frozen=True)
class Item:
    """A text, and what its row begins with so that it is known again."""

    text: str
    label: dict[str, Any]


def given(texts: Sequence[str]) -> Iterator[list[Item]]:
    """Texts that are at hand."""
    yield [Item(text, {"text": text}) for text in texts]


def from_standard_input(kind: Kind) -> Iterator[list[Item]]:
    """Portions of standard input; with "whole" it is one text. Raises EngineError where it is no text."""
    if kind == "whole":
        text = _decoded(sys.stdin.buffer.read(), STANDARD_INPUT)
        yield [Item(text, {"text": text})]
    else:
        yield from _items(cast(Chunks, sys.stdin.buffer), kind, STANDARD_INPUT)


def from_files(files: Sequence[Path], kind: Kind) -> Iterator[list[Item]]:
    """Portions of files. Raises EngineError for one that cannot be read or is no text."""
    if kind == "whole":
        yield from _whole(files)
        return
    for file in files:
        with _reading(file) as stream:
            yield from _items(stream, kind, printable_path(str(file)))


def _whole(files: Sequence[Path]) -> Iterator[list[Item]]:
    portion, chars = list[Item](), 0
    for file in files:
        with _reading(file) as stream:
            text = _decoded(stream.read(), printable_path(str(file)))
        if portion and chars + len(text) > PORTION_CHARS:
            yield portion
            portion, chars = [], 0
        portion.append(Item(text, {"file": str(file)}))
        chars += len(text)
    if portion:
        yield portion


@contextmanager
def _reading(file: Path) -> Iterator[BufferedReader]:
    try:
        with file.open("rb") as stream:
            yield stream
    except OSError as error:
        if error.filename is None or Path(error.filename) != file:  # somebody else's trouble, such as a full disk
            raise
        raise EngineError(f"{file} cannot be read ({error.strerror or error}).") from error


def _items(stream: Chunks, kind: Kind, source: str) -> Iterator[list[Item]]:
    number = 0
    for lines in _lines(stream):
        portion = []
        for line in lines:
            number += 1
            if kind == "lines":
                text = _decoded(line, f"{source}, line {number}", first=number == 1).rstrip("\r")
                portion.append(Item(text, {"text": text}))
            elif line.strip():
                portion.append(_parsed(line, f"{source}, line {number}", first=number == 1))
        if portion:
            yield portion


def _lines(stream: Chunks) -> Iterator[list[bytes]]:
    """The lines that are complete after each read, without their ends; what follows the last end is a line too."""
    pieces: list[bytes] = []
    while chunk := stream.read1(CHUNK_BYTES):
        *lines, rest = chunk.split(b"\n")
        if lines:
            lines[0] = b"".join([*pieces, lines[0]])
            pieces = []
            for start in range(0, len(lines), PORTION_LINES):
                yield lines[start : start + PORTION_LINES]
        pieces.append(rest)
    if any(pieces):
        yield [b"".join(pieces)]


def _parsed(line: bytes, place: str, *, first: bool) -> Item:
    text = _decoded(line, place, first=first)
    try:
        values = json.loads(text)
    except ValueError as error:
        raise EngineError(f"{place} is not JSON ({error}).") from error
    if not isinstance(values, dict) or not isinstance(values.get("text"), str):
        raise EngineError(f"{place} is no object with a text under the key 'text'.")
    label = {key: values[key] for key in ("id", "text") if key in values}
    return Item(values["text"], label)


def _decoded(data: bytes, place: str, *, first: bool = True) -> str:
    """UTF-8, without a byte order mark at the start. Raises EngineError, which names the place, for anything else."""
    try:
        return data.decode("utf-8-sig" if first else "utf-8")
    except UnicodeDecodeError as error:
        raise EngineError(
            f"{place} is not UTF-8 text (byte {error.start:,}); save text of another encoding as UTF-8 first."
        ) from error
