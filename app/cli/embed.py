"""Turn texts into vectors: the arguments, or the lines of standard input."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from app.cli.arguments import given_path, given_text, workers
from app.progress import Progress
from engine import Encoder, EngineError
from engine.catalog import DEFAULT_MODEL, model_path
from engine.options import PRECISIONS

# Lines taken from standard input at once: enough to keep the engine busy, few enough that answers flow.
LINES_AT_ONCE = 256


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `inkling embed`."""
    parser.add_argument(
        "texts", nargs="*", metavar="TEXT", help="texts; - or none reads standard input, one text a line"
    )
    parser.add_argument(
        "--model", type=given_text, default=DEFAULT_MODEL, metavar="M", help=f"catalog name or folder ({DEFAULT_MODEL})"
    )
    parser.add_argument(
        "--role", choices=("query", "document", "none"), default="none", help="put the model's prefix on"
    )
    parser.add_argument("--precision", choices=PRECISIONS, default="auto")
    parser.add_argument("--workers", type=workers, metavar="N", help="threads at most")
    parser.add_argument(
        "--tokens", action="store_true", help="one vector a token, not normalised, in place of one a text"
    )
    parser.add_argument("--format", choices=("jsonl", "npy"), default="jsonl")
    parser.add_argument("--out", type=given_path, metavar="F", help="write to F instead of standard output")
    parser.set_defaults(usage_error=parser.error)


def run(args: argparse.Namespace) -> int:
    """Embed; the exit code."""
    if args.tokens and args.format == "npy":
        args.usage_error("--tokens gives rows of different number for each text: use --format jsonl")
    if args.format == "npy" and args.out is None and sys.stdout.isatty():
        args.usage_error("--format npy is binary: give --out or send it to a file")
    if not args.texts and sys.stdin.isatty():
        args.usage_error("no text given")
    model = model_path(args.model, args.folders.models)
    with Encoder.load(model, precision=args.precision, workers=args.workers) as encoder:
        if args.out is None:
            _embed(args, encoder, sys.stdout.buffer)
        else:
            try:
                with args.out.open("wb") as out:
                    _embed(args, encoder, out)
            except OSError as error:
                raise EngineError(f"{args.out} cannot be written ({error.strerror or error}).") from error
    return 0


def _texts(args: argparse.Namespace) -> Iterator[list[str]]:
    """The texts in portions. Bytes of standard input that are no UTF-8 become U+FFFD."""
    if args.texts and args.texts != ["-"]:
        yield args.texts
        return
    lines = (line.decode("utf-8", "replace").rstrip("\r\n") for line in sys.stdin.buffer)
    while portion := list(islice(lines, LINES_AT_ONCE)):
        yield portion


def _embed(args: argparse.Namespace, encoder: Encoder, out: BinaryIO) -> None:
    role = None if args.role == "none" else args.role
    rows: list[NDArray[np.float32]] = [np.zeros((0, encoder.dim), np.float32)]
    done = 0
    with Progress("Embedding", unit="texts") as bar:
        for texts in _texts(args):
            if args.tokens:
                for text, tokens in zip(texts, encoder.encode_tokens(texts, role=role), strict=True):
                    _write(out, {"text": text, "ids": tokens.ids.tolist(), "vectors": _numbers(tokens.vectors)})
            else:
                vectors = encoder.encode(texts, role=role)
                if args.format == "npy":
                    rows.append(vectors)
                else:
                    for text, vector in zip(texts, vectors, strict=True):
                        _write(out, {"text": text, "vector": _numbers(vector)})
            done += len(texts)
            if args.out is not None:  # on standard output the rows themselves show how far it is
                bar.update(done)
    if args.format == "npy":
        np.save(out, np.concatenate(rows))
    out.flush()


def _write(out: BinaryIO, row: dict[str, Any]) -> None:
    out.write(json.dumps(row, separators=(",", ":")).encode("ascii") + b"\n")


def _numbers(values: NDArray[np.float32]) -> list[Any]:
    """Nested lists of numbers with nine digits: enough for every float32 to come back as it was."""
    if values.ndim > 1:
        return [_numbers(row) for row in values]
    return [float(f"{value:.9g}") for value in values.tolist()]
