"""Model folders on this machine: check one through and through, and bring one in."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil

from engine import fidelity
from engine.backbone import TRANSFORMER_CONFIGS
from engine.catalog import Catalog, CatalogModel, local_models
from engine.errors import EngineError, ModelError
from engine.folder import ModelFolder
from engine.models import static
from engine.prompts import read_prompts
from engine.record import LEAST_LIKENESS, Record
from engine.reranker_folder import RerankerFolder, open_folder
from engine.vocabularies import SENTENCEPIECE_FILES
from engine.weights import packed
from engine.weights.convert import LICENCE_FILES, convert, identify
from engine.weights.safetensors import SHARD_INDEX, Weights
from engine.weights.sources import find_sources
from engine.weights.staging import new_folder, sweep

COPY_CHUNK_BYTES = 1 << 22
_NAME = re.compile(r"[^\W_](?:[\w.-]{0,98}\w)?")
OF_FOLDER = (
    "modules.json", "config_sentence_transformers.json", "artifact.metadata", "README.md", *LICENCE_FILES
)  # fmt: skip
OF_TRANSFORMER = (
    "config.json", "tokenizer.json", "tokenizer_config.json", SHARD_INDEX, *TRANSFORMER_CONFIGS,
    *("special_tokens_map.json", "added_tokens.json", "vocab.txt", "vocab.json", "merges.txt", *SENTENCEPIECE_FILES),
)  # fmt: skip


@dataclass(frozen=True)
class Verdict:
    """What a check found: an intact model, `genuine` where its bytes are those that the catalog expects."""

    name: str
    path: Path
    packed: bool
    genuine: bool
    sha256: str
    size_bytes: int


@dataclass(frozen=True)
class Import:
    """How to bring a model in.

    pack: keep only int8 weights. measure: compare int8 with fp32. move: take the source's files instead of copying
    them; the source is to be thrown away. name: what to call it, None for its own name.
    record: what is known of where it comes from.
    copying: called with bytes done and in all. measuring: called with texts done and in all.
    """

    pack: bool = False
    measure: bool = True
    move: bool = False
    name: str | None = None
    record: Record = field(default_factory=Record)
    copying: packed.Progress | None = None
    measuring: fidelity.Progress | None = None


def verify(path: Path) -> Verdict:
    """Read everything that loading the model would need, and compare the weights with the catalog's hash.

    Raises ModelError naming what is broken; a hash that the catalog does not know is no fault.
    """
    folder = open_folder(path)
    family = folder.backbone.family
    folder.tokenizer()
    with folder.weights() as weights:
        is_packed = packed.is_packed(weights)
        parameters = folder.parameters()
        if is_packed:
            packed.load(parameters, weights, "int8", family.prefixes)
            genuine = _is_genuine_packed(weights)
        else:
            for source in find_sources(parameters, weights, family.prefixes):
                source.check()
            known = identify(folder, weights)
            genuine = known is not None and known.sha256 == weights.sha256
        size = sum(file.stat().st_size for file in weights.paths)
        return Verdict(folder.name, path, is_packed, genuine, weights.fingerprint, size)


def _is_genuine_packed(weights: Weights) -> bool:
    """Whether packed weights are those that ship with the program; ModelError where they claim to be and are not."""
    known = Catalog.load().find_sha256(weights.metadata.get("source_sha256", ""))
    if known is None or known.packed_sha256 is None:
        return False
    if known.packed_sha256 != weights.fingerprint:
        raise ModelError(
            f"{weights.paths[0]} says that it is {known.name} packed, but its SHA-256 is {weights.fingerprint}, "
            f"not {known.packed_sha256}: the file is damaged or was changed."
        )
    return True


def import_model(source: Path, models_dir: Path, how: Import | None = None) -> Path:
    """Bring a model's folder, checked and measured first, to `models_dir`; returns where it is now.

    A model that ships with the program keeps its name, so a second one of that name comes in as NAME-published.
    Raises ModelError where the model is broken or the name is taken, EngineError where int8 is not to be had of it.
    """
    how = how or Import()
    sweep(models_dir)
    verify(source)
    folder = open_folder(source)
    with folder.weights() as weights:
        is_packed = packed.is_packed(weights)
        known = None if is_packed else identify(folder, weights)
        files = [*_present(folder), *weights.paths]
    target = models_dir / (_name(folder, known) if how.name is None else _given_name(how.name, folder, known))
    if target.exists():
        raise ModelError(
            f"{target} exists already; `inkling models remove {target.name}` makes room for another, and `inkling "
            f"models import --name` brings one in under another name."
        )
    record = _record(source, known, how)
    if how.pack and not is_packed:
        _refuse_bad_int8(target.name, record)
        convert(source, target, how.copying, record=record)
        return target
    with new_folder(target) as staging:
        _transfer(files, folder.path, staging, how)
        record.write(staging)
    return target


def free_name(name: str) -> str:
    """The name under which a model comes in: its own, unless the bundled one has that."""
    return f"{name}-published" if name in local_models() else name


def _name(folder: ModelFolder | RerankerFolder, known: CatalogModel | None) -> str:
    name = free_name(known.name if known else folder.name)
    _check_pooled(folder, name)
    return name


def _given_name(name: str, folder: ModelFolder | RerankerFolder, known: CatalogModel | None) -> str:
    """A name that was asked for; ModelError where it is none, is another's, or hides what is known of this model."""
    if not _NAME.fullmatch(name):
        raise ModelError(f"{name!r} is no name for a model: up to 100 letters, digits, and any of '._-' between them.")
    catalog = Catalog.load()
    named, known = catalog.find(name), known or catalog.find(folder.name)
    if named is not None and (named != known or free_name(named.name) != named.name):
        raise ModelError(f"{name!r} is the name of another model, known or shipped with the program; give another one.")
    if named is None and known is not None and isinstance(folder, ModelFolder):
        own = read_prompts(folder.path, None), ()
        if (read_prompts(folder.path, known), known.matryoshka) != own:
            raise ModelError(
                f"{folder.path} does not say by itself with which prefixes and widths {known.name} is used; that is "
                f"known of that name, so it must keep it."
            )
    _check_pooled(folder, name)
    return name


