"""The models we know by name, and where a name leads on this machine. Data: resources/models/catalog.toml."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

import resources
from engine.errors import ModelError
from engine.published import other_weights
from engine.record import Record

BUNDLED_MODELS = resources.folder() / "models"
CATALOG_FILE = BUNDLED_MODELS / "catalog.toml"
DEFAULT_MODEL = resources.default_model()

HUB = "hf:"  # begins a name that means the hub's model, whatever else is called so
_HUB_ID = re.compile(r"(?:[A-Za-z0-9][\w.-]*/)?[A-Za-z0-9][\w.-]*", re.ASCII)


@dataclass(frozen=True)
class CatalogModel:
    """What we know of one published model.

    max_tokens counts special tokens. sha256 is that of the published model.safetensors, packed_sha256 that of what
    `convert` makes of it.
    """

    name: str
    hub_id: str
    model_type: str
    pooling: str
    normalize: bool
    dim: int
    max_tokens: int
    languages: tuple[str, ...]
    licence: str
    query_prefix: str = ""
    document_prefix: str = ""
    revision: str | None = None
    sha256: str | None = None
    packed_sha256: str | None = None
    matryoshka: tuple[int, ...] = ()


@dataclass(frozen=True)
class Catalog:
    """All known models, in the file's order."""

    models: tuple[CatalogModel, ...]

    @classmethod
    def load(cls) -> Catalog:
        """The catalog that ships with the program."""
        return _load(CATALOG_FILE)

    def find(self, name: str) -> CatalogModel | None:
        """The model of this name or hub id, letter case apart; None where it is not known."""
        wanted = name.rpartition("/")[2].casefold()
        owner = name.rpartition("/")[0].casefold()
        for model in self.models:
            if model.name.casefold() == wanted and owner in ("", model.hub_id.rpartition("/")[0].casefold()):
                return model
        return None

    def find_sha256(self, digest: str) -> CatalogModel | None:
        """The model whose published model.safetensors has this SHA-256 in hex; None where none is known to."""
        return next((model for model in self.models if model.sha256 == digest), None)

    def __iter__(self) -> Iterator[CatalogModel]:
        return iter(self.models)


@cache
def _load(path: Path) -> Catalog:
    tables = tomllib.loads(path.read_text(encoding="utf-8"))["models"]
    known = {field.name for field in fields(CatalogModel)}
    models = []
    for name, table in tables.items():
        unknown = set(table) - known
        if unknown:
            raise ModelError(f"{path}: model {name!r} has the unknown key {sorted(unknown)[0]!r}.")
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in table.items()
        }
        models.append(CatalogModel(name=name, **values))
    return Catalog(tuple(models))


@dataclass(frozen=True)
class HubName:
    """A model as the hub calls it: OWNER/NAME (old ones have no owner), and a branch, tag or commit."""

    hub_id: str
    revision: str | None = None

    @classmethod
    def parse(cls, text: str) -> HubName:
        """`OWNER/NAME[@REVISION]`, with hf: in front or not. Raises ModelError."""
        hub_id, _, revision = text.removeprefix(HUB).partition("@")
        if not _HUB_ID.fullmatch(hub_id) or ("@" in text and not revision.strip()):
            raise ModelError(f"{text!r} is no name of a model on the hub, which is OWNER/NAME or OWNER/NAME@REVISION.")
        return cls(hub_id, revision or None)


def is_model_folder(path: Path) -> bool:
    """Whether a folder looks like a model: it has a config.json, or modules.json which says where that is."""
    return (path / "config.json").is_file() or (path / "modules.json").is_file()


def no_model(path: Path) -> str:
    """Why a path that is no model folder is none, and which one may have been meant."""
    if not path.exists():
        return f"{path} is not there, so it is no model folder."
    if not path.is_dir():
        return f"{path} is a file and no folder, so it is no model folder.{_meant([path.parent])}"
    others = other_weights(path)
    inner = sorted(folder for pattern in ("*", "snapshots/*") for folder in path.glob(pattern))
    hint = others or _meant(inner)
    return f"{path} is a folder, but it holds no config.json and no modules.json, so it is no model.{hint}"


