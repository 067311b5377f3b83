"""`inkling models cache`: the models that are kept in the kernels' layout, and how to be rid of these files."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from app.terminal import json_text, printable, printable_path
from engine.errors import ModelError
from engine.weights import disk, opening

MEGABYTE = 1e6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The one option."""
    parser.add_argument("--clear", action="store_true", help="remove them; they are made again when they are needed")


def run(args: argparse.Namespace) -> int:
    """List the files, or remove them."""
    folder = args.folders.disk_weights
    if args.clear:
        try:
            freed = opening.clear(folder)
        except OSError as error:
            raise ModelError(f"{error.filename} cannot be removed ({error.strerror or error}).") from error
        print(json_text({"freed_bytes": freed}) if args.json else f"{freed / MEGABYTE:.1f} MB are free again")
        return 0
    files = disk.files(folder)
    if args.json:
        print(json_text([{**asdict(file), "path": str(file.path)} for file in files], indent=1))
        return 0
    if not files:
        print("No model is laid out on the disk.")
    for file in files:
        what = printable(f"{file.model} {file.precision}") if file.model else "not readable"
        place = printable_path(file.source or str(file.path))
        print(f"{file.bytes / MEGABYTE:10.1f} MB  {what:<45}  {place}")
    return 0
