"""Index the sample documents that come with Inkling, and open the window on them.

Without a display, or with --no-window, the passages for a few telling questions are printed instead, or those for
QUERY. The demo has a data folder of its own, so it neither sees nor changes your index.
"""

import argparse
import filecmp
import os
import shutil
import sys
from pathlib import Path

import resources
from app import paths
from app.cli import index
from app.cli.doctor import probe_qt
from app.cli.search import print_response
from app.search_service import SearchRequest, SearchResponse, SearchService
from app.terminal import json_text, printable

# Question -> the sample that answers it, although it has none of the telling words.
TELLING_QUERIES = {
    "may a puppy live in our apartment": "home/rental-contract.pdf",
    "who reimburses the soaked flooring": "home/insurance-water-damage.pdf",
    "recovering after surgery": "health/physio-knee.pdf",
    "an eatery keeps us awake": "letters/noise-complaint.txt",
    "the carrier mislaid my belongings": "travel/lost-suitcase.txt",
    "our pet is slimming down": "health/vet-visit.html",
}
HITS_SHOWN = 3
INVISIBLE_PLATFORMS = ("offscreen", "minimal", "vnc")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The question, and whether to stay on the terminal."""
    parser.add_argument("query", nargs="*", metavar="QUERY", help="ask this instead of the telling questions")
    parser.add_argument("--no-window", action="store_true", help="print the hits and end")


def run(args: argparse.Namespace) -> int:
    """Index the samples, then show or print what they answer."""
    documents, data_dir = args.data_dir / "demo" / "documents", args.data_dir / "demo" / "index"
    copy_samples(resources.path("samples"), documents)
    index_documents(documents, data_dir)
    query = " ".join(args.query)
    if not (args.no_window or args.json):
        problem = no_window_because()
        if not problem:
            from app import gui

            return gui.run(data_dir, folders=[str(documents)], query=query)
        print(f"inkling: {printable(problem)}; here are the answers instead.", file=sys.stderr)
    with SearchService(data_dir, disk_weights=paths.folders(data_dir).disk_weights) as service:
        asked = [query] if query else list(TELLING_QUERIES)
        responses = [service.search(SearchRequest(question, limit=HITS_SHOWN)) for question in asked]
    print_responses(responses, as_json=args.json)
    return 0


def copy_samples(samples: Path, documents: Path) -> None:
    """Bring `documents` to the state of `samples`; what is right already stays untouched."""
    wanted = {file.relative_to(samples) for file in samples.rglob("*") if file.is_file()}
    for name in sorted(wanted):
        target = documents / name
        if not (target.is_file() and filecmp.cmp(samples / name, target, shallow=False)):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(samples / name, target)


def index_documents(documents: Path, data_dir: Path) -> None:
    """Index the folder as `inkling index --once` does. Raises IndexerError."""
    parser = argparse.ArgumentParser()
    index.add_arguments(parser)
    args = parser.parse_args([str(documents)], argparse.Namespace(json=False, data_dir=data_dir))
    args.folders = paths.folders(data_dir)
    index.run(args)


def no_window_because() -> str:
    """Why no window can be shown here, or an empty text."""
    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return "There is no display here"
    platform_name, problem = probe_qt()
    return problem or ("Qt draws nowhere visible here" if platform_name in INVISIBLE_PLATFORMS else "")


def print_responses(responses: list[SearchResponse], *, as_json: bool) -> None:
    """All questions with their hits."""
    if as_json:
        print(json_text([response.as_json() for response in responses], indent=2))
        return
    styled = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    for response in responses:
        print(f'"{printable(response.query)}"  ({response.took_ms:.0f} ms)\n')
        print_response(response, styled=styled)
