"""The small JSON files of a published model folder: read, or refused with a sentence that names file and key."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any

from engine.errors import ModelError


def read_json(file: Path) -> dict[str, Any]:
    """A JSON object; ModelError where the file is missing or holds something else."""
    value = read_any_json(file)
    if not isinstance(value, dict):
        raise ModelError(f"{file} is not a JSON object.")
    return value


def read_any_json(file: Path) -> Any:
    """What a JSON file holds; ModelError where it is missing or is no JSON."""
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ModelError(f"{file} is missing; a model folder needs it.") from error
    except OSError as error:
        raise ModelError(f"{file} cannot be read ({error.strerror or error}).") from error
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{file} is not valid JSON ({error}).") from error


def inside(path: Path, part: str, file: Path) -> Path:
    """A sub-folder that `file` names by its key 'path'; one that leads out of the model folder is refused."""
    pure = PurePosixPath(part)
    if pure.is_absolute() or ".." in pure.parts or "\\" in part or ":" in part:
        raise ModelError(f"{file}: key 'path' is {part!r}, which leads out of the model folder.")
    return path / part


def either(values: Iterable[Any]) -> str:
    """Allowed values as a part of a sentence."""
    return " or ".join(repr(value) for value in values)
