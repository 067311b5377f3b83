"""Make the PDF and DOCX samples in resources/samples from the texts in packaging/samples.

    python packaging/make_samples.py

Only the standard library is used, and running it again gives the same bytes. In the texts `# ` starts the title, `## `
a heading, `---` a new page (PDF) or nothing (DOCX); an empty line ends a paragraph. PDFs use a standard font, so their
texts must stay within Windows-1252.
"""

import io
import textwrap
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

SOURCES = Path(__file__).resolve().parent / "samples"
TARGETS = SOURCES.parent.parent / "resources" / "samples"
MADE_ON = (2024, 6, 1, 12, 0, 0)

Block = tuple[str, str]  # kind ("title", "heading", "text", "page") and text


def blocks(source: str) -> Iterator[Block]:
    for paragraph in source.strip().split("\n\n"):
        text = " ".join(paragraph.split())
        if text == "---":
            yield "page", ""
        elif text.startswith("## "):
            yield "heading", text[3:]
        elif text.startswith("# "):
            yield "title", text[2:]
        else:
            yield "text", text


# PDF: A4 in points, lines measured roughly by an average letter width, which is all that running text needs.
PAGE_WIDTH, PAGE_HEIGHT, MARGIN = 595, 842, 68
STYLES = {"title": ("F2", 17, 26), "heading": ("F2", 12, 20), "text": ("F1", 11, 15)}  # font, size, line height
AVERAGE_LETTER = 0.5


def make_pdf(source: str) -> bytes:
    """A PDF of real text, one content stream a page."""
    parts = list(blocks(source))
    title = next(text for kind, text in parts if kind == "title")
    pages = [zlib.compress(page) for page in typeset(parts)]
    first_page = 6
    kids = " ".join(f"{first_page + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold /Encoding /WinAnsiEncoding >>",
        b"<< /Title " + literal(title) + b" /CreationDate (D:20240601120000Z) >>",
    ]
    for number, content in enumerate(pages):
        resources = "<< /Font << /F1 3 0 R /F2 4 0 R >> >>"
        box = f"[0 0 {PAGE_WIDTH} {PAGE_HEIGHT}]"
        stream = first_page + 2 * number + 1
        page = f"<< /Type /Page /Parent 2 0 R /MediaBox {box} /Resources {resources} /Contents {stream} 0 R >>"
        objects.append(page.encode())
        head = f"<< /Length {len(content)} /Filter /FlateDecode >>\nstream\n".encode()
        objects.append(head + content + b"\nendstream")
    return assemble(objects)


def typeset(parts: list[Block]) -> Iterator[bytes]:
    """The drawing commands of each page."""
    commands: list[bytes] = []
    y = PAGE_HEIGHT - MARGIN
    for kind, text in parts:
        if kind == "page":
            yield b"\n".join(commands)
            commands, y = [], PAGE_HEIGHT - MARGIN
            continue
        font, size, height = STYLES[kind]
        letters = int((PAGE_WIDTH - 2 * MARGIN) / (size * AVERAGE_LETTER))
        for line in textwrap.wrap(text, letters):
            if y < MARGIN:
                yield b"\n".join(commands)
                commands, y = [], PAGE_HEIGHT - MARGIN
            commands.append(f"BT /{font} {size} Tf {MARGIN} {y} Td ".encode() + literal(line) + b" Tj ET")
            y -= height
        y -= height // 2
    yield b"\n".join(commands)


def literal(text: str) -> bytes:
    """A PDF string."""
    coded = text.encode("cp1252")
    return b"(" + coded.replace(b"\\", rb"\\").replace(b"(", rb"\(").replace(b")", rb"\)") + b")"


def assemble(objects: list[bytes]) -> bytes:
    out = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
    offsets = []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer\n<< /Size %d /Root 1 0 R /Info 5 0 R >>\n" % (len(objects) + 1)
    return bytes(out + b"startxref\n%d\n%%%%EOF\n" % start)


