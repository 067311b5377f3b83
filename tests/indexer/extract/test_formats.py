"""What comes out of each format, and what is refused."""

from __future__ import annotations

import io
import time
from pathlib import Path

import pytest

from indexer.extract import EXTRACTORS, extractor_for
from indexer.extract.document import PIECE_CHARS, Page, Piece, Source, Text, Title, Unreadable, Warn, clean
from indexer.options import ExtractLimits
from tests.indexer.files import KINDS, docx_file, encrypted_pdf, pdf_file, zip_file


def pieces(name: str, data: bytes, limits: ExtractLimits | None = None) -> list[Piece]:
    extractor = extractor_for(name.encode())
    assert extractor is not None
    return list(extractor.extract(Source(io.BytesIO(data), len(data), limits or ExtractLimits())))


def text_of(name: str, data: bytes) -> str:
    return "".join(piece.text for piece in pieces(name, data) if isinstance(piece, Text))


def title_of(name: str, data: bytes) -> str:
    return next((piece.text for piece in pieces(name, data) if isinstance(piece, Title)), "")


def refusal(name: str, data: bytes, limits: ExtractLimits | None = None) -> Unreadable:
    with pytest.raises(Unreadable) as caught:
        pieces(name, data, limits)
    assert caught.value.message.endswith(".") and caught.value.message[0].isupper()
    return caught.value


@pytest.mark.parametrize("name", EXTRACTORS)
def test_every_format_reads_a_real_file_in_bounded_pieces(name: str) -> None:
    suffix = {"text": "txt", "markdown": "md"}.get(name, name)
    found = pieces(f"file.{suffix}", KINDS[suffix](5))
    texts = [piece.text for piece in found if isinstance(piece, Text)]
    assert "".join(texts).strip()
    assert all(0 < len(text) <= PIECE_CHARS for text in texts)


@pytest.mark.parametrize("name", EXTRACTORS)
def test_garbage_is_refused_or_read_but_never_breaks_the_reader(name: str) -> None:
    extractor = EXTRACTORS[name]
    for data in (b"\x00\xff" * 500, bytes(range(256)) * 8, b"%PDF-1.7\n", b"PK\x03\x04 no archive", b"<" * 3000):
        try:
            list(extractor.extract(Source(io.BytesIO(data), len(data), ExtractLimits())))
        except Unreadable as error:
            assert error.message.endswith(".")


def test_names_lead_to_extractors_without_regard_to_case() -> None:
    names = {b"/a/X.PDF": "pdf", b"b.Md": "markdown", b"README": "text", b"c.py": "text", b"d.htm": "html"}
    for path, expected in names.items():
        extractor = extractor_for(path)
        assert extractor is not None and extractor.name == expected
    assert extractor_for(b"movie.mp4") is None and extractor_for(b"noname") is None


# ---- text ----


@pytest.mark.parametrize(
    "data",
    [
        "Grüße, 日本語, 🙂".encode(),
        b"\xef\xbb\xbf" + "Grüße, 日本語, 🙂".encode(),
        "Grüße, 日本語, 🙂".encode("utf-16"),
        b"\xfe\xff" + "Grüße, 日本語, 🙂".encode("utf-16-be"),
        b"\xff\xfe\x00\x00" + "Grüße, 日本語, 🙂".encode("utf-32-le"),
    ],
)
def test_unicode_is_read_by_its_mark_and_the_mark_is_no_text(data: bytes) -> None:
    assert text_of("a.txt", data) == "Grüße, 日本語, 🙂"


def test_utf16_is_known_without_a_mark() -> None:
    assert text_of("a.txt", "plain words".encode("utf-16-le")) == "plain words"
    assert text_of("a.txt", "plain words".encode("utf-16-be")) == "plain words"


def test_old_western_text_is_read_as_such() -> None:
    words = "Les élèves étaient déjà là, où le garçon naïf mangeait à Noël.\n" * 3
    assert text_of("a.txt", words.encode("cp1252")) == words


def test_old_cyrillic_text_is_read_as_such() -> None:
    words = "Съешь же ещё этих мягких французских булок, да выпей чаю. Широкая электрификация южных губерний.\n" * 3
    assert text_of("a.txt", words.encode("cp1251")) == words


