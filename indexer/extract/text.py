"""Plain text, source code and data files that people read as text; any size, streamed."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

from charset_normalizer import from_bytes

from indexer.extract.document import PIECE_CHARS, Piece, Source, Text, Unreadable, Warn, clean

SAMPLE_BYTES = 64 * 1024
CONTROL_SHARE, NUL_SHARE = 0.02, 0.1  # of a sample, above which it is not text
STRAY_SHARE = 0.02  # of the foreign characters, below which bytes that are no UTF-8 are damage to a UTF-8 file

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_BINARY_MAGIC = (
    (b"\x7fELF", "a program"),
    (b"\x89PNG\r\n\x1a\n", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"GIF8", "a picture"),
    (b"PK\x03\x04", "an archive"),
    (b"\x1f\x8b\x08", "an archive"),
    (b"%PDF-", "a PDF"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Office file"),
    (b"SQLite format 3\0", "a database"),
)
_WESTERN_LETTERS = frozenset("àâäáãåæçèéêëîïíñòóôöõøœùûüúßÀÂÄÁÃÅÆÇÈÉÊËÎÏÍÑÒÓÔÖÕØŒÙÛÜÚ")
_WESTERN_SIGNS = frozenset("“”‘’„‚–—…«»‹›°§©®™€£•·¡¿\xa0")
_CONTROL = re.compile(rb"[\x01-\x06\x0e-\x1a\x1c-\x1f\x7f]")


def extract(source: Source) -> Iterator[Piece]:
    """The file decoded; offsets in the text are those of the decoded file without its byte order mark."""
    encoding, skip_bytes = sniff_encoding(source)
    source.file.seek(skip_bytes)
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    replaced = False
    left_bytes = source.size_bytes - skip_bytes  # a log may grow while it is read: what came later is read next time
    while True:
        block = source.file.read(min(PIECE_CHARS, max(0, left_bytes)))
        left_bytes -= len(block)
        text = decoder.decode(block, final=not block)
        if text:
            replaced = replaced or "\ufffd" in text
            yield Text(clean(text))
        if not block:
            break
    if replaced:
        yield Warn("encoding", f"Some characters could not be decoded as {encoding} and were replaced.")


def sniff_encoding(source: Source) -> tuple[str, int]:
    """The encoding and the length of the byte order mark in bytes; raises Unreadable for what is not text."""
    samples = _samples(source)
    head = samples[0]
    for mark, name in _BOMS:
        if head.startswith(mark):
            return name, len(mark)
    for magic, what in _BINARY_MAGIC:
        if head.startswith(magic):
            raise Unreadable("not_text", f"The name says text, but the content is {what}.")
    wide = _wide_encoding(head)
    if wide:
        return wide, 0
    data = b"".join(samples)
    if len(_CONTROL.findall(data)) > CONTROL_SHARE * len(data) or data.count(0) > NUL_SHARE * len(data):
        raise Unreadable("not_text", "The name says text, but the content is binary data.")
    return _narrow_encoding(samples), 0


def _samples(source: Source) -> list[bytes]:
    """The head of the file, and of a large one also its middle and its end."""
    source.file.seek(0)
    samples = [source.file.read(SAMPLE_BYTES)]
    if source.size_bytes > 3 * SAMPLE_BYTES:
        for offset in (source.size_bytes // 2, source.size_bytes - SAMPLE_BYTES):
            source.file.seek(offset)
            samples.append(source.file.read(SAMPLE_BYTES))
    elif source.size_bytes > SAMPLE_BYTES:
        samples[0] += source.file.read(2 * SAMPLE_BYTES)
    return samples


def _wide_encoding(head: bytes) -> str:
    """UTF-16 without a mark: Latin letters leave a NUL in every second byte."""
    head = head[: len(head) & ~1]
    if len(head) < 4:
        return ""
    even, odd = head[::2].count(0), head[1::2].count(0)
    half = len(head) // 2
    if odd > 0.4 * half and even < 0.02 * half:
        return "utf-16-le"
    if even > 0.4 * half and odd < 0.02 * half:
        return "utf-16-be"
    return ""


def _narrow_encoding(samples: list[bytes]) -> str:
    foreign = b"".join(sample for sample in samples if not _is_utf8(sample))
    if not foreign:
        return "utf-8"
    # An old single-byte file: guess from the lines that hold the evidence, within a bounded sample.
    telling = b"\n".join(line for line in foreign.splitlines() if not line.isascii())[:SAMPLE_BYTES]
    if _reads_as_western(telling):
        return "cp1252"
    best = from_bytes(telling).best()
    return "cp1252" if best is None or best.encoding in ("ascii", "utf_8") else best.encoding


def _reads_as_western(telling: bytes) -> bool:
    """Whether the bytes make sense as the commonest old encoding: French, German, Spanish and their neighbours.

    A detector alone takes short French for Latvian. What counts against it: letters that these languages lack, signs
    inside words, and words that are mostly accents, as another alphabet looks when it is read so.
    """
    try:
        text = telling.decode("cp1252")
    except UnicodeDecodeError:
        return False
    foreign = [char for char in text if not char.isascii()]
    letters = sum(char.isalpha() for char in text)
    accented = sum(char in _WESTERN_LETTERS for char in foreign)
    if accented + sum(char in _WESTERN_SIGNS for char in foreign) < len(foreign):
        return False
    return accented <= 0.25 * letters


def _is_utf8(sample: bytes) -> bool:
    """Whether a cut-out of a file is UTF-8, be it with a little damage; the cut may have split a character."""
    start = 0
    while start < min(3, len(sample)) and sample[start] & 0xC0 == 0x80:
        start += 1
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(sample[start:], final=False)
    stray = text.count("\ufffd") - sample.count("\ufffd".encode())
    return stray <= STRAY_SHARE * sum(not char.isascii() for char in text) if stray else True
