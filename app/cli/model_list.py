"""`inkling models list`: the models that are on this machine, and the known ones that are not."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from app.terminal import json_text, printable
from engine.catalog import BUNDLED_MODELS, Catalog, CatalogModel, local_models
from engine.errors import ModelError
from engine.models import FAMILIES
from engine.options import chosen_precision
from engine.record import Record
from engine.reranker_folder import RerankerFolder, open_folder

MEGABYTE = 1_000_000
COMMIT_DIGITS = 7  # of a revision, for a person
HEADS = f"{'model':<38} {'dim':>5} {'tokens':>6} {'MB':>8}  {'precision':<9} {'languages':<13} {'licence':<19} where"


def show_all(args: argparse.Namespace) -> int:
    """Print a line for each model; the exit code."""
    here = local_models(args.folders.models)
    rows = [_row(name, path) for name, path in here.items()]
    rows += [_known_row(model) for model in Catalog.load() if model.name not in here]
    if args.json:
        print(json_text(rows, indent=1))
        return 0
    for line in (HEADS, *map(_line, rows)):
        print(printable(line).rstrip())
    return 0


def _line(row: dict[str, Any]) -> str:
    size = "" if row["bytes"] is None else f"{row['bytes'] / MEGABYTE:,.1f}"
    numbers = f"{row['dim'] or '':>5} {row['max_tokens'] or '':>6} {size:>8}"
    facts = f"{row['precision'] or '':<9} {','.join(row['languages']):<13} {row['licence'] or '':<19}"
    return f"{row['name']:<38} {numbers}  {facts} {_where(row)}"


def _where(row: dict[str, Any]) -> str:
    if row["problem"] is not None:
        return "broken: `inkling models verify` says why"
    if not row["computed"]:
        return "not computed yet"
    if row["path"] is None or row["bundled"]:
        return "" if row["path"] is None else "here"
    commit = f"@{row['revision'][:COMMIT_DIGITS]}" if row["revision"] else ""
    return f"imported from {row['source']}{commit}" if row["source"] else "imported"


def _row(name: str, path: Path) -> dict[str, Any]:
    """Of a model that is here: what its own folder says, and what the catalog knows besides."""
    catalog = Catalog.load()
    bundled = path.parent == BUNDLED_MODELS
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    found = {"path": str(path), "bundled": bundled, "bytes": size, "computed": True}
    try:
        folder, record = open_folder(path), Record.read(path)
        dim = 1 if isinstance(folder, RerankerFolder) else folder.dim
        found |= {"dim": dim, "max_tokens": folder.max_tokens, "precision": chosen_precision("auto", folder)}
    except ModelError as error:  # a broken folder is listed too
        return {**_known_row(catalog.find(name), name), **found, "problem": str(error)}
    known = catalog.find(name) or catalog.find(record.source or "")
    return {**_known_row(known, name), **found, "source": record.source, "revision": record.revision}


def _known_row(known: CatalogModel | None, name: str = "") -> dict[str, Any]:
    """What the catalog knows of a model, under its own name or another, where it knows it at all."""
    return {
        "name": name or (known.name if known else ""),
        "path": None,
        "bundled": False,
        "computed": known is None or known.model_type in FAMILIES,
        "problem": None,
        "hub_id": known.hub_id if known else None,
        "dim": known.dim if known else None,
        "max_tokens": known.max_tokens if known else None,
        "languages": list(known.languages) if known else [],
        "licence": known.licence if known else None,
        "bytes": None,
        "precision": None,
        "source": None,
        "revision": None,
    }
