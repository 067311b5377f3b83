"""`inkling models show`: what is to be known of one model."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from app.cli.arguments import given_text
from app.terminal import json_text, printable
from engine.batch import TOKEN_BUDGET
from engine.catalog import Catalog, CatalogModel, model_path
from engine.errors import ModelError
from engine.facts import Facts, facts
from engine.record import Fidelity

MEGABYTE = 1_000_000
KEY_WIDTH = 16


def add_show(parser: argparse.ArgumentParser) -> None:
    """Arguments of `inkling models show`."""
    parser.add_argument("model", type=given_text, metavar="MODEL", help="a name or a folder")


def show(args: argparse.Namespace) -> int:
    """Print the facts; of a known model that is not here, those of the catalog."""
    known = Catalog.load().find(args.model)
    try:
        found = facts(model_path(args.model, args.folders.models))
    except ModelError:
        if known is None or _is_here(args):
            raise
        rows = list(_of_catalog(known))
        values: dict[str, Any] = {**asdict(known), "path": None}
    else:
        rows, values = list(_of_folder(found)), {**asdict(found), "path": str(found.path)}
    if args.json:
        print(json_text(values, indent=1))
    else:
        for key, value in rows:
            print(printable(f"{key:<{KEY_WIDTH}} {value}".rstrip()))
    return 0


def fidelity_text(fidelity: Fidelity) -> str:
    """What int8 was measured to change, in one line."""
    what = {"vectors": "cosine", "tokens": "cosine of tokens", "scores": "rank correlation"}[fidelity.kind]
    difference = f", scores differ by {fidelity.largest_difference:.3f} at most" if fidelity.kind == "scores" else ""
    verdict = "" if fidelity.int8_suffices else "; auto computes fp32"
    return (
        f"int8 against fp32: worst {what} {fidelity.worst:.4f}, mean {fidelity.mean:.4f}, "
        f"{fidelity.top10:.1%} of the ten best kept{difference}{verdict}"
    )


def _is_here(args: argparse.Namespace) -> bool:
    try:
        model_path(args.model, args.folders.models)
    except ModelError:
        return False
    return True


def _of_folder(found: Facts) -> Iterator[tuple[str, Any]]:
    yield "name", found.name
    yield "kind", found.kind
    yield "folder", found.path
    if found.source:
        yield "source", f"{found.source}{' at ' + found.revision if found.revision else ''}"
    yield "licence", found.licence or "not stated"
    yield "languages", ", ".join(found.languages) or "not stated"
    yield "architecture", f"{found.architecture}, {found.layers} layers of width {found.hidden}"
    yield "parameters", f"{found.parameters:,}"
    yield "vector", _vector(found)
    yield "pooling", found.pooling or "none: a vector for every token"
    for role, prompt in found.prompts.items():
        yield f"{role} prefix" if not role.endswith("marker") else role, repr(prompt)
    yield "max tokens", f"{found.max_tokens:,}"
    yield "tokenizer", f"{found.tokenizer} of {found.vocabulary:,} tokens"
    yield "weights", f"{', '.join(found.stored)}; {found.disk_bytes / MEGABYTE:,.1f} MB on the disk"
    for precision, size in found.memory.weights.items():
        yield f"memory, {precision}", f"{size / MEGABYTE:,.1f} MB of weights"
    longest = found.memory.longest_activations
    text = f", {longest / MEGABYTE:,.1f} MB for the longest text" if longest is not None else ""
    yield "memory, texts", f"about {found.memory.activations / MEGABYTE:,.1f} MB for {TOKEN_BUDGET:,} tokens{text}"
    yield "precision", f"auto computes {found.precision}"
    yield "measured", "never" if found.measured is None else fidelity_text(found.measured)


def _vector(found: Facts) -> str:
    if found.kind == "reranker":
        return "one score for a query and a passage"
    cut = [str(width) for width in found.matryoshka if width < found.dim]
    trained = f", may be cut to {', '.join(cut)}" if cut else ""
    return f"{found.dim} numbers{', unit length' if found.normalize else ''}{trained}"


def _of_catalog(known: CatalogModel) -> Iterator[tuple[str, Any]]:
    yield "name", known.name
    yield "folder", f"not on this machine; `inkling models pull {known.name}` fetches it"
    yield "source", f"{known.hub_id}{' at ' + known.revision if known.revision else ''}"
    yield "licence", known.licence
    yield "languages", ", ".join(known.languages)
    yield "architecture", known.model_type
    cut = [str(width) for width in known.matryoshka if width < known.dim]
    unit = ", unit length" if known.normalize else ""
    yield "vector", f"{known.dim} numbers{unit}{', may be cut to ' + ', '.join(cut) if cut else ''}"
    yield "pooling", known.pooling
    for role, prompt in (("query", known.query_prefix), ("document", known.document_prefix)):
        if prompt:
            yield f"{role} prefix", repr(prompt)
    yield "max tokens", f"{known.max_tokens:,}"
