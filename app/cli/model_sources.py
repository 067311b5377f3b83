"""`inkling models pull` and `import`: where models come from."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from app import settings
from app.cli.arguments import given_text
from app.cli.model_facts import fidelity_text
from app.progress import Steps
from app.terminal import json_text, printable, printable_path
from engine.errors import ModelError
from engine.record import Record
from engine.weights import archive
from engine.weights.importing import Import, import_model

MEGABYTE = 1_000_000


def add_pull(parser: argparse.ArgumentParser) -> None:
    """Arguments of `inkling models pull`."""
    parser.add_argument(
        "model", type=given_text, metavar="ID", help="a name that `list` shows, OWNER/NAME or hf:OWNER/NAME; @REVISION"
    )
    parser.add_argument("--offline", action="store_true", help="only say whether the model is here")
    _add_common(parser)


def add_import(parser: argparse.ArgumentParser) -> None:
    """Arguments of `inkling models import`."""
    parser.add_argument(
        "source", type=given_text, metavar="PATH", help="a folder, a zip file, a wheel, or FILE::FOLDER inside it"
    )
    parser.add_argument("--name", type=given_text, metavar="N", help="what to call it here (as it is published)")
    _add_common(parser)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pack", action="store_true", help="keep int8 weights only: a quarter of the size")
    parser.add_argument("--no-measure", action="store_true", help="do not compare int8 with fp32")


def pull_model(args: argparse.Namespace) -> int:
    """Fetch a model from the hub, unless it is here."""
    # Imported here because this, and nothing else of the program, leads to the network.
    from engine.pulling import pull

    offline = args.offline or settings.load(args.folders.settings).offline
    models_dir = args.folders.create().models
    with _Steps() as steps:
        pulled = pull(args.model, models_dir, offline=offline, how=steps.how(args), receiving=steps.receiving)
    found: dict[str, Any] = {"hub_id": pulled.hub_id, "revision": pulled.revision, "fetched": pulled.fresh}
    _tell(args, pulled.path, found, "is now in" if pulled.fresh else "is here already, in")
    return 0


def forget_part(args: argparse.Namespace) -> int:
    """Delete what has arrived of a model whose pull was broken off; the bytes, 0 where there is nothing."""
    from engine import pulling

    try:
        return pulling.forget_part(args.model, args.folders.models)
    except ModelError:
        return 0  # no name of the hub's


def bring_in(args: argparse.Namespace) -> int:
    """Bring in a model from a folder or an archive."""
    path, inner = archive.split(args.source)
    models_dir = args.folders.models
    with _Steps() as steps:
        if inner is None and not archive.is_archive(path):
            target = import_model(path, models_dir, steps.how(args, name=args.name))
        else:
            with archive.unpacked(path, inner, models_dir, steps.unpacking) as folder:
                target = import_model(folder, models_dir, steps.how(args, move=True, name=args.name))
    _tell(args, target, {}, "is now in")
    return 0


def _tell(args: argparse.Namespace, path: Path, found: dict[str, Any], where: str) -> None:
    fidelity = Record.read(path).fidelity
    if args.json:
        measured = None if fidelity is None else asdict(fidelity)
        print(json_text({"name": path.name, "path": str(path), **found, "int8": measured}))
        return
    print(f"{printable(path.name)} {where} {printable_path(str(path))}")
    if fidelity is not None:
        print(fidelity_text(fidelity))
    elif not args.no_measure and found.get("fetched", True):
        print("int8 was not compared with fp32: fp32 needs more memory than is free, or there are int8 weights only")


class _Steps(Steps):
    """The steps of bringing a model in."""

    def how(self, args: argparse.Namespace, *, move: bool = False, name: str | None = None) -> Import:
        """What the options ask for."""
        return Import(
            pack=args.pack,
            measure=not args.no_measure,
            move=move,
            name=name,
            copying=lambda done, total: self._bytes("Packing" if args.pack else "Installing", done, total),
            measuring=lambda done, total: self.update("Measuring int8", "texts", done, total),
        )

    def receiving(self, done: int, total: int, name: str) -> None:
        self._bytes("Fetching", done, total, name)

    def unpacking(self, done: int, total: int) -> None:
        self._bytes("Unpacking", done, total)

    def _bytes(self, label: str, done: int, total: int, note: str = "") -> None:
        self.update(label, "MB", done // MEGABYTE, total // MEGABYTE, note)
