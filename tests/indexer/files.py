"""Makes the files that tests index: real ones of every format, written by hand, small and different from each other."""

from __future__ import annotations

import hashlib
import io
import random
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

_WORDS = (
    "river garden letter engine winter copper forest signal market harbour window bridge candle planet silver orchard "
    "thunder velvet mirror lantern meadow anchor pepper saddle violin marble compass feather granite ladder".split()
)


def sentences(seed: int, count: int = 12) -> str:
    """Prose of a kind: the same for the same seed, different for another."""
    chance = random.Random(seed)
    lines = []
    for number in range(count):
        words = chance.choices(_WORDS, k=chance.randint(6, 14))
        lines.append(f"{words[0].capitalize()} {' '.join(words[1:])} {seed}x{number}.")
    return " ".join(lines)


def text_file(seed: int) -> bytes:
    """Plain text in a few paragraphs."""
    return "\n\n".join(sentences(seed * 10 + part, 4) for part in range(3)).encode()


def markdown_file(seed: int) -> bytes:
    """A heading and two sections."""
    return f"# Note {seed}\n\n{sentences(seed, 5)}\n\n## More\n\n{sentences(seed + 1, 5)}\n".encode()


def html_file(seed: int) -> bytes:
    """A page with markup that must go and text that must stay."""
    return (
        f"<html><head><title>Page {seed}</title><style>p {{}}</style></head><body><h1>Head {seed}</h1>"
        f"<p>{sentences(seed, 6)}<script>var hidden = {seed};</script><p>{sentences(seed + 2, 4)}</body></html>"
    ).encode()


def pdf_file(pages: Sequence[str], *, title: str = "") -> bytes:
    """A valid PDF with one column of Latin text a page."""
    objects: list[bytes] = [b"", b""]  # catalog and page tree, known at the end
    page_numbers = []
    font = 3
    objects.append(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    for page in pages:
        content = _pdf_text(page)
        objects.append(b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(content), content))
        resources = b"<< /Font << /F1 %d 0 R >> >>" % font
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources %s /Contents %d 0 R >>"
            % (resources, len(objects))
        )
        page_numbers.append(len(objects))
    kids = b" ".join(b"%d 0 R" % number for number in page_numbers)
    objects[0] = b"<< /Type /Catalog /Pages 2 0 R >>"
    objects[1] = b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(pages), kids)
    info = b""
    if title:
        objects.append(b"<< /Title (%s) >>" % title.encode("latin-1"))
        info = b" /Info %d 0 R" % len(objects)
    return _pdf_assemble(objects, info)


def _pdf_text(page: str) -> bytes:
    lines = []
    words = page.split()
    for start in range(0, len(words), 10):
        line = " ".join(words[start : start + 10]).replace("\\", "").replace("(", "").replace(")", "")
        lines.append(f"({line}) Tj 0 -14 Td")
    return zlib.compress(("BT /F1 11 Tf 50 780 Td " + " ".join(lines) + " ET").encode("latin-1"))


def _pdf_assemble(objects: Sequence[bytes], info: bytes) -> bytes:
    out = io.BytesIO()
    out.write(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
    offsets = []
    for number, body in enumerate(objects, 1):
        offsets.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    table = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    for offset in offsets:
        out.write(b"%010d 00000 n \n" % offset)
    out.write(b"trailer\n<< /Size %d /Root 1 0 R%s >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, info, table))
    return out.getvalue()


def docx_file(paragraphs: Sequence[str], *, title: str = "", extra: dict[str, bytes] | None = None) -> bytes:
    """A DOCX with the parts that a reader must have."""
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    body = "".join(f"<w:p><w:r><w:t xml:space='preserve'>{text}</w:t></w:r></w:p>" for text in paragraphs)
    types = (
        '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Default Extension="xml" ContentType="application/xml"/></Types>'
    )
    parts = {
        "[Content_Types].xml": types.encode(),
        "word/document.xml": f"<?xml version='1.0'?><w:document {space}><w:body>{body}</w:body></w:document>".encode(),
    }
    if title:
        core = (
            "<cp:coreProperties xmlns:cp='http://schemas.openxmlformats.org/package/2006/metadata/core-properties' "
            f"xmlns:dc='http://purl.org/dc/elements/1.1/'><dc:title>{title}</dc:title></cp:coreProperties>"
        )
        parts["docProps/core.xml"] = core.encode()
    return zip_file({**parts, **(extra or {})})


def zip_file(parts: dict[str, bytes]) -> bytes:
    """An archive with fixed times, so that the same parts give the same bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)
    return out.getvalue()


KINDS: dict[str, Callable[[int], bytes]] = {
    "txt": text_file,
    "md": markdown_file,
    "html": html_file,
    "pdf": lambda seed: pdf_file([sentences(seed, 6), sentences(seed + 3, 6)], title=f"Paper {seed}"),
    "docx": lambda seed: docx_file([sentences(seed + part, 4) for part in range(3)], title=f"Letter {seed}"),
}


def write_mixed(folder: Path, count: int, *, first: int = 0) -> list[Path]:
    """`count` files of all kinds in turn, spread over sub-folders; returns their paths."""
    paths = []
    kinds = list(KINDS.items())
    for number in range(first, first + count):
        suffix, make = kinds[number % len(kinds)]
        path = folder / f"part{number % 7}" / f"deep{number % 3}" / f"file{number}.{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(make(number * 100))
        paths.append(path)
    return paths


_PDF_PAD = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")


def encrypted_pdf(text: str, password: str = "open sesame") -> bytes:
    """A PDF that opens only with a password: the standard security handler, revision 2 (40-bit RC4)."""
    file_id = b"0123456789abcdef"
    permissions = -4
    padded = (password.encode("latin-1") + _PDF_PAD)[:32]
    owner = _rc4(hashlib.md5(padded).digest()[:5], padded)
    key = hashlib.md5(padded + owner + permissions.to_bytes(4, "little", signed=True) + file_id).digest()[:5]
    user = _rc4(key, _PDF_PAD)
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count 1 /Kids [5 0 R] >>",
        b"<< /Filter /Standard /V 1 /R 2 /O <%s> /U <%s> /P %d >>" % (_hex(owner), _hex(user), permissions),
        b"",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R >>",
    ]
    content = _rc4(hashlib.md5(key + (4).to_bytes(3, "little") + b"\0\0").digest()[:10], _pdf_text(text))
    objects[3] = b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(content), content)
    identity = b" /Encrypt 3 0 R /ID [<%s> <%s>]" % (_hex(file_id), _hex(file_id))
    return _pdf_assemble(objects, identity)


def _hex(data: bytes) -> bytes:
    return data.hex().encode()


def _rc4(key: bytes, data: bytes) -> bytes:
    state = list(range(256))
    j = 0
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    out = bytearray()
    i = j = 0
    for byte in data:
        i = (i + 1) % 256
        j = (j + state[i]) % 256
        state[i], state[j] = state[j], state[i]
        out.append(byte ^ state[(state[i] + state[j]) % 256])
    return bytes(out)
