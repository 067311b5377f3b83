"""DOCX, read straight from its parts: body with tables and text boxes, notes, comments, headers and footers."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from typing import IO

from lxml import etree

from indexer.extract.document import Piece, Source, Text, Title, Unreadable, Warn, clean, split_text

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_STRICT_W = b"http://purl.oclc.org/ooxml/wordprocessingml/main"
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_DC_TITLE = "{http://purl.org/dc/elements/1.1/}title"
_PARTS = re.compile(r"word/(?:(footnotes|endnotes|comments)|(header|footer)\d*)\.xml")
_HEADING = re.compile(r"(?:heading|title|subtitle|berschrift|titre|titolo|encabezado)", re.IGNORECASE)
_RATIO_FROM_BYTES = 8 << 20
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def extract(source: Source) -> Iterator[Piece]:
    """Title, body, then the parts around it."""
    archive = _open(source)
    with archive:
        _check_sizes(archive, source)
        title = _core_title(archive, source)
        if title:
            yield Title(title)
        body = _Body(announce_title=not title)
        yield from body.read(archive, "word/document.xml", source)
        missing: list[str] = []
        for name in sorted(name for name in archive.namelist() if _PARTS.fullmatch(name)):
            try:
                yield from _Body(announce_title=False).read(archive, name, source)
            except Unreadable:
                missing.append(name.removeprefix("word/").removesuffix(".xml"))
    if missing:
        yield Warn("bad_parts", f"Parts of this document could not be read: {', '.join(missing)}.")


def _open(source: Source) -> zipfile.ZipFile:
    head = source.file.read(8)
    source.file.seek(0)
    if head == _OLE:
        raise Unreadable("encrypted", "This document is protected with a password, or is an old .doc file.")
    try:
        archive = zipfile.ZipFile(source.file)
        archive.getinfo("word/document.xml")
    except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError) as error:
        raise Unreadable("broken", "This DOCX file is damaged and cannot be opened.") from error
    except KeyError as error:
        raise Unreadable("broken", "This DOCX file holds no document.") from error
    return archive


def _check_sizes(archive: zipfile.ZipFile, source: Source) -> None:
    """The archive's own directory tells what unpacking would cost: refuse before reading a byte of it."""
    limits = source.limits
    members = archive.infolist()
    if len(members) > limits.archive_members:
        raise Unreadable("bomb", f"This DOCX file holds {len(members)} parts, more than any real document.")
    wanted = [m for m in members if m.filename == "word/document.xml" or _PARTS.fullmatch(m.filename)]
    unpacked = sum(member.file_size for member in wanted)
    if unpacked > limits.archive_bytes:
        raise Unreadable("bomb", f"This DOCX file would unpack to {unpacked >> 20} MB of text parts and is not read.")
    for member in wanted:
        packed = max(1, member.compress_size)
        if member.file_size > _RATIO_FROM_BYTES and member.file_size > limits.archive_ratio * packed:
            raise Unreadable("bomb", "This DOCX file is packed as no real document is (a zip bomb) and is not read.")


class _Bounded(io.RawIOBase):
    """A member of the archive that cannot give more bytes than its directory entry promised."""

    def __init__(self, stream: IO[bytes], left_bytes: int) -> None:
        self._stream = stream
        self._left_bytes = left_bytes

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        block = self._stream.read(1 << 16 if size < 0 else min(size, 1 << 16))
        self._left_bytes -= len(block)
        if self._left_bytes < 0:
            raise Unreadable("bomb", "A part of this DOCX file is larger than its directory says; it is not read.")
        return block


def _member(archive: zipfile.ZipFile, name: str) -> _Bounded:
    info = archive.getinfo(name)
    if info.flag_bits & 1:
        raise Unreadable("encrypted", "This document is protected with a password.")
    return _Bounded(archive.open(info), info.file_size)


def _core_title(archive: zipfile.ZipFile, source: Source) -> str:
    try:
        info = archive.getinfo("docProps/core.xml")
    except KeyError:
        return ""
    if info.file_size > 1 << 20:
        return ""
    try:
        parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
        root = etree.fromstring(_member(archive, info.filename).read(1 << 16), parser)
    except (etree.XMLSyntaxError, zipfile.BadZipFile, Unreadable, OSError, EOFError):
        return ""  # the title is a nicety: the body decides whether the document can be read
    found = root.find(_DC_TITLE)
    return clean((found.text or "").strip()) if found is not None else ""


