"""PDF, page by page: one bad page never drops the rest."""

from __future__ import annotations

import re
from collections.abc import Iterator

from indexer.extract.document import Page, Piece, Source, Text, Title, Unreadable, Warn, clean, split_text

_ENCRYPTED = 4  # FPDF_ERR_PASSWORD
_HYPHENATED = re.compile("(?<=\\w)[\ufffe\u00ad\u0002]\\n?(?=\\w)")
_LEFTOVER = re.compile("[\ufffe\u00ad\u0002]")
_LIGATURES = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"})


def extract(source: Source) -> Iterator[Piece]:
    """Title, then every page that can be read, with its number."""
    # Only the extraction process ever needs PDFium, so only it pays for loading it.
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(source.file, autoclose=False)
        count = len(document)
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) == _ENCRYPTED or "password" in str(error).lower():
            raise Unreadable("encrypted", "This PDF is protected with a password.") from error
        raise Unreadable("broken", "This PDF is damaged and cannot be opened.") from error
    try:
        title = clean(document.get_metadata_dict(skip_empty=True).get("Title", "")).strip()
        if title:
            yield Title(title)
        bad: list[int] = []
        letters = 0
        for index in range(count):
            try:
                text = _page_text(document, index)
            except pypdfium2.PdfiumError:
                bad.append(index + 1)
                continue
            letters += len(text.strip())
            yield Page(index + 1)
            yield from split_text(text)
            if text:
                yield Text("\n\n")
    finally:
        document.close()
    if bad:
        yield Warn("bad_pages", f"{_pages(bad)} of this PDF could not be read; the other pages are indexed.")
    if count and not letters and len(bad) < count:
        yield Warn("no_text", "This PDF holds no text: its pages are pictures.")


def _page_text(document: object, index: int) -> str:
    import pypdfium2

    assert isinstance(document, pypdfium2.PdfDocument)
    page = document[index]
    try:
        text_page = page.get_textpage()
        try:
            raw = text_page.get_text_bounded()
        finally:
            text_page.close()
    finally:
        page.close()
    return tidy(raw)


def tidy(raw: str) -> str:
    """Line ends as one character, words split by a hyphen at the line end joined, ligatures as letters."""
    text = raw.replace("\r\n", "\n").replace("\r", "\n")
    return _LEFTOVER.sub("", _HYPHENATED.sub("", text)).translate(_LIGATURES).rstrip()


def _pages(numbers: list[int]) -> str:
    if len(numbers) == 1:
        return f"Page {numbers[0]}"
    shown = ", ".join(map(str, numbers[:8]))
    return f"Pages {shown}{' and more' if len(numbers) > 8 else ''}"
