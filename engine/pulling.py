"""Fetch a model from the hub: settings first, refused where they cannot be computed, then the weights, then installed.

What arrives lies in `.pull` among the models, where it is no model, until all of it is there and checked; then it is
brought in as a folder would be. A pull that is broken off goes on where it was.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from engine.backbone import Backbone
from engine.catalog import HUB, Catalog, CatalogModel, HubName, model_path, pulled_model
from engine.errors import HubError, ModelError
from engine.folder import ModelFolder, is_stanford
from engine.modules import STATIC, read_listing, static_listing
from engine.published import MAX_VOCABULARY_BYTES, OTHER_WEIGHTS, read_json
from engine.record import Record
from engine.reranker_folder import RerankerFolder, is_reranker
from engine.weights.importing import OF_FOLDER, OF_TRANSFORMER, Import, free_name, import_model
from engine.weights.safetensors import SHARD_INDEX, SINGLE_FILE

if TYPE_CHECKING:
    from engine.hub import Hub, Repository

Receiving = Callable[[int, int, str], None]  # bytes here, bytes in all, the file that is coming

PLACE = ".pull"
SPARE_BYTES = 64 << 20  # that a disk must have beyond what is fetched


@dataclass(frozen=True)
class Pulled:
    """A model that is here now; fresh: fetched by this call, and not before."""

    path: Path
    hub_id: str
    revision: str | None
    fresh: bool


def pull(
    text: str, models_dir: Path, *, offline: bool = False, how: Import | None = None, receiving: Receiving | None = None
) -> Pulled:
    """Fetch the model that `text` names (`wanted_model`) to `models_dir`, unless it is there.

    Raises HubError (the network and the hub) and ModelError (what cannot be computed); nothing half is left then.
    """
    wanted = wanted_model(text, models_dir)
    known = _known(wanted)
    found = pulled_model(wanted, models_dir, bundled=not text.startswith(HUB))
    if found is not None:
        return Pulled(found, wanted.hub_id, Record.read(found).revision, fresh=False)
    name = _install_name(wanted, known)
    _refuse_taken(models_dir / free_name(name), wanted)
    if offline:
        raise HubError(f"Inkling is offline by its settings or by --offline, so {wanted.hub_id} is not fetched.")
    place = models_dir / PLACE
    hub = _hub()
    with hub.alone(place / f"{_flat(wanted.hub_id)}.lock"):
        repository = hub.repository(wanted.hub_id, wanted.revision)
        folder = place / _flat(wanted.hub_id) / repository.commit / name
        folder.mkdir(parents=True, exist_ok=True)
        try:
            _fetch_all(hub, repository, folder, known, receiving)
            record = Record(wanted.hub_id, repository.commit)
            path = import_model(folder, models_dir, replace(how or Import(), move=True, record=record))
        except ModelError as error:
            if not isinstance(error.__cause__, OSError):  # what the disk cannot hold may fit another time
                shutil.rmtree(place / _flat(wanted.hub_id), ignore_errors=True)
            raise
        shutil.rmtree(place / _flat(wanted.hub_id), ignore_errors=True)
    return Pulled(path, wanted.hub_id, repository.commit, fresh=True)


def wanted_model(text: str, models_dir: Path) -> HubName:
    """What to fetch: a name of the catalog, OWNER/NAME, or hf:OWNER/NAME, each with @REVISION or not.

    A known model is taken at the catalog's revision where none is given. What looks like a path on this machine is
    refused, unless hf: stands before it: a mistyped folder asks nothing of the network. Raises ModelError.
    """
    name = text.partition("@")[0]
    if not text.startswith(HUB):
        _refuse_paths(name)
        if "/" not in name and Catalog.load().find(name) is None:
            path = model_path(name, models_dir)  # says what there is, and what is spelled almost so
            raise ModelError(f"{path.name} is here already, in {path}; a model of the hub is named OWNER/NAME.")
    wanted = HubName.parse(text)
    known = _known(wanted) if text.startswith(HUB) else Catalog.load().find(wanted.hub_id)
    return wanted if known is None else HubName(known.hub_id, wanted.revision or known.revision)


def _known(wanted: HubName) -> CatalogModel | None:
    """The catalog's model of just this hub id: a name without an owner may be somebody else's there."""
    return Catalog.load().find(wanted.hub_id) if "/" in wanted.hub_id else None


def _refuse_paths(name: str) -> None:
    looks = name.startswith((".", "/", "~")) or name.endswith("/") or "\\" in name or ":" in name or name.count("/") > 1
    first = name.partition("/")[0]
    if looks or (name and Path(name).exists()) or ("/" in name and Path(first).is_dir()):
        raise ModelError(
            f"{name!r} looks like a place on this machine, so the hub is not asked; `inkling models import` brings a "
            f"folder in, and hf:OWNER/NAME means the hub's model."
        )


def _install_name(wanted: HubName, known: CatalogModel | None) -> str:
    """Under which name a model is kept. A known name stands for what the catalog knows of it, so others keep off it."""
    if known is not None:
        return known.name
    name = wanted.hub_id.rpartition("/")[2]
    return _flat(wanted.hub_id) if Catalog.load().find(name) is not None else name


def _flat(hub_id: str) -> str:
    return hub_id.replace("/", "--")


def _refuse_taken(target: Path, wanted: HubName) -> None:
    if target.exists():
        record = Record.read(target)
        origin = f", from {record.source} at {record.revision}" if record.source and record.revision else ""
        revision = f"@{wanted.revision}" if wanted.revision else ""
        raise ModelError(
            f"There is a model {target.name} here already{origin}; `inkling models remove {target.name}` makes room "
            f"for {wanted.hub_id}{revision}."
        )


def forget_part(text: str, models_dir: Path) -> int:
    """Delete what has arrived of a model that was never fetched to the end; returns the bytes. Raises ModelError."""
    part = models_dir / PLACE / _flat(wanted_model(text, models_dir).hub_id)
    size = sum(file.stat().st_size for file in part.rglob("*") if file.is_file())
    shutil.rmtree(part, ignore_errors=True)
    return size


def _hub() -> Hub:
    """The hub's client, which is loaded here and nowhere else; a package without a network has none."""
    try:
        from engine.hub import Hub
    except ImportError as error:
        raise HubError(
            "This program was built without a way to the network; fetch the model's folder on another machine and "
            "bring it in with `inkling models import`."
        ) from error
    return Hub()


