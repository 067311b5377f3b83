"""A model's parameters, from wherever they are had best: the packed file, disk weights, or laid out in memory."""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import re
import shutil
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from engine.models.parameters import Parameter
from engine.weights import disk, packed
from engine.weights.loaded import Loaded
from engine.weights.safetensors import Weights
from engine.weights.sources import Source, find_sources
from engine.weights.stored import Precision, StoredPrecision, computed, stored_precision

log = logging.getLogger(__name__)

LOCK_NAME = "weights.lock"
# A process that lays out the weights of a large model keeps others waiting so long at most.
LONGEST_WAIT_S = 1800.0
SPARE_BYTES = 512 << 20  # what is left free on the disk


def open_parameters(
    parameters: Sequence[Parameter],
    weights: Weights,
    precision: Precision,
    prefixes: Sequence[str],
    *,
    name: str,
    disk_weights: Path | None,
) -> dict[str, Loaded]:
    """Every parameter by its plan name.

    disk_weights: the folder for files of disk weights; None lays published weights out in memory. name: the model's.
    Where the folder cannot be used, the weights are in memory too, and the log says so.
    Raises ModelError where a tensor is missing, has the wrong shape, or cannot be had in this precision.
    """
    stored = stored_precision(precision)
    return computed(_open_stored(parameters, weights, stored, prefixes, name, disk_weights), precision)


def _open_stored(
    parameters: Sequence[Parameter],
    weights: Weights,
    precision: StoredPrecision,
    prefixes: Sequence[str],
    name: str,
    disk_weights: Path | None,
) -> dict[str, Loaded]:
    if disk_weights is None or packed.is_packed(weights):
        return packed.load(parameters, weights, precision, prefixes)
    sources = find_sources(parameters, weights, prefixes)
    file = disk_weights / file_name(name, weights, precision)
    try:
        return disk.read(file, sources, weights, precision)
    except disk.Unusable as reason:
        log.info("The disk weights %s are made anew: %s.", file, reason)
    try:
        return _make(file, sources, weights, precision, name)
    except (OSError, disk.Unusable) as error:
        why = (error.strerror or error) if isinstance(error, OSError) else error
        log.warning("Disk weights of %s cannot be kept in %s (%s); they are in memory instead.", name, file.parent, why)
    return packed.load(parameters, weights, precision, prefixes)


def file_name(name: str, weights: Weights, precision: StoredPrecision) -> str:
    """What the file of a model is called: one for each place that a model lies in, and each precision."""
    place = hashlib.sha256(os.fsencode(os.path.abspath(weights.paths[0]))).hexdigest()[:16]
    return f"{re.sub(r'[^A-Za-z0-9._-]', '_', name)[:80].lstrip('.')}-{precision}-{place}{disk.SUFFIX}"


def clear(folder: Path) -> int:
    """Remove all disk weights; the bytes that are free again. Programs that use them go on with what they mapped.

    Raises OSError where a file cannot be removed.
    """
    if not folder.is_dir():
        return 0
    freed = 0
    with _lock(folder):
        disk.remove_partial(folder)
        for file in disk.files(folder):
            file.path.unlink(missing_ok=True)
            freed += file.bytes
    return freed


def forget(folder: Path, model: Path) -> None:
    """Remove the disk weights of a model folder that is gone. Raises OSError where a file cannot be removed."""
    for file in disk.files(folder):
        if file.source and Path(file.source).is_relative_to(model):
            file.path.unlink(missing_ok=True)


def _make(
    file: Path, sources: Sequence[Source], weights: Weights, precision: StoredPrecision, name: str
) -> dict[str, Loaded]:
    """Write the file and read it, one process at a time: who waited finds it made, and shares its pages."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _lock(file.parent):
        disk.remove_partial(file.parent)
        try:
            return disk.read(file, sources, weights, precision)
        except disk.Unusable:
            pass
        need = disk.layout(sources, precision)[1]
        if shutil.disk_usage(file.parent).free < need + SPARE_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(file.parent))
        disk.write(file, sources, weights, precision, name)
    return disk.read(file, sources, weights, precision)


def _lock(folder: Path) -> AbstractContextManager[object]:
    import filelock  # here, because it takes its time and is needed once in a model's life

    return filelock.FileLock(folder / LOCK_NAME, timeout=LONGEST_WAIT_S)
