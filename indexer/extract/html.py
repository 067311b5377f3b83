"""HTML: the text a reader would see, one block a line; scripts and styles are dropped."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode

from indexer.extract import text
from indexer.extract.document import Piece, Source, Title, split_text

_DROPPED = frozenset(
    ["script", "style", "noscript", "template", "svg", "math", "iframe", "object", "head", "select", "button"]
)
_PARAGRAPHS = frozenset(
    "p h1 h2 h3 h4 h5 h6 table ul ol dl pre blockquote section article header footer main aside figure hr".split()
)
_LINES = frozenset("div li dt dd tr br address figcaption caption form fieldset details summary nav body".split())
_LINE, _PARAGRAPH = "\x02", "\x03"  # stand for the ends of blocks until the whole text is there
_MARKS = re.compile(r"[\x02\x03]")
_BREAKS = re.compile(r"[ \t\n]*[\x02\x03][ \t\n\x02\x03]*")
_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([A-Za-z0-9_:.-]{2,40})""", re.IGNORECASE)
_SPACE = re.compile(r"\s+")
_SPACES = re.compile(r"(?<=\S) {2,}")


def extract(source: Source) -> Iterator[Piece]:
    """Title, then the visible text."""
    data = source.read_all("HTML file")
    tree = LexborHTMLParser(_decode(data, source))
    title = tree.css_first("title") or tree.css_first("h1")
    if title is not None:
        name = _SPACE.sub(" ", title.text()).strip()
        if name:
            yield Title(name)
    if tree.root is not None:
        yield from split_text(visible_text(tree.root))


def visible_text(root: LexborNode) -> str:
    """The text below a node: blocks on lines of their own, cells apart by tabs, `pre` as written."""
    out: list[str] = []
    node: LexborNode | None = root
    pre_depth = 0
    while node is not None:
        tag = node.tag or ""
        if tag == "-text":
            content = _MARKS.sub(" ", node.text_content or "")
            out.append(content if pre_depth else _SPACE.sub(" ", content))
        elif tag == "img":
            out.append(f" {node.attributes.get('alt') or ''} ")
        _open_block(tag, out)
        pre_depth += tag == "pre"
        if tag not in _DROPPED and node.first_child is not None:
            node = node.first_child
            continue
        while node is not None:
            closed = node.tag or ""
            _open_block(closed, out)
            pre_depth -= closed == "pre"
            if closed in ("td", "th"):
                out.append("\t")
            if node.mem_id == root.mem_id:  # `==` would compare the markup of both
                node = None
            elif node.next is not None:
                node = node.next
                break
            else:
                node = node.parent
    return _tidy("".join(out))


def _open_block(tag: str, out: list[str]) -> None:
    if tag in _PARAGRAPHS:
        out.append(_PARAGRAPH)
    elif tag in _LINES:
        out.append(_LINE)


def _tidy(raw: str) -> str:
    raw = _BREAKS.sub(lambda found: "\n\n" if _PARAGRAPH in found[0] else "\n", raw)
    return _SPACES.sub(" ", raw).strip()


def _decode(data: bytes, source: Source) -> str:
    """Byte order mark, then UTF-8, then what the page declares, then a guess."""
    head = data[:4096]
    if not head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError:
            declared = _CHARSET.search(head)
        if declared:
            try:
                return data.decode(codecs.lookup(declared[1].decode("ascii")).name, "replace")
            except LookupError:
                declared = None  # a charset nobody knows: the guess below is the better reading
    encoding, skip_bytes = text.sniff_encoding(source)
    return data[skip_bytes:].decode(encoding, "replace")
