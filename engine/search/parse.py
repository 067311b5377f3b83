"""What a person types, taken apart. Nothing that is typed is an error: what has no special meaning is a word.

"exact phrase"       must occur word for word        -word  -"a phrase"     must not occur in the document
one OR two           either                          invoic*                words that begin so
type:pdf ext:md      file type                       folder:taxes dir:/home/ann/letters
after:2024  before:2024-05-17                        file time: year, month or day
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from datetime import datetime

from engine.search.candidates import Filters
from engine.search.lexical import UNSPACED_RUN, normalise, pairs_of, prepare_text

LONGEST_QUERY_CHARS = 4_000  # what is longer is cut: it is a pasted text, and its beginning says what it is about
_QUOTES = str.maketrans({"\u201c": '"', "\u201d": '"', "\u201e": '"', "\u201f": '"', "\u00ab": '"', "\u00bb": '"'})
_PIECE = re.compile(
    r'(?P<minus>(?<!\S)-(?="|[^\W\d_]))?(?:'
    r'(?P<field>(?i:type|ext|folder|dir|after|before)):(?P<value>"[^"]*"|[^\s"]+)'
    r'|"(?P<phrase>[^"]*)"'
    r"|(?P<word>[^\s\"]+)|\")"
)
_WORD_CHARS = re.compile(r"\w")
# A code that must be found as it is written: digits joined by signs or letters, underscores, C++, C#, user@host.
_IDENTIFIER = re.compile(
    r"(?=\S*\w)(?:\S*(?:_|@|\+\+|\w#|\d)\S*|\w{2,}(?:\.\w{2,})+|\w+(?:::|->|/)\w+\S*)", re.ASCII | re.IGNORECASE
)
_PLAIN_NUMBER = re.compile(r"[-+]?\d+")
_EDGES = "()[]{}<>.,;:!?'`\u2018\u2019\u2026\u3001\u3002\uff0c\uff1f\uff01"


@dataclass(frozen=True, slots=True)
class Term:
    """A part of the query to look for in the word index.

    prepared: the text as the word index holds it. exact: must stand word for word and in order (a quoted phrase, an
    identifier). prefix: its last word may go on.
    """

    text: str
    prepared: str
    exact: bool = False
    prefix: bool = False

    @property
    def expression(self) -> str:
        """The term in the language of FTS5; whatever it holds, it is one quoted string."""
        return '"' + self.prepared.replace('"', '""') + '"' + ("*" if self.prefix else "")


@dataclass(frozen=True, slots=True)
class Query:
    """A query taken apart.

    text: what is searched by meaning, without operators. terms: words that count towards the score. identifiers: of
    them, those whose exact hits come first. required: each an alternative of terms of which one must occur.
    excluded: terms that must not.
    """

    text: str
    terms: tuple[Term, ...]
    required: tuple[tuple[Term, ...], ...]
    excluded: tuple[Term, ...]
    filters: Filters

    @property
    def identifiers(self) -> tuple[Term, ...]:
        """Terms that are codes or beginnings rather than words."""
        return tuple(term for term in self.terms if term.exact or term.prefix)

    @property
    def empty(self) -> bool:
        """There is nothing to look for."""
        return not self.terms


def parse(typed: str) -> Query:
    """Take a query apart. Never raises for any text."""
    pieces = list(_PIECE.finditer(typed[:LONGEST_QUERY_CHARS].translate(_QUOTES)))
    filters = Filters()
    meaning: list[str] = []
    terms: list[Term] = []
    excluded: list[Term] = []
    groups: list[list[tuple[Term, bool]]] = []  # alternatives joined by OR; bool: quoted
    join_next = False
    for piece in pieces:
        word = piece["word"]
        if word in ("OR", "|") and not piece["minus"]:
            join_next = bool(groups)
            continue
        if piece["field"]:
            changed = None if piece["minus"] else _filter(filters, piece["field"].lower(), piece["value"].strip('"'))
            if changed is not None:
                filters = changed
                continue
            word = f"{piece['field']}:{piece['value']}"
        quoted = piece["phrase"] is not None
        found = _terms(piece["phrase"] if quoted else word or "", quoted)
        if not found:
            join_next = False
            continue
        if piece["minus"]:
            excluded.extend(found)
            continue
        meaning.append(piece["phrase"] if quoted else (word or "").rstrip("*"))
        terms.extend(found)
        group = [(term, quoted) for term in found]
        if join_next:
            groups[-1].extend(group)
        else:
            groups.append(group)
        join_next = False
    required = tuple(tuple(term for term, _ in group) for group in groups if any(quoted for _, quoted in group))
    return Query(" ".join(meaning), _unique(terms), required, tuple(excluded), filters)


def _terms(text: str, quoted: bool) -> list[Term]:
    """The terms of one piece: one phrase, one identifier, or its words."""
    prefix = not quoted and text.endswith("*") and len(text) > 1
    bare = text.strip() if quoted else text.rstrip("*").strip(_EDGES)
    if not _WORD_CHARS.search(bare):
        return []
    if quoted:
        return [_exact(bare)]
    if _IDENTIFIER.fullmatch(bare) and not _PLAIN_NUMBER.fullmatch(bare) and not UNSPACED_RUN.search(bare):
        return [replace(_exact(bare), prefix=prefix)]
    terms = [term for part in prepare_parts(bare) for term in [Term(part[0], part[0], prefix=part[1])]]
    if prefix and terms:
        terms[-1] = replace(terms[-1], prefix=True)
    return terms


def prepare_parts(text: str) -> list[tuple[str, bool]]:
    """The separate words of a piece as the word index holds them, and whether to search them as beginnings.

    A run of an unspaced script becomes its pairs; a lone character of one is searched as the beginning of a pair.
    """
    parts: list[tuple[str, bool]] = []
    at = 0
    plain = normalise(text)
    for run in UNSPACED_RUN.finditer(plain):
        parts += [(word, False) for word in split_words(prepare_text(plain[at : run.start()]))]
        parts += [(pair, False) for pair in pairs_of(run[0]).split()] or [(run[0], True)]
        at = run.end()
    parts += [(word, False) for word in split_words(prepare_text(plain[at:]))]
    return parts


def split_words(prepared: str) -> list[str]:
    """The runs of letters, marks and digits, as the tokenizer of the word index cuts them."""
    kept = "".join(char if unicodedata.category(char)[0] in "LMN" else " " for char in prepared)
    return kept.split()


def _exact(text: str) -> Term:
    """A phrase: in an unspaced script its pairs in a row, without the lone last character that the index adds."""
    plain = normalise(text)
    runs = list(UNSPACED_RUN.finditer(plain))
    if not runs:
        return Term(text, prepare_text(plain), exact=True)
    prepared, at = [], 0
    for run in runs:
        last = run.end() == len(plain)
        tail = "" if last and len(run[0]) > 1 else f" {run[0][-1]}"
        prepared.append(f"{prepare_text(plain[at : run.start()])} {pairs_of(run[0])}{tail}")
        at = run.end()
    prepared.append(prepare_text(plain[at:]))
    lone_end = runs[-1].end() == len(plain) and len(runs[-1][0]) == 1
    return Term(text, " ".join(" ".join(prepared).split()), exact=True, prefix=lone_end)


def _filter(filters: Filters, field: str, value: str) -> Filters | None:
    """The filters with one more; None when the value makes no sense, and the piece is then a word like any other."""
    if field in ("type", "ext"):
        types = tuple(part.lower().lstrip(".") for part in value.split(",") if part.strip("."))
        return replace(filters, types=filters.types + types) if types else None
    if field in ("folder", "dir"):
        return replace(filters, folders=(*filters.folders, value)) if value else None
    span = date_span_ns(value)
    if span is None:
        return None
    if field == "after":
        return replace(filters, after_ns=span[0])
    return replace(filters, before_ns=span[0])


def date_span_ns(value: str) -> tuple[int, int] | None:
    """First and last moment + 1 of a year (2024), month (2024-05) or day (2024-05-17), local time, unix nanoseconds;
    None for anything else.
    """
    match = re.fullmatch(r"(\d{4})(?:[-/.](\d{1,2}))?(?:[-/.](\d{1,2}))?", value, re.ASCII)
    if not match:
        return None
    year, month, day = int(match[1]), int(match[2] or 1), int(match[3] or 1)
    try:
        begin = datetime(year, month, day)
        if match[3]:
            end = datetime.fromordinal(begin.toordinal() + 1)
        elif match[2]:
            end = datetime(year + month // 12, month % 12 + 1, 1)
        else:
            end = datetime(year + 1, 1, 1)
        return int(begin.timestamp()) * 10**9, int(end.timestamp()) * 10**9
    except (ValueError, OverflowError, OSError):
        return None  # the 31st of February, or a year that no clock has


def _unique(terms: list[Term]) -> tuple[Term, ...]:
    return tuple(dict.fromkeys(terms))