def _fetch_all(
    hub: Hub, repository: Repository, folder: Path, known: CatalogModel | None, receiving: Receiving | None
) -> None:
    """Everything that loading needs, into `folder`; refused as early as it can be."""
    settings = [name for name in (*OF_FOLDER, *OF_TRANSFORMER) if name in repository.files]
    _fetch(hub, repository, folder, settings, receiving)
    _fetch(hub, repository, folder, _of_modules(repository, folder), receiving)
    _check_settings(folder)
    weights = _weights(repository, folder)
    _check_known(repository, weights, known)
    missing = [name for name in weights if not (folder / name).is_file()]
    needed = sum(repository.files[name].size for name in missing) + SPARE_BYTES
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise HubError(
            f"{repository.hub_id} needs {needed / 1e9:,.1f} GB on the disk of {folder.parents[3]}, which has "
            f"{free / 1e9:,.1f} GB left."
        )
    _fetch(hub, repository, folder, weights, receiving)


def _fetch(
    hub: Hub, repository: Repository, folder: Path, names: Sequence[str], receiving: Receiving | None
) -> None:
    total, before = sum(repository.files[name].size for name in names), 0
    for name in names:
        done = before

        def received(here: int, name: str = name, done: int = done) -> None:
            if receiving is not None:
                receiving(done + here, total, name)

        if not (folder / name).is_file():
            hub.fetch(repository, name, folder / name, received)
        before += repository.files[name].size


def _of_modules(repository: Repository, folder: Path) -> list[str]:
    """The settings in the folders that modules.json lists."""
    if not (folder / "modules.json").is_file() and "config.json" not in repository.files:
        raise ModelError(
            f"{repository.hub_id} has no config.json and no modules.json, so it is no model that this program reads."
        )
    found = []
    for entry in read_listing(folder) or ():
        found += [_inside(entry.path, name) for name in (*OF_FOLDER, *OF_TRANSFORMER)]
    return [name for name in dict.fromkeys(found) if name in repository.files]


def _check_settings(folder: Path) -> None:
    """Refuse what cannot be computed, as far as that shows without the weights."""
    if is_reranker(folder):
        RerankerFolder.open(folder).tokenizer()
    elif is_stanford(folder):
        Backbone.open(folder).tokenizer()
    elif not _is_static(folder):  # whose sizes stand in the weights
        ModelFolder.open(folder).tokenizer()


def _is_static(folder: Path) -> bool:
    entries = read_listing(folder) or static_listing(folder) or []
    return [entry.kind for entry in entries[:1]] == [STATIC]


def _weights(repository: Repository, folder: Path) -> list[str]:
    """The safetensors files of every module; ModelError where a module has none."""
    entries = read_listing(folder) or []
    first = entries[0].path if entries else ""
    places = [first, *(entry.path for entry in entries if entry.kind == "Dense")]
    return [name for place in places for name in _weights_in(repository, folder, place)]


def _weights_in(repository: Repository, folder: Path, place: str) -> Iterable[str]:
    single = _inside(place, SINGLE_FILE)
    if single in repository.files:
        return [single]
    index = folder / place / SHARD_INDEX
    if index.is_file():
        return _shards(repository, index, place)
    kinds = {name: OTHER_WEIGHTS.get(PurePosixPath(name).suffix) for name in sorted(repository.files)}
    other = next((f", but {name}, which is {kind}" for name, kind in kinds.items() if kind), "")
    raise ModelError(
        f"{repository.hub_id} has no {single}{other}; this program reads safetensors files only, so look for a model "
        f"that is published in them."
    )


def _inside(place: str, name: str) -> str:
    """A file's name in the repository, where the folder may be written as "", "." or with a slash at its end."""
    return (PurePosixPath(place) / name).as_posix()


def _shards(repository: Repository, index: Path, place: str) -> list[str]:
    placed = read_json(index, MAX_VOCABULARY_BYTES).get("weight_map")
    if not isinstance(placed, dict):
        raise ModelError(f"{index}: key 'weight_map' does not list the tensors.")
    shards = sorted({str(shard) for shard in placed.values()})
    for shard in shards:
        if "/" in shard or "\\" in shard or _inside(place, shard) not in repository.files:
            raise ModelError(f"{index}: key 'weight_map' names {shard!r}, which {repository.hub_id} does not have.")
    return [_inside(place, shard) for shard in shards]


def _check_known(repository: Repository, weights: Sequence[str], known: CatalogModel | None) -> None:
    """Refuse, before anything large is fetched, weights that are not those that the catalog expects of this name."""
    if known is None or known.sha256 is None:
        return
    listed = [repository.files[name].sha256 for name in weights]
    if known.sha256 not in listed:
        raise ModelError(
            f"{repository.hub_id}@{repository.commit} does not have the weights that {known.name} is known by (SHA-256 "
            f"{known.sha256}); leave the revision out to get those."
        )
