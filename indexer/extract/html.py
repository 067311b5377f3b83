"""HTML: the text a reader would see, one block a line; scripts and styles are dropped."""

from __future__ import annotations

import codecs
import html
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
_BREAKS = re.compile(r"(?<![ \t\n])[ \t\n]*[\x02\x03][ \t\n\x02\x03]*")
_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([A-Za-z0-9_:.-]{2,40})""", re.IGNORECASE)
_TAG = re.compile(r"<(/?)([a-zA-Z][^\s/>]*)")
_NAME = re.compile(r"<[/!?]?([a-zA-Z]*)")
_TITLE = re.compile(r"<title[^>]{0,200}>([^<]{1,2000})", re.IGNORECASE)
DEEPEST_NESTING = 5_000  # for each tag the parser walks up to the root: far deeper, one file takes minutes
_NEVER_DEEP = frozenset(  # closed by what follows, or empty
    "area base br col embed hr img input link meta source track wbr p li dt dd tr td th option thead tbody".split()
)
_SPACE = re.compile(r"\s+")
_SPACES = re.compile(r"(?<=\S) {2,}")


def extract(source: Source) -> Iterator[Piece]:
    """Title, then the visible text."""
    data = source.read_all("HTML file")
    markup = _decode(data, source)
    if _nesting(markup) > DEEPEST_NESTING:
        yield from _without_structure(markup)
        return
    tree = LexborHTMLParser(markup)
    title = tree.css_first("title") or tree.css_first("h1")
    if title is not None:
        name = _SPACE.sub(" ", title.text()).strip()
        if name:
            yield Title(name)
    if tree.root is not None:
        yield from split_text(visible_text(tree.root))


def _nesting(markup: str) -> int:
    """How deep elements lie in each other at most, counted by their tags alone."""
    if markup.count("<") <= DEEPEST_NESTING:
        return 0
    depth = deepest = 0
    for closing, name in _TAG.findall(markup):
        if name.lower() not in _NEVER_DEEP:
            depth = max(0, depth - 1) if closing else depth + 1
            deepest = max(deepest, depth)
    return deepest


def _without_structure(markup: str) -> Iterator[Piece]:
    """Title and text of a page that no parser should see: tags are cut out as they come."""
    title = _TITLE.search(markup, 0, 65_536)
    if title is not None and (name := _SPACE.sub(" ", html.unescape(title[1])).strip()):
        yield Title(name)
    yield from split_text(stripped(markup))


def stripped(markup: str) -> str:
    """The text between the tags, in one pass whose time grows with the length alone."""
    out: list[str] = []
    at = 0
    while (start := markup.find("<", at)) >= 0:
        out.append(_plain(markup[at:start]))
        name = _NAME.match(markup, start)
        assert name is not None
        if markup.startswith("<!--", start):
            end = markup.find("-->", start + 4)
        elif len(name[0]) == 1:
            out.append("<")  # no tag: "a < b"
            at = start + 1
            continue
        else:
            end = markup.find(">", start)
            tag = name[1].lower()
            _open_block(tag, out)
            if end >= 0 and tag in ("script", "style", "title") and name[0][1] != "/":
                closing = re.compile(f"</{tag}", re.IGNORECASE).search(markup, end)
                end = markup.find(">", closing.start()) if closing is not None else -1
        if end < 0:
            return _tidy("".join(out))  # what is never closed hides all that follows
        at = markup.find(">", end) + 1
    return _tidy("".join([*out, _plain(markup[at:])]))


def _plain(text: str) -> str:
    return _SPACE.sub(" ", _MARKS.sub(" ", html.unescape(text)))


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
