"""Measure ranking quality on a set with known answers.

The set (BEIR layout: corpus.jsonl, queries.jsonl, qrels.tsv or qrels/test.tsv) is indexed in a temporary folder through
the same path as people's files.
"""

import argparse
import json
import tempfile
from pathlib import Path

from app import settings
from app.cli.arguments import given_path, given_text
from app.evaluation import index_set, load_set, measure
from app.progress import Progress
from engine import Encoder
from engine.catalog import model_path
from indexer.chunk import ChunkRules
from indexer.options import IndexerOptions


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The set, and how to search it."""
    parser.add_argument("folder", type=given_path, metavar="FOLDER", help="a relevance set in BEIR layout")
    parser.add_argument("--mode", choices=("hybrid", "words", "meaning"), default="hybrid", help="how to find (hybrid)")
    parser.add_argument("--no-rerank", action="store_true", help="leave out the comparison token by token")
    parser.add_argument(
        "--model", type=given_text, metavar="M", help="catalog name or folder (the model in the settings)"
    )
    parser.add_argument("--precision", choices=settings.PRECISIONS, help="how the model computes")


def run(args: argparse.Namespace) -> int:
    """Index, ask, print nDCG@10, Recall@100 and MRR@10."""
    given = load_set(args.folder)
    chosen = settings.load(args.folders.settings)
    options = IndexerOptions(data_dir=args.data_dir)
    model = model_path(args.model or chosen.model, args.folders.models)
    precision, disk_weights = args.precision or chosen.precision, args.folders.disk_weights
    with (
        Encoder.load(model, precision=precision, disk_weights=disk_weights) as encoder,
        tempfile.TemporaryDirectory(prefix="inkling-eval-") as folder,
    ):
        target = min(options.chunk_target_tokens, encoder.chunk_tokens)
        rules = ChunkRules(target, encoder.chunk_tokens, options.vector_chunks_per_file, with_lines=True)
        with Progress("Indexing", unit="passages") as progress:
            index_set(given, Path(folder), encoder, rules, lambda done, total: progress.update(done, total))
        with Progress("Searching", unit="queries") as progress:
            quality = measure(
                given,
                Path(folder),
                encoder,
                mode=args.mode,
                rerank=not args.no_rerank,
                report=lambda done, total: progress.update(done, total),
            )
    if args.json:
        print(json.dumps(quality.as_json()))
    else:
        for name, value in quality.as_json().items():
            print(f"{name:12} {value if isinstance(value, int) else f'{value:.4f}'}")
    return 0
