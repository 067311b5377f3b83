"""Embedding models: list the known ones, bring one in, check them, or pack one for this program."""

from __future__ import annotations

import argparse
from contextlib import suppress
from pathlib import Path
from typing import Any

from app.cli import models_cache
from app.cli.arguments import given_path, given_text
from app.progress import Progress
from app.terminal import json_text, printable, printable_path
from engine.catalog import BUNDLED_MODELS, Catalog, CatalogModel, local_models, model_path
from engine.errors import ModelError
from engine.folder import ModelFolder
from engine.models import FAMILIES
from engine.weights.convert import convert
from engine.weights.importing import Import, import_model, verify

MEGABYTE = 1_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The actions; --json may stand before or after the action."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")
    place: dict[str, Any] = {"type": given_path, "metavar": "D", "help": "keep everything in D"}
    shared.add_argument("--data-dir", default=argparse.SUPPRESS, **place)
    actions.add_parser("list", parents=[shared], help="the models that are here, and the known ones that are not")
    one = actions.add_parser("import", parents=[shared], help="copy a published model folder to where models are kept")
    one.add_argument("folder", type=given_path, metavar="FOLDER")
    some = actions.add_parser("verify", parents=[shared], help="read models through and compare their hashes")
    some.add_argument("models", nargs="*", type=given_text, metavar="MODEL", help="names or folders (all models here)")
    kept = actions.add_parser("cache", parents=[shared], help="the models laid out for quick loading, or --clear them")
    models_cache.add_arguments(kept)
    pack = actions.add_parser("convert", parents=[shared], help="pack a published model in int8 into a new folder")
    pack.add_argument("source", type=given_path, metavar="SOURCE_DIR")
    pack.add_argument("out", type=given_path, metavar="OUT_DIR")


def run(args: argparse.Namespace) -> int:
    """Do the action; the exit code."""
    actions = {"list": _list, "import": _import, "verify": _verify, "convert": _convert, "cache": models_cache.run}
    return actions[args.action](args)


def _list(args: argparse.Namespace) -> int:
    here = local_models(args.folders.models)
    catalog = Catalog.load()
    rows = [_row(catalog.find(name), name, path) for name, path in here.items()]
    rows += [_row(model, model.name, None) for model in catalog if model.name not in here]
    if args.json:
        print(json_text(rows, indent=1))
        return 0
    for row in rows:
        sizes = f"{row['dim'] or '':>5} {row['max_tokens'] or '':>6}"
        facts = f"{','.join(row['languages']):<13} {row['licence'] or '':<19}"
        print(printable(f"{row['name']:<38} {sizes}  {facts} {_where(row)}".rstrip()))
    return 0


def _where(row: dict[str, Any]) -> str:
    if not row["computed"]:
        return "not computed yet"
    return "" if row["path"] is None else "here" if row["bundled"] else "imported"


def _row(known: CatalogModel | None, name: str, path: Path | None) -> dict[str, Any]:
    dim, max_tokens = (known.dim, known.max_tokens) if known else (None, None)
    if known is None and path is not None:
        with suppress(ModelError):  # a broken folder is listed too; `verify` says what is wrong with it
            folder = ModelFolder.open(path)
            dim, max_tokens = folder.dim, folder.max_tokens
    return {
        "name": name,
        "path": None if path is None else str(path),
        "bundled": path is not None and path.parent == BUNDLED_MODELS,
        "computed": known is None or known.model_type in FAMILIES,
        "hub_id": known.hub_id if known else None,
        "dim": dim,
        "max_tokens": max_tokens,
        "languages": list(known.languages) if known else [],
        "licence": known.licence if known else None,
    }


def _import(args: argparse.Namespace) -> int:
    with Progress("Importing", unit="MB") as bar:
        how = Import(copying=lambda d, n: bar.update(d // MEGABYTE, n // MEGABYTE))
        path = import_model(args.folder, args.folders.models, how)
    if args.json:
        print(json_text({"name": path.name, "path": str(path)}))
    else:
        print(f"{printable(path.name)} is now in {printable_path(str(path))}")
    return 0


def _verify(args: argparse.Namespace) -> int:
    places = args.folders.models
    wanted = [model_path(model, places) for model in args.models] or list(local_models(places).values())
    rows, broken = [], []
    for path in wanted:
        try:
            verdict = verify(path)
        except ModelError as error:
            broken.append(path.name)
            rows.append({"name": path.name, "path": str(path), "state": "broken", "message": str(error)})
            continue
        state = "genuine" if verdict.genuine else "intact"
        rows.append({"name": verdict.name, "path": str(path), "state": state, "sha256": verdict.sha256})
    if args.json:
        print(json_text(rows, indent=1))
    else:
        for row in rows:
            print(printable(f"{row['name']}: {row['state']}{'. ' + row['message'] if 'message' in row else ''}"))
    if broken:
        raise ModelError(f"{len(broken)} of {len(wanted)} models cannot be used: {', '.join(broken)}.")
    return 0


def _convert(args: argparse.Namespace) -> int:
    with Progress("Packing", unit="MB") as bar:
        convert(args.source, args.out, lambda d, n: bar.update(d // MEGABYTE, n // MEGABYTE))
    size = (args.out / "model.safetensors").stat().st_size
    if args.json:
        print(json_text({"path": str(args.out), "bytes": size}))
    else:
        print(f"{printable_path(str(args.out))}: model.safetensors of {size:,} bytes")
    return 0