def test_a_character_across_two_blocks_stays_whole() -> None:
    words = "é" * PIECE_CHARS
    assert text_of("a.txt", b"x" + words.encode()) == "x" + words


def test_a_stray_byte_costs_one_character_and_is_told() -> None:
    data = "göod wörds\n".encode() * 30_000 + b"\xff" + b"more words\n" * 30_000
    found = pieces("a.txt", data)
    assert "".join(piece.text for piece in found if isinstance(piece, Text)).count("\ufffd") == 1
    assert any(isinstance(piece, Warn) and piece.kind == "encoding" for piece in found)


def test_nul_becomes_a_space_and_a_lone_surrogate_a_replacement() -> None:
    assert clean("a\0b\ud800c") == "a b\ufffdc"
    assert text_of("a.log", b"line one\nline\0two\n" * 20).count("\0") == 0


@pytest.mark.parametrize("data", [b"\x7fELF" + b"x" * 50, b"\x89PNG\r\n\x1a\n" + b"y" * 50, bytes(range(32)) * 40])
def test_binary_data_named_text_is_refused(data: bytes) -> None:
    assert refusal("a.txt", data).kind == "not_text"


def test_text_offsets_are_those_of_the_decoded_file() -> None:
    raw = "one\r\ntwo\r\n\r\nthree"
    assert text_of("a.txt", raw.encode()) == raw


# ---- markdown ----


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# First #\n\nText", "First"),
        ("---\ntitle: 'Front'\ndate: x\n---\n# Other", "Front"),
        ("Under\n=====\n\ntext", "Under"),
        ("```\n# not this\n```\n## This", "This"),
        ("no heading at all", ""),
        ("---\n\n# After a rule", "After a rule"),
    ],
)
def test_the_title_of_markdown_is_its_first_heading(text: str, title: str) -> None:
    assert title_of("a.md", text.encode()) == title
    assert text_of("a.md", text.encode()) == text


# ---- html ----


def test_html_gives_what_a_reader_sees() -> None:
    page = (
        b"<html><head><title> My\n page </title><style>p{}</style></head><body><nav>Menu</nav><h1>Head</h1>"
        b"<p>One <b>bold</b> word &amp; more<p>Two<script>bad()</script><ul><li>x<li>y</ul>"
        b"<table><tr><td>1</td><td>2</td></tr></table><pre>a\n  b</pre></body>"
    )
    assert title_of("a.html", page) == "My page"
    text = text_of("a.html", page)
    assert "One bold word & more\n\nTwo\n\nx\ny" in text
    assert "1\t2" in text and "a\n  b" in text
    assert "bad" not in text and "p{}" not in text


def test_html_follows_its_declared_charset() -> None:
    page = '<meta charset="iso-8859-2"><p>žluťoučký kůň'.encode("iso-8859-2")
    assert text_of("a.html", page) == "žluťoučký kůň"


def test_html_of_deep_nesting_is_read() -> None:
    assert text_of("a.html", b"<div>" * 5000 + b"inside") == "inside"


# ---- pdf ----


def test_html_nested_beyond_measure_keeps_its_text_and_costs_no_time() -> None:
    head = b"<html><head><title>Deep &amp; down</title><script>if (a<b) {'</div>'}</script></head><body>"
    body = b"<!-- no <b>text</b> --><p>a &lt; b, 1 < 2</p>" + b"<div> <b> " * 150_000 + b"the <i>bottom</i><br>end"
    data = head + body + b"</div>" * 10
    started = time.process_time()
    assert title_of("deep.html", data) == "Deep & down"
    assert text_of("deep.html", data).split("\n") == ["a < b, 1 < 2", "", "the bottom", "end"]
    assert time.process_time() - started < 20, "the parser would take minutes"


@pytest.mark.parametrize("part", [b"<", b"<!--", b"<script>", b"<a ", b"<b> ", b"</", b"<title>", b"&", b"<div><!"])
def test_html_of_one_part_over_and_over_costs_no_time(part: bytes) -> None:
    data = b"<div>" * 5_001 + part * 200_000
    started = time.process_time()
    pieces("odd.html", data)
    assert time.process_time() - started < 10


