"""The list of watched folders, a second time outside of the index: so that the index can be deleted and built anew."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable
from pathlib import Path

LIST_NAME = "folders.json"

log = logging.getLogger(__name__)


def read_folders(data_dir: Path) -> list[bytes]:
    """The folders that were watched last; none where no list is there, or none that can be read, which is logged."""
    path = data_dir / LIST_NAME
    try:
        folders = json.loads(path.read_text("ascii"))["folders"]
        return [os.fsencode(folder) for folder in folders]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError) as error:
        log.warning("the list of folders %s cannot be read: %s", path, error)
        return []


def write_folders(data_dir: Path, folders: Iterable[bytes]) -> None:
    """Replace the list, all or nothing. A disk that takes none is logged: the index holds the same list."""
    path = data_dir / LIST_NAME
    draft = path.with_suffix(".new")
    text = json.dumps({"folders": [os.fsdecode(folder) for folder in folders]}, indent=2)
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as file:
            file.write(text + "\n")
        os.replace(draft, path)
    except OSError as error:
        log.warning("the list of folders %s cannot be written: %s", path, error)