def _meant(folders: Sequence[Path]) -> str:
    """A question about the first of these that is a whole model, not one module of it; "" where none is."""
    for folder in folders:
        tokenizer = any((folder / name).is_file() for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt"))
        if (folder / "modules.json").is_file() or (tokenizer and (folder / "config.json").is_file()):
            return f" Did you mean {folder}?"
    return ""


def local_models(models_dir: Path | None = None) -> dict[str, Path]:
    """The models on this machine by name: those that ship with the program, then those imported into `models_dir`."""
    found: dict[str, Path] = {}
    for parent in (BUNDLED_MODELS, models_dir):
        if parent is None or not parent.is_dir():
            continue
        for path in sorted(parent.iterdir()):
            # A name that begins with a dot is an import that did not finish.
            if not path.name.startswith(".") and path.name not in found and is_model_folder(path):
                found[path.name] = path
    return found


def model_path(model: str | Path, models_dir: Path | None = None) -> Path:
    """The folder that a name or a path stands for.

    A path to a model folder is itself; a name is looked up among the bundled models, then in `models_dir`.
    OWNER/NAME may stand for a model that came from there; hf:OWNER/NAME, with @REVISION or not, means nothing else.
    Raises ModelError, listing what there is, where none is found. Never asks the network.
    """
    if not isinstance(model, str | os.PathLike):
        raise ModelError(f"The model is given as {model!r}, which is neither a name nor the path of a folder.")
    text = os.fspath(model)
    if text.startswith(HUB):
        return _pulled(text, models_dir)
    path = Path(os.path.expanduser(text))
    if text and path.is_dir() and is_model_folder(path):
        return path
    here = local_models(models_dir)
    wanted = text.rpartition("/")[2].casefold()
    known = Catalog.load().find(text)
    for name, folder in here.items():
        if name.casefold() == text.casefold() or (known is not None and name.casefold() == wanted):
            return folder
    if "/" in text and _HUB_ID.fullmatch(text):
        for folder in here.values():
            if _is_from(folder, HubName(text)):
                return folder
    raise ModelError(_not_found(text, path, list(here), known))


def pulled_model(wanted: HubName, models_dir: Path | None, *, bundled: bool = True) -> Path | None:
    """The folder of a model from the hub that is here, at the wanted revision where one is named; else None.

    One that was fetched goes before the bundled one, which is left out unless `bundled`.
    """
    found = [folder for folder in local_models(models_dir).values() if _is_from(folder, wanted)]
    fetched = [folder for folder in found if folder.parent != BUNDLED_MODELS]
    return next(iter([*fetched, *(found if bundled else [])]), None)


def _pulled(text: str, models_dir: Path | None) -> Path:
    wanted = HubName.parse(text)
    found = pulled_model(wanted, models_dir)
    if found is None:
        revision = f"@{wanted.revision}" if wanted.revision else ""
        raise ModelError(
            f"{wanted.hub_id}{revision} is not on this machine; `inkling models pull {HUB}{wanted.hub_id}{revision}` "
            f"fetches it."
        )
    return found


def _is_from(folder: Path, wanted: HubName) -> bool:
    """Whether a model came from the hub's model of this name; a commit may be given by its first seven digits or more.

    Names of branches and tags are not kept, because what they stand for changes.
    """
    record = Record.read(folder)
    if record.source is None or record.source.casefold() != wanted.hub_id.casefold():
        return False
    commit, revision = record.revision or "", (wanted.revision or "").casefold()
    return not revision or (len(revision) >= 7 and commit.startswith(revision))


def _not_found(text: str, path: Path, here: list[str], known: CatalogModel | None) -> str:
    available = f"Models here: {', '.join(here) or 'none'}."
    if text and path.exists():
        return f"{no_model(path)} {available}"
    if known is not None:
        return (
            f"{known.name} is known but not on this machine: `inkling models pull {known.name}` fetches it, and "
            f"`inkling models import FOLDER` brings a folder of {known.hub_id} in. {available}"
        )
    names = [*here, *(model.name for model in Catalog.load())]
    spelled = {name.casefold(): name for name in names}
    close = difflib.get_close_matches(text.casefold(), spelled, n=1)
    hint = f" Did you mean {spelled[close[0]]}?" if close else ""
    return f"There is no model folder and no known model called {text!r}.{hint} {available}"
