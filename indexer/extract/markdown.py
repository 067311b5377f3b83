"""Markdown: the text as written, so that offsets are those of the file; the first heading is the title."""

from __future__ import annotations

import re
from collections.abc import Iterator

from indexer.extract import text
from indexer.extract.document import Piece, Source, Text, Title

_FRONT_TITLE = re.compile(r"\A---\s*\n(?:.*\n)*?title:[ \t]*[\"']?(?P<title>[^\n]*?)[\"']?[ \t]*\n", re.IGNORECASE)
_FENCE = re.compile(r"^ {0,3}(```|~~~)")
_ATX = re.compile(r"^ {0,3}#{1,6}[ \t]+(?P<title>.+?)[ \t#]*$")
_SETEXT = re.compile(r"^ {0,3}(=+|-+)[ \t]*$")


def extract(source: Source) -> Iterator[Piece]:
    """Title first where the head of the file has one, then the text."""
    first = True
    for piece in text.extract(source):
        if first and isinstance(piece, Text):
            first = False
            title = find_title(piece.text)
            if title:
                yield Title(title)
        yield piece


def find_title(head: str) -> str:
    """The title in the front matter, else the first heading outside a code fence, else nothing."""
    head = head.replace("\r\n", "\n")
    front = _FRONT_TITLE.match(head[:4096])
    if front and front["title"]:
        return front["title"].strip()
    fenced, above = False, ""
    for line in head.split("\n")[:400]:
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            atx = _ATX.match(line)
            if atx:
                return atx["title"].strip()
            if above and _SETEXT.match(line):
                return above
            above = line.strip() if not line.startswith(("-", ">", "    ", "|")) else ""
    return ""