def test_pdf_gives_pages_and_title() -> None:
    found = pieces("a.pdf", pdf_file(["First page words", "Second page words"], title="The title"))
    assert found[0] == Title("The title")
    assert [piece.number for piece in found if isinstance(piece, Page)] == [1, 2]
    text = "".join(piece.text for piece in found if isinstance(piece, Text))
    assert "First page words" in text and "Second page words" in text


def test_pdf_with_a_bad_page_keeps_the_rest() -> None:
    data = pdf_file(["First page words", "Second page words", "Third page words"])
    broken = data.replace(b"/Type /Page /Parent 2 0 R", b"/Type /Nope/Parent 2 0 R", 2).replace(
        b"/Type /Nope/Parent 2 0 R", b"/Type /Page /Parent 2 0 R", 1
    )
    text = text_of("a.pdf", broken)
    assert "First page words" in text and "Third page words" in text


def test_pdf_without_text_says_so() -> None:
    found = pieces("a.pdf", pdf_file(["", ""]))
    assert any(isinstance(piece, Warn) and piece.kind == "no_text" for piece in found)


def test_pdf_under_a_password_is_refused_as_such() -> None:
    assert refusal("a.pdf", encrypted_pdf("secret words")).kind == "encrypted"


def test_damaged_pdf_is_refused_as_such() -> None:
    assert refusal("a.pdf", b"%PDF-1.4\n1 0 obj\n<< /Type /Cat").kind == "broken"


# ---- docx ----


def test_docx_gives_text_tables_notes_and_title() -> None:
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    note = f"<w:footnotes {space}><w:footnote><w:p><w:r><w:t>A footnote</w:t></w:r></w:p></w:footnote></w:footnotes>"
    cell = "<w:tc><w:p><w:r><w:t>{}</w:t></w:r></w:p></w:tc>"
    table = "<w:tbl><w:tr>" + cell.format("left") + cell.format("right") + "</w:tr></w:tbl>"
    data = docx_file(
        ["One &amp; two", f"</w:t></w:r></w:p>{table}<w:p><w:r><w:t>after"],
        title="Letter",
        extra={
            "word/footnotes.xml": note.encode(),
            "word/header1.xml": f"<w:hdr {space}><w:p><w:r><w:t>On each page</w:t></w:r></w:p></w:hdr>".encode(),
        },
    )
    assert title_of("a.docx", data) == "Letter"
    text = text_of("a.docx", data)
    assert "One & two" in text and "left\tright" in text and "after" in text
    assert "A footnote" in text and "On each page" in text


def test_docx_heading_is_the_title_where_none_is_given() -> None:
    heading = "</w:t></w:r></w:p><w:p><w:pPr><w:pStyle w:val='Heading1'/></w:pPr><w:r><w:t>My heading"
    assert title_of("a.docx", docx_file(["before", heading])) == "My heading"


def test_docx_leaves_out_deleted_text_and_second_copies() -> None:
    body = "kept</w:t></w:r><w:del><w:r><w:delText>deleted</w:delText></w:r></w:del><w:r><w:t>"
    text = text_of("a.docx", docx_file([body]))
    assert "kept" in text and "deleted" not in text


def test_docx_that_is_a_bomb_is_refused_before_it_is_unpacked() -> None:
    bomb = zip_file({"word/document.xml": b"<a>" + b" " * (20 << 20)})
    assert refusal("a.docx", bomb).kind == "bomb"
    assert refusal("a.docx", docx_file(["x" * 5000]), ExtractLimits(archive_bytes=1000)).kind == "bomb"


def test_docx_with_entities_does_not_unfold_them() -> None:
    lol = b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    space = b'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    body = b"<w:document " + space + b"><w:body><w:p><w:r><w:t>plain &b;</w:t></w:r></w:p></w:body></w:document>"
    assert "aaaa" not in text_of("a.docx", zip_file({"word/document.xml": lol + body}))


@pytest.mark.parametrize("data", [b"PK", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1rest", zip_file({"other": b"x"})])
def test_docx_that_is_none_is_refused(data: bytes) -> None:
    assert refusal("a.docx", data).kind in ("broken", "encrypted")


def test_the_samples_that_come_along_can_all_be_read() -> None:
    import resources

    samples = [path for path in Path(resources.path("samples")).rglob("*") if extractor_for(path.name.encode())]
    assert len(samples) > 20
    for path in samples:
        assert text_of(path.name, path.read_bytes()).strip(), path