class _Body:
    """Streams the paragraphs and table rows of one part; every finished element is dropped at once."""

    def __init__(self, *, announce_title: bool) -> None:
        self._want_title = announce_title

    def read(self, archive: zipfile.ZipFile, name: str, source: Source) -> Iterator[Piece]:
        pending: list[str] = []
        size = 0
        try:
            for line, is_heading in self._lines(_member(archive, name)):
                if is_heading and self._want_title and line.strip():
                    self._want_title = False
                    yield Title(clean(line.strip()))
                pending.append(f"\n{line}\n\n" if is_heading else f"{line}\n")
                size += len(line)
                if size > 32_768:
                    yield from split_text("".join(pending))
                    pending, size = [], 0
        except (etree.XMLSyntaxError, zipfile.BadZipFile, EOFError, OSError, NotImplementedError) as error:
            if name == "word/document.xml" and not pending and self._want_title:
                raise Unreadable("broken", "The text of this DOCX file is damaged.") from error
            yield from split_text("".join(pending))
            yield Warn("damaged", "This DOCX file is damaged: its text was read up to the damage.")
            return
        yield from split_text("".join(pending))
        if size:
            yield Text("\n")

    def _lines(self, stream: _Bounded) -> Iterator[tuple[str, bool]]:
        paragraphs = tables = 0
        events = etree.iterparse(
            stream,
            events=("start", "end"),
            tag=(f"{_W}p", f"{_W}tbl", f"{_W}tr"),
            resolve_entities=False,
            no_network=True,
            load_dtd=False,
        )
        for event, element in events:
            tag = element.tag
            step = 1 if event == "start" else -1
            if tag == f"{_W}p":
                paragraphs += step
            elif tag == f"{_W}tbl":
                tables += step
            if event == "start":
                continue
            if tag == f"{_W}p" and paragraphs == 0 and tables == 0:
                yield _inline_text(element), _is_heading(element)
                _drop(element)
            elif tag == f"{_W}tr" and tables == 1 and paragraphs == 0:
                yield _row_text(element), False
                _drop(element)


def _drop(element: etree._Element) -> None:
    element.clear()
    parent = element.getparent()
    while parent is not None and element.getprevious() is not None:
        del parent[0]


def _is_heading(paragraph: etree._Element) -> bool:
    properties = paragraph.find(f"{_W}pPr")
    if properties is None:
        return False
    style = properties.find(f"{_W}pStyle")
    if style is not None and _HEADING.search(style.get(f"{_W}val", "")):
        return True
    return properties.find(f"{_W}outlineLvl") is not None


def _row_text(row: etree._Element) -> str:
    cells = []
    for cell in row.iterchildren(f"{_W}tc"):
        lines = [_inline_text(child) if child.tag == f"{_W}p" else _table_text(child) for child in cell]
        cells.append(" ".join(line.strip() for line in lines if line.strip()))
    return "\t".join(cells)


def _table_text(element: etree._Element) -> str:
    return "; ".join(_row_text(row) for row in element.iter(f"{_W}tr"))


def _inline_text(paragraph: etree._Element) -> str:
    """The visible text of one paragraph: runs, tabs, breaks; a text box once; deleted text not at all."""
    out: list[str] = []
    stack = [iter(paragraph)]
    while stack:
        child = next(stack[-1], None)
        if child is None:
            stack.pop()
            continue
        tag = child.tag
        if tag == f"{_W}t":
            out.append(child.text or "")
        elif tag in (f"{_W}tab", f"{_W}ptab"):
            out.append("\t")
        elif tag in (f"{_W}br", f"{_W}cr"):
            out.append("\n")
        elif tag == f"{_W}noBreakHyphen":
            out.append("\u2011")
        elif tag == f"{_W}p":
            out.append("\n" + _inline_text(child))
        elif tag not in (f"{_MC}Fallback", f"{_W}pPr", f"{_W}rPr", f"{_W}del", f"{_W}instrText"):
            stack.append(iter(child))
    return "".join(out)
