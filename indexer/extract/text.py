"""Plain text, source code and data files that people read as text; any size, streamed."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

from charset_normalizer import from_bytes

from indexer.extract.document import PIECE_CHARS, Piece, Source, Text, Unreadable, Warn, clean

SAMPLE_BYTES = 64 * 1024
CONTROL_SHARE = 0.02  # of a sample, above which it is not text

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
    noise = len(_CONTROL.findall(data)) + data.count(0)
    if noise > CONTROL_SHARE * len(data):
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
    guesses = from_bytes(telling)
    best = guesses.best()
    if best is None or best.encoding in ("ascii", "utf_8"):
        return "cp1252"
    # Short texts read equally well in several alphabets: the most common one wins a tie.
    western = next((guess for guess in guesses if "cp1252" in (guess.encoding, *guess.could_be_from_charset)), None)
    return "cp1252" if western is not None and western.chaos <= best.chaos else best.encoding


def _is_utf8(sample: bytes) -> bool:
    """Whether a cut-out of a file can be UTF-8; the cut may have split a character at either end."""
    start = 0
    while start < min(3, len(sample)) and sample[start] & 0xC0 == 0x80:
        start += 1
    try:
        codecs.getincrementaldecoder("utf-8")("strict").decode(sample[start:], final=False)
    except UnicodeDecodeError:
        return False
    return True
