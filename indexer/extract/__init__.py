"""Text out of files: one format a module, registered here; they run only in the extraction process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from indexer.extract import docx, html, markdown, pdf, text
from indexer.extract.document import Piece, Source

__all__ = ["EXTRACTORS", "Extractor", "extractor_for"]


@dataclass(frozen=True, slots=True)
class Extractor:
    """One format. `version` changes whenever the text that comes out would change."""

    name: str
    version: int
    extract: Callable[[Source], Iterator[Piece]]
    extensions: tuple[str, ...]  # lower case, with the dot
    file_names: tuple[str, ...] = ()  # whole names without an extension, lower case
    magic: bytes = b""  # must stand within the first 1,024 bytes
    streams: bool = False  # any size, in bounded memory


_TEXT_EXTENSIONS = (
    ".txt .text .log .csv .tsv .json .jsonl .ndjson .geojson .xml .yaml .yml .toml .ini .cfg .conf .properties .env "
    ".rst .adoc .asciidoc .org .tex .bib .srt .vtt .po .diff .patch .sql .graphql .proto .css .scss .less "
    ".py .pyi .pyx .js .mjs .cjs .jsx .ts .tsx .vue .svelte .java .kt .kts .scala .groovy .c .h .cc .cpp .cxx .hh .hpp "
    ".cs .fs .vb .go .rs .zig .swift .m .mm .rb .php .pl .pm .lua .r .jl .hs .ml .mli .ex .exs .erl .clj .lisp .el "
    ".sh .bash .zsh .fish .ps1 .bat .cmd .awk .dart .nim .f90 .f .asm .s .v .vhd .tcl .cmake .gradle .mk .nix .tf"
)

EXTRACTORS: dict[str, Extractor] = {
    "text": Extractor(
        "text",
        1,
        text.extract,
        tuple(_TEXT_EXTENSIONS.split()),
        ("readme", "license", "licence", "copying", "makefile", "dockerfile", "changelog", "authors", "notes", "todo"),
        streams=True,
    ),
    "markdown": Extractor("markdown", 1, markdown.extract, (".md", ".markdown", ".mdown", ".mkd"), streams=True),
    "html": Extractor("html", 1, html.extract, (".html", ".htm", ".xhtml")),
    "pdf": Extractor("pdf", 1, pdf.extract, (".pdf",), magic=b"%PDF-"),
    "docx": Extractor("docx", 1, docx.extract, (".docx", ".docm", ".dotx")),
}

_BY_EXTENSION = {suffix: extractor for extractor in EXTRACTORS.values() for suffix in extractor.extensions}
_BY_NAME = {name: extractor for extractor in EXTRACTORS.values() for name in extractor.file_names}


def extractor_for(path: bytes) -> Extractor | None:
    """The extractor for a file of this name, or None where Inkling does not read such files."""
    name = os.path.basename(path).decode("utf-8", "replace").lower()
    stem, suffix = os.path.splitext(name)
    if not suffix:
        return _BY_NAME.get(stem)
    return _BY_EXTENSION.get(suffix)