# DOCX: the four parts a word processor needs, and core properties for the title.
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
WORD_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml"
XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
WORD_STYLES = {"title": "Title", "heading": "Heading1", "text": "Normal"}


def make_docx(source: str) -> bytes:
    """A DOCX with a title, headings and paragraphs in the usual styles."""
    parts = [part for part in blocks(source) if part[0] != "page"]
    title = next(text for kind, text in parts if kind == "title")
    members = {
        "[Content_Types].xml": content_types(),
        "_rels/.rels": relationships(
            (f"{OFFICE}/officeDocument", "word/document.xml"),
            (f"{PACKAGE}/relationships/metadata/core-properties", "docProps/core.xml"),
        ),
        "docProps/core.xml": core_properties(title),
        "word/_rels/document.xml.rels": relationships((f"{OFFICE}/styles", "styles.xml")),
        "word/document.xml": word_document(parts),
        "word/styles.xml": word_styles(),
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, xml in members.items():
            info = zipfile.ZipInfo(name, MADE_ON)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 0
            archive.writestr(info, (XML + xml).encode())
    return buffer.getvalue()


def content_types() -> str:
    overrides = {
        "/word/document.xml": f"{WORD_TYPE}.document.main+xml",
        "/word/styles.xml": f"{WORD_TYPE}.styles+xml",
        "/docProps/core.xml": "application/vnd.openxmlformats-package.core-properties+xml",
    }
    named = "".join(f'<Override PartName="{part}" ContentType="{kind}"/>' for part, kind in overrides.items())
    rels = '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    defaults = f'{rels}<Default Extension="xml" ContentType="text/xml"/>'
    return f'<Types xmlns="{PACKAGE}/content-types">{defaults}{named}</Types>'


def relationships(*targets: tuple[str, str]) -> str:
    rows = "".join(
        f'<Relationship Id="rId{number}" Type="{kind}" Target="{target}"/>'
        for number, (kind, target) in enumerate(targets, start=1)
    )
    return f'<Relationships xmlns="{PACKAGE}/relationships">{rows}</Relationships>'


def core_properties(title: str) -> str:
    spaces = f'xmlns:cp="{PACKAGE}/metadata/core-properties" xmlns:dc="http://purl.org/dc/elements/1.1/"'
    return f"<cp:coreProperties {spaces}><dc:title>{escape(title)}</dc:title></cp:coreProperties>"


def word_document(parts: list[Block]) -> str:
    paragraphs = "".join(
        f'<w:p><w:pPr><w:pStyle w:val="{WORD_STYLES[kind]}"/></w:pPr>'
        f'<w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r></w:p>'
        for kind, text in parts
    )
    return f'<w:document xmlns:w="{WORD}"><w:body>{paragraphs}</w:body></w:document>'


def word_styles() -> str:
    def style(name: str, shown: str, half_points: int, bold: str) -> str:
        look = f'<w:rPr>{bold}<w:sz w:val="{half_points}"/></w:rPr>'
        return f'<w:style w:type="paragraph" w:styleId="{name}"><w:name w:val="{shown}"/>{look}</w:style>'

    styles = [style("Normal", "Normal", 22, ""), style("Title", "Title", 40, "<w:b/>")]
    return f'<w:styles xmlns:w="{WORD}">{"".join(styles)}{style("Heading1", "heading 1", 28, "<w:b/>")}</w:styles>'


MAKERS = {".pdf": make_pdf, ".docx": make_docx}


def products() -> Iterator[tuple[Path, bytes]]:
    """Each sample that is made: where it belongs and its bytes."""
    for source in sorted(SOURCES.rglob("*.txt")):
        target = TARGETS / source.relative_to(SOURCES).with_suffix("")
        yield target, MAKERS[target.suffix](source.read_text(encoding="utf-8"))


if __name__ == "__main__":
    for path, data in products():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        print(f"{path.relative_to(TARGETS)}: {len(data):,} bytes")
