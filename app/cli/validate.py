"""Check that a model computes here what it should, and say where it does not.

With --reference: token ids, then vectors, against those of another program. F is JSON lines, one object a text with
"text", "vector", and "ids" of its tokens where they are to be compared; or an npz file with the arrays texts, vectors,
ids (flat) and starts. "role" or "prompt" say what the model was given before the text. With sentence-transformers:

  import json
  from sentence_transformers import SentenceTransformer
  model = SentenceTransformer(FOLDER, device="cpu")
  for text in TEXTS:
      ids = model.tokenizer(text, truncation=True, max_length=model.max_seq_length)["input_ids"]
      print(json.dumps({"text": text, "ids": ids, "vector": model.encode(text).tolist()}))

Without it, on texts that come with the program: compiled kernels against NumPy, int8 against fp32, a text alone and in
a batch, one worker and several.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import asdict

from app.cli.arguments import count, given_path, given_text, workers
from app.progress import Steps
from app.reference_file import read_reference
from app.terminal import json_text, printable
from app.validation import FP32_BOUND, Check, Validation
from engine.catalog import DEFAULT_MODEL, model_path
from engine.errors import EngineError
from engine.options import PRECISIONS, chosen_workers

MARKS = {True: "ok", False: "OFF", None: "--"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The model and what to compare it with."""
    parser.description, parser.formatter_class = __doc__, argparse.RawDescriptionHelpFormatter
    model_help = f"catalog name or folder ({DEFAULT_MODEL})"
    parser.add_argument("--model", type=given_text, default=DEFAULT_MODEL, metavar="M", help=model_help)
    parser.add_argument("--reference", type=given_path, metavar="F", help="ids and vectors of another program")
    parser.add_argument("--bound", type=_bound, metavar="X", help="largest difference of unit "
        f"vectors that fp32 may have to the reference ({FP32_BOUND:g})")  # fmt: skip
    parser.add_argument("--precision", choices=PRECISIONS, default="auto", help="one of them (all that can be had)")
    parser.add_argument("--dim", type=count, metavar="N", help="vectors cut to N numbers")
    parser.add_argument("--workers", type=workers, metavar="N", help="threads to compare one with (2 at least)")
    parser.set_defaults(usage_error=parser.error)


def run(args: argparse.Namespace) -> int:
    """Print each check as it is made; 1 where one is off."""
    if args.bound is not None and args.reference is None:
        args.usage_error("--bound is of the differences to a --reference: give both")
    path = model_path(args.model, args.folders.models)
    threads = max(2, chosen_workers(args.workers))
    bound = FP32_BOUND if args.bound is None else args.bound
    checks: list[Check] = []
    with Steps() as steps:

        def tell(what: str, done: int, total: int) -> None:
            steps.update(f"Computing {what}", "texts", done, total)

        validation = Validation(path, args.precision, threads, args.dim, bound, tell)
        made = validation.by_itself() if args.reference is None else validation.against(read_reference(args.reference))
        for check in made:
            checks.append(check)
            steps.end_step()
            if not args.json:
                print(f"{MARKS[check.verdict]:3} {check.name}: {printable(check.found)}", flush=True)
    off = [check.name for check in checks if check.verdict is False]
    if args.json:
        print(json_text({"model": str(path), "good": not off, "checks": [asdict(check) for check in checks]}, indent=1))
    if off:
        raise EngineError(f"{path.name} does not compute as it should: {'; '.join(off)}.")
    return 0


def _bound(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 2:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 2")
    return value
