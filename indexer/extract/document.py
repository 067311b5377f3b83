"""What extraction yields: a stream of small pieces, so that no document has to fit into memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from indexer.options import ExtractLimits

PIECE_CHARS = 128 * 1024  # largest text of one piece
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Title:
    """What the document calls itself."""

    text: str


@dataclass(frozen=True, slots=True)
class Text:
    """The next stretch of the document's text."""

    text: str


@dataclass(frozen=True, slots=True)
class Page:
    """Text from here on stands on this page, counted from 1."""

    number: int


@dataclass(frozen=True, slots=True)
class Warn:
    """Something of the document is missing from its text; a sentence for its owner."""

    kind: str
    message: str


Piece = Title | Text | Page | Warn


class Unreadable(Exception):
    """A file whose text cannot be had: `kind` is one word for programs, the message a sentence for its owner."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


@dataclass(frozen=True, slots=True)
class Source:
    """One opened file, as an extractor gets it."""

    file: BinaryIO  # seekable, at its start
    size_bytes: int
    limits: ExtractLimits

    def read_all(self, what: str) -> bytes:
        """The whole file; raises Unreadable above the size that may be held in memory."""
        if self.size_bytes > self.limits.memory_file_bytes:
            limit_mb = self.limits.memory_file_bytes >> 20
            raise Unreadable("too_large", f"This {what} is larger than the {limit_mb} MB that are read of such files.")
        return self.file.read()


def clean(text: str) -> str:
    """Text that every later stage can hold: NUL becomes a space, a lone surrogate U+FFFD; lengths do not change."""
    if "\0" in text:
        text = text.replace("\0", " ")
    return _LONE_SURROGATE.sub("\ufffd", text) if _LONE_SURROGATE.search(text) else text


def split_text(text: str) -> Iterator[Text]:
    """Cleaned pieces of at most PIECE_CHARS; empty text gives none."""
    text = clean(text)
    for start in range(0, len(text), PIECE_CHARS):
        yield Text(text[start : start + PIECE_CHARS])
