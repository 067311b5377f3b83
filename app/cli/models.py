"""Embedding models and rerankers: list the known ones, show one, fetch or bring one in, check, remove or pack one."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from app import settings
from app.cli import model_facts, model_list, model_sources, models_cache
from app.cli.arguments import given_path, given_text
from app.progress import Progress
from app.terminal import json_text, printable, printable_path
from engine.catalog import local_models, model_path
from engine.errors import ModelError
from engine.weights import opening
from engine.weights.convert import convert
from engine.weights.importing import verify
from engine.weights.staging import SUFFIX

MEGABYTE = 1_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The actions; --json may stand before or after the action."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")
    place: dict[str, Any] = {"type": given_path, "metavar": "D", "help": "keep everything in D"}
    shared.add_argument("--data-dir", default=argparse.SUPPRESS, **place)
    actions.add_parser("list", parents=[shared], help="the models that are here, and the known ones that are not")
    model_facts.add_show(actions.add_parser("show", parents=[shared], help="what is to be known of a model"))
    model_sources.add_pull(
        actions.add_parser("pull", parents=[shared], help="fetch a model from the hub; nothing else uses the network")
    )
    model_sources.add_import(
        actions.add_parser("import", parents=[shared], help="bring in a model's folder, zip file or wheel")
    )
    some = actions.add_parser("verify", parents=[shared], help="read models through and compare their hashes")
    some.add_argument("models", nargs="*", type=given_text, metavar="MODEL", help="names or folders (all models here)")
    kept = actions.add_parser("cache", parents=[shared], help="the models laid out for quick loading, or --clear them")
    models_cache.add_arguments(kept)
    gone = actions.add_parser("remove", parents=[shared], help="delete a model that was fetched or brought in")
    gone.add_argument("model", type=given_text, metavar="MODEL", help="its name")
    gone.add_argument("--yes", action="store_true", help="do not ask")
    pack = actions.add_parser("convert", parents=[shared], help="pack a published model in int8 into a new folder")
    pack.add_argument("source", type=given_path, metavar="SOURCE_DIR")
    pack.add_argument("out", type=given_path, metavar="OUT_DIR")


def run(args: argparse.Namespace) -> int:
    """Do the action; the exit code."""
    actions = {
        "list": model_list.show_all, "show": model_facts.show, "pull": model_sources.pull_model,
        "import": model_sources.bring_in, "verify": _verify, "remove": _remove, "convert": _convert,
        "cache": models_cache.run,
    }  # fmt: skip
    return actions[args.action](args)


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


def _remove(args: argparse.Namespace) -> int:
    path = local_models(args.folders.models).get(args.model)
    if path is None and (freed := model_sources.forget_part(args)):
        print(json_text({"name": args.model, "bytes": freed}) if args.json else f"{freed:,} bytes are free again.")
        return 0
    path = path or model_path(args.model, args.folders.models)
    if path.parent != args.folders.models:
        raise ModelError(f"{path} is not among the models that were fetched or brought in, so it stays.")
    if _in_use(args) == path:
        raise ModelError(f"{path.name} is the model that the settings name; choose another one there first.")
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    if not args.yes and not _agreed(f"Delete {path.name} ({size / MEGABYTE:,.0f} MB)?"):
        raise ModelError(f"{path.name} stays; --yes deletes it without a question.")
    # Out of sight in one step: a process that is killed in between leaves no half model.
    gone = path.with_name(f".{path.name}.{os.getpid()}{SUFFIX}")
    path.rename(gone)
    shutil.rmtree(gone)
    opening.forget(args.folders.disk_weights, path)
    print(json_text({"name": path.name, "bytes": size}) if args.json else f"{printable(path.name)} is deleted.")
    return 0


def _in_use(args: argparse.Namespace) -> Path | None:
    """The folder of the model that the settings name, None where that is not here."""
    try:
        return model_path(settings.load(args.folders.settings).model, args.folders.models)
    except ModelError:
        return None


def _agreed(question: str) -> bool:
    """Ask on the terminal; without one nobody can agree."""
    if not sys.stdin.isatty():
        return False
    print(printable(question) + " [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().casefold() in ("y", "yes")


def _convert(args: argparse.Namespace) -> int:
    with Progress("Packing", unit="MB") as bar:
        convert(args.source, args.out, lambda d, n: bar.update(d // MEGABYTE, n // MEGABYTE))
    size = (args.out / "model.safetensors").stat().st_size
    if args.json:
        print(json_text({"path": str(args.out), "bytes": size}))
    else:
        print(f"{printable_path(str(args.out))}: model.safetensors of {size:,} bytes")
    return 0
