"""Turn texts into vectors: the arguments, standard input, or files.

Rows are JSON objects, one a line, that begin with what came in ("text" and maybe "id", or "file") and hold "vector".
With --tokens they hold "ids" and "vectors" instead; with --long also "windows" (their vectors), "spans" (their first
and last characters) and "tokens" (how much each counts).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from app import text_input
from app.cli.arguments import count, given_path, given_text, workers
from app.progress import Progress
from app.text_input import Item
from app.vector_output import Npy, npy, write_row
from engine import Encoder, EngineError
from engine.catalog import DEFAULT_MODEL, model_path
from engine.options import PRECISIONS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `inkling embed`."""
    add = parser.add_argument
    parser.description, parser.formatter_class = __doc__, argparse.RawDescriptionHelpFormatter
    add("texts", nargs="*", metavar="TEXT", help="texts; - or none reads standard input")
    add("--file", type=given_path, action="append", metavar="F", dest="files", help="read F; may be given again")
    add("--input", choices=("lines", "jsonl", "whole"), help="what standard input and files hold: a "
        'text a line; a JSON object a line with "text" and maybe "id"; or one text (lines)')  # fmt: skip
    model_help = f"catalog name or folder ({DEFAULT_MODEL})"
    add("--model", type=given_text, default=DEFAULT_MODEL, metavar="M", help=model_help)
    add("--role", choices=("query", "document", "none"), default="none", help="put the model's prefix on")
    add("--prompt", metavar="P", help="a prefix to put on instead")
    add("--precision", choices=PRECISIONS, default="auto")
    add("--dim", type=count, metavar="N", help="cut vectors to N numbers, to which the model must have been trained")
    add("--force-dim", action="store_true", help="cut them all the same")
    add("--max-tokens", type=count, metavar="N", help="cut texts at N tokens, not past the model's own limit")
    add("--long", action="store_true", help="read texts past the limit in overlapping windows in place of cutting them")
    add("--overlap", type=count, metavar="N", help="tokens that neighbouring windows share (an eighth of one)")
    add("--workers", type=workers, metavar="N", help="threads at most")
    add("--tokens", action="store_true", help="one vector a token, not normalised, in place of one a text")
    add("--format", choices=("jsonl", "npy"), default="jsonl", help="npy holds the vectors alone, in the order of the "
        "texts: no ids, no texts, no windows (jsonl)")  # fmt: skip
    add("--out", type=given_path, metavar="F", help="write to F instead of standard output")
    parser.set_defaults(usage_error=parser.error)


def run(args: argparse.Namespace) -> int:
    """Embed; the exit code."""
    _check_usage(args)
    model = model_path(args.model, args.folders.models)
    options: dict[str, Any] = {"precision": args.precision, "workers": args.workers, "max_tokens": args.max_tokens}
    options["disk_weights"] = args.folders.disk_weights
    with Encoder.load(model, dim=args.dim, force_dim=args.force_dim, **options) as encoder:
        if args.out is None:
            _embed(args, encoder, sys.stdout.buffer)
        else:
            with _writing(args.out) as out:
                _embed(args, encoder, out)
    return 0


def _check_usage(args: argparse.Namespace) -> None:
    refused = {
        "--tokens gives rows of different number for each text: use --format jsonl": (
            args.tokens and args.format == "npy"
        ),
        "--long gives one vector a text, --tokens one a token: give one of them": args.tokens and args.long,
        "--overlap is of windows, which --long makes": args.overlap is not None and not args.long,
        "--force-dim needs --dim": args.force_dim and args.dim is None,
        "--prompt takes the place of --role: give one of them": args.prompt is not None and args.role != "none",
        "texts or --file: give one of them": bool(args.texts and args.files),
        "--input is of standard input and of files; texts that are given are taken as they are": (
            args.input is not None and bool(args.texts) and args.texts != ["-"]
        ),
        "--dim cuts vectors of whole texts, --tokens gives those of tokens: give one of them": (
            args.dim is not None and args.tokens
        ),
        "- stands for standard input: give it alone": "-" in args.texts and len(args.texts) > 1,
        "no text given": not args.texts and not args.files and sys.stdin.isatty(),
        "--format npy is binary: give --out or send it to a file": (
            args.format == "npy" and args.out is None and sys.stdout.isatty()
        ),
    }
    for sentence, wrong in refused.items():
        if wrong:
            args.usage_error(sentence)


def _writing(file: Path) -> BinaryIO:
    try:
        return file.open("wb")
    except OSError as error:
        raise EngineError(f"{file} cannot be written ({error.strerror or error}).") from error


def _portions(args: argparse.Namespace) -> Iterator[list[Item]]:
    kind: text_input.Kind = args.input or "lines"
    if args.files:
        return text_input.from_files(args.files, kind)
    if args.texts and args.texts != ["-"]:
        return text_input.given(args.texts)
    return text_input.from_standard_input(kind)


def _embed(args: argparse.Namespace, encoder: Encoder, out: BinaryIO) -> None:
    if args.format == "npy":
        with npy(out, encoder.dim, own_file=args.out is not None) as file:
            _write_all(args, encoder, out, file)
    else:
        _write_all(args, encoder, out, None)
    out.flush()


def _write_all(args: argparse.Namespace, encoder: Encoder, out: BinaryIO, file: Npy | None) -> None:
    done, ids = 0, False
    shown = args.out is not None or not sys.stdout.isatty()  # on a terminal the rows show how far it is
    with Progress("Embedding", unit="texts") as bar:
        for portion in _portions(args):

            def report(texts: int, _total: int, before: int = done) -> None:
                if shown:
                    bar.update(before + texts)

            for item, row in zip(portion, _rows(args, encoder, portion, report), strict=True):
                if file is None:
                    write_row(out, {**item.label, **row})
                else:
                    file.write(row["vector"][None])
                    ids = ids or "id" in item.label
            done += len(portion)
            out.flush()
    if ids:
        print("inkling: npy holds no ids; its rows are in the order of the texts.", file=sys.stderr)


def _rows(args: argparse.Namespace, encoder: Encoder, portion: list[Item], report: Any) -> list[dict[str, Any]]:
    """What is written of each text besides its label."""
    texts = [item.text for item in portion]
    how: dict[str, Any] = {"role": None if args.role == "none" else args.role, "prompt": args.prompt}
    if args.tokens:
        found = encoder.encode_tokens(texts, progress=report, **how)
        return [{"ids": tokens.ids, "vectors": tokens.vectors} for tokens in found]
    if args.long:
        whole = encoder.encode_long(texts, overlap=args.overlap, **how)
        return [
            {"vector": each.vector, "windows": each.windows, "spans": each.spans, "tokens": each.tokens}
            for each in whole
        ]
    return [{"vector": vector} for vector in encoder.encode(texts, progress=report, **how)]
