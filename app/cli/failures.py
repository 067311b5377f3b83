"""List the files that could not be read, and why."""

from __future__ import annotations

import argparse
from typing import Any

from app.cli.status import path_fields
from app.terminal import json_text, printable, printable_path
from indexer.store.open import index_path
from indexer.store.reader import Reader
from indexer.watch.walk import absolute


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`inkling failures` takes only the shared options."""


def run(args: argparse.Namespace) -> int:
    """Print one entry a file."""
    rows: list[tuple[bytes, dict[str, Any]]] = []
    if index_path(args.data_dir).exists():
        with Reader.open(args.data_dir) as reader, reader.snapshot():
            roots = {root.root_id: root.path for root in reader.roots()}
            for failure in reader.failures():
                path = absolute(roots[failure.root_id], failure.path)
                entry: dict[str, Any] = {**path_fields(path), "kind": failure.kind, "message": failure.message}
                entry |= {"attempts": failure.attempts, "quarantined": failure.quarantined}
                rows.append((path, entry))
    if args.json:
        print(json_text([entry for _, entry in rows], indent=2))
        return 0
    for path, entry in rows:
        print(f"{printable_path(path)}\n    {entry['kind']}: {printable(entry['message'])}")
    if not rows:
        print("Every file could be read.")
    return 0
