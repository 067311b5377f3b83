"""Model folders on this machine: check one through and through, and bring one in."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engine.backbone import TRANSFORMER_CONFIGS
from engine.catalog import Catalog, local_models
from engine.errors import ModelError
from engine.folder import ModelFolder
from engine.models import static
from engine.vocabularies import SENTENCEPIECE_FILES
from engine.weights import packed
from engine.weights.convert import LICENCE_FILES, identify
from engine.weights.safetensors import SHARD_INDEX, Weights
from engine.weights.staging import new_folder

COPY_CHUNK_BYTES = 1 << 22
_OF_FOLDER = (
    "modules.json", "config_sentence_transformers.json", "artifact.metadata", "README.md", *LICENCE_FILES
)  # fmt: skip
_OF_TRANSFORMER = (
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


def verify(path: Path) -> Verdict:
    """Read everything that loading the model would need, and compare the weights with the catalog's hash.

    Raises ModelError naming what is broken; a hash that the catalog does not know is no fault.
    """
    folder = ModelFolder.open(path)
    family = folder.backbone.family
    folder.tokenizer()
    with folder.weights() as weights:
        is_packed = packed.is_packed(weights)
        parameters = folder.parameters()
        if is_packed:
            packed.load(parameters, weights, "int8", family.prefixes)
            genuine = _is_genuine_packed(weights)
        else:
            for name in weights.names:
                if weights.dtype(name) in ("F32", "F16", "BF16", "F64") and not np.isfinite(weights.f32(name)).all():
                    raise ModelError(f"{weights.paths[0]}: tensor {name!r} holds numbers that are not finite.")
            packed.load(parameters, weights, "fp32", family.prefixes)
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


def import_model(source: Path, models_dir: Path, progress: packed.Progress | None = None) -> Path:
    """Copy a model folder, checked first, to `models_dir` under its own name; returns where it is now.

    A model that ships with the program keeps its name, so a second one of that name comes in as NAME-published.
    `progress` is called with bytes copied and in all. Raises ModelError where the model is broken or the name is taken.
    """
    verify(source)
    folder = ModelFolder.open(source)
    with folder.weights() as weights:
        known = None if packed.is_packed(weights) else identify(folder, weights)
        files = [*_present(folder), *weights.paths]
    name = known.name if known else folder.name
    if name in local_models():
        name += "-published"
    by_name = folder.late is None and folder.model_type != static.MODEL_TYPE
    if by_name and Catalog.load().find(name) is None and not (folder.path / "modules.json").is_file():
        raise ModelError(
            f"{folder.path / 'modules.json'} is missing; under the name {name} nothing would say how to pool."
        )
    total = sum(file.stat().st_size for file in files)
    done = 0
    with new_folder(models_dir / name) as staging:
        for file in files:
            target = staging / file.relative_to(folder.path)
            target.parent.mkdir(parents=True, exist_ok=True)
            with file.open("rb") as read, target.open("wb") as write:
                while chunk := read.read(COPY_CHUNK_BYTES):
                    write.write(chunk)
                    done += len(chunk)
                    if progress is not None:
                        progress(done, total)
    return models_dir / name


def _present(folder: ModelFolder) -> list[Path]:
    """The files beside the weights that loading reads, and what states the licence."""
    wanted = [folder.path / name for name in _OF_FOLDER]
    wanted += [folder.transformer / name for name in _OF_TRANSFORMER]
    wanted += sorted(folder.path.glob("*/config.json"))  # those of the modules, whatever their folders are called
    return [file for file in dict.fromkeys(wanted) if file.is_file()]