def _check_pooled(folder: ModelFolder | RerankerFolder, name: str) -> None:
    """Refuse a name under which nothing would say how tokens become one vector."""
    needs_name = isinstance(folder, ModelFolder) and folder.late is None and folder.model_type != static.MODEL_TYPE
    if needs_name and Catalog.load().find(name) is None and not (folder.path / "modules.json").is_file():
        raise ModelError(
            f"{folder.path / 'modules.json'} is missing; under the name {name} nothing would say how to pool."
        )


def _record(source: Path, known: CatalogModel | None, how: Import) -> Record:
    """What to note: where the model comes from, as far as that is known, and what was measured of it."""
    earlier = Record.read(source)
    cached = _in_hub_cache(source)
    origin = how.record.source or earlier.source or cached.source or (known.hub_id if known else None)
    record = replace(how.record, source=origin, revision=how.record.revision or earlier.revision or cached.revision)
    if how.measure and fidelity.fp32_bytes(source) < psutil.virtual_memory().available:
        return replace(record, fidelity=fidelity.measure(source, progress=how.measuring) or earlier.fidelity)
    return replace(record, fidelity=earlier.fidelity)


def _in_hub_cache(source: Path) -> Record:
    """Where a folder in the cache of the hub's own tools comes from: models--OWNER--NAME/snapshots/COMMIT."""
    path = source.absolute()
    prefix, _, name = path.parent.parent.name.partition("--")
    if path.parent.name != "snapshots" or prefix != "models" or not name:
        return Record()
    return Record(name.replace("--", "/", 1), path.name)


def _refuse_bad_int8(name: str, record: Record) -> None:
    if record.fidelity is not None and not record.fidelity.int8_suffices:
        raise EngineError(
            f"Int8 changes {name} too much to keep nothing else: the worst likeness is {record.fidelity.worst:.4f}, "
            f"and {LEAST_LIKENESS} is asked for. Bring it in without --pack."
        )


def _transfer(files: list[Path], root: Path, staging: Path, how: Import) -> None:
    """Copy the files, or move them, to the same places below `staging`."""
    total = sum(file.stat().st_size for file in files)
    done = 0
    for file in files:
        target = staging / file.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        if how.move:
            done += file.stat().st_size
            _take(file, target)
        else:
            with file.open("rb") as read, target.open("wb") as write:
                while chunk := read.read(COPY_CHUNK_BYTES):
                    write.write(chunk)
                    done += len(chunk)
                    if how.copying is not None:
                        how.copying(done, total)
    if how.move and how.copying is not None:
        how.copying(total, total)


def _take(file: Path, target: Path) -> None:
    """Put a file into a second place without copying it; where a disk has no links, it leaves the first one."""
    try:
        os.link(file, target)
    except OSError:
        os.replace(file, target)


def _present(folder: ModelFolder | RerankerFolder) -> list[Path]:
    """The files beside the weights that loading reads, and what states the licence."""
    wanted = [folder.path / name for name in OF_FOLDER]
    wanted += [folder.transformer / name for name in OF_TRANSFORMER]
    wanted += sorted(folder.path.glob("*/config.json"))  # those of the modules, whatever their folders are called
    return [file for file in dict.fromkeys(wanted) if file.is_file()]
