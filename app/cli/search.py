"""Find passages in the indexed folders.

In the query, "quoted words" must stand as they are, -word must not occur, and type:pdf, folder:letters, after:2024-05
and before:2025 narrow the search.
"""

import argparse
import os
import sys

from app.cli.arguments import given_text, hits
from app.search_service import SearchHit, SearchRequest, SearchResponse, SearchService
from app.terminal import json_text, printable, printable_path, printable_prose
from engine.search.parse import date_span_ns

BOLD, DIM, PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[0m"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The query and what narrows it."""
    parser.add_argument("query", nargs="+", metavar="QUERY", help="what to find, in words or as a question")
    parser.add_argument("-n", type=hits, default=10, metavar="N", dest="limit", help="documents at most (10)")
    parser.add_argument("--mode", choices=("hybrid", "words", "meaning"), default="hybrid", help="how to find (hybrid)")
    parser.add_argument("--no-rerank", action="store_true", help="leave out the comparison token by token")
    parser.add_argument("--folder", type=given_text, metavar="F", help="only below this folder")
    parser.add_argument("--type", type=_types, metavar="T", default=(), help="only files of these types: pdf,md")
    parser.add_argument(
        "--after", type=_date, metavar="DATE", help="only files changed since: 2024, 2024-05 or 2024-05-17"
    )
    parser.add_argument("--before", type=_date, metavar="DATE", help="only files changed before")


def run(args: argparse.Namespace) -> int:
    """Search once and print the hits."""
    request = SearchRequest(
        query=" ".join(args.query),
        limit=args.limit,
        mode=args.mode,
        rerank=not args.no_rerank,
        folder=_folder(args.folder),
        types=args.type,
        after=args.after,
        before=args.before,
    )
    with SearchService(args.data_dir, disk_weights=args.folders.disk_weights) as service:
        response = service.search(request)
    if args.json:
        print(json_text(response.as_json()))
        return 0
    if response.note:
        print(f"inkling: {printable(response.note)}", file=sys.stderr)
    print_response(response, styled=sys.stdout.isatty() and "NO_COLOR" not in os.environ)
    return 0


def print_response(response: SearchResponse, *, styled: bool) -> None:
    """The hits for a person to read."""
    if not response.hits:
        print("Nothing found.")
    for number, hit in enumerate(response.hits, 1):
        place = f", page {hit.page}" if hit.page else f", line {hit.line}" if hit.line else ""
        path = printable_path(hit.path)
        weak = "  (weak match)" if hit.weak else ""
        title = printable(" ".join(hit.title.split())) or printable_path(os.path.basename(hit.path))
        if styled:
            print(f"{number:2}. {BOLD}{title}{PLAIN}{weak}\n    {DIM}{path}{place}{PLAIN}")
        else:
            print(f"{number:2}. {title}{weak}\n    {path}{place}")
        print(f"    {marked(hit) if styled else printable_prose(hit.snippet)}\n")


def marked(hit: SearchHit) -> str:
    """The snippet with the words of the query in bold."""
    out, at = [], 0
    for start, end in hit.highlights:
        out += [printable_prose(hit.snippet[at:start]), BOLD, printable_prose(hit.snippet[start:end]), PLAIN]
        at = end
    return "".join(out) + printable_prose(hit.snippet[at:])


def _folder(given: str | None) -> str | None:
    """A folder that exists, or is written as a path, is meant as such; anything else is the name of a folder."""
    if given is None:
        return None
    if os.path.isdir(given) or os.path.isabs(given) or given.startswith((".", "~")):
        return os.path.abspath(os.path.expanduser(given))
    return given


def _types(text: str) -> tuple[str, ...]:
    types = tuple(part for part in text.split(",") if part.strip(". "))
    if not types:
        raise argparse.ArgumentTypeError(f"{text!r} names no type: write them as pdf,md")
    return types


def _date(text: str) -> str:
    if date_span_ns(text) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a date: write it as 2024, 2024-05 or 2024-05-17")
    return text
