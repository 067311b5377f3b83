"""A new folder that appears whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from engine.errors import ModelError

SUFFIX = ".partial"


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Fill the folder that this yields; when the block ends well it becomes `target` in one rename.

    Nothing is ever overwritten: ModelError where `target` holds anything already. When the block fails, what it wrote
    is removed. A killed process leaves a folder whose name begins with a dot, which is never taken for a model.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ModelError(f"{target} exists already; remove it first, or choose another place.")
    staging = target.parent / f".{target.name}.{os.getpid()}{SUFFIX}"
    try:
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir(parents=True)
        yield staging
        for file in staging.rglob("*"):
            if file.is_file():
                _flush(file)
        if target.exists():
            target.rmdir()
        staging.rename(target)
    except OSError as error:
        raise ModelError(f"{target} cannot be written ({error.strerror or error}).") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def sweep(parent: Path) -> None:
    """Remove what processes that were killed have left half done in `parent`."""
    for staging in parent.glob(f".*{SUFFIX}"):
        pid = staging.name.removesuffix(SUFFIX).rpartition(".")[2]
        if pid.isdecimal() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(staging, ignore_errors=True)


def _flush(file: Path) -> None:
    # Opened for writing because Windows flushes no read-only handle.
    with file.open("r+b") as handle:
        os.fsync(handle.fileno())
