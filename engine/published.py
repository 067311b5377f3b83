"""The small files of a published model folder: read, or refused with a sentence that names file and key.

Nothing here trusts a folder: whatever stands where a file belongs (a pipe, a dangling link), however large or deeply
nested it is, the answer is a sentence, soon.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any

from engine.errors import ModelError

# The largest settings that are published hold thousands of labels, the largest tokenizers half a million words.
MAX_JSON_BYTES = 8_000_000
MAX_VOCABULARY_BYTES = 100_000_000
MAX_JSON_DEPTH = 64

# Weights in forms that are not read here, by the ends of their names.
OTHER_WEIGHTS = {
    ".onnx": "ONNX", ".gguf": "GGUF", ".bin": "a Python pickle", ".pt": "a Python pickle", ".pth": "a Python pickle",
    ".ckpt": "a Python pickle", ".h5": "HDF5", ".msgpack": "MessagePack", ".tflite": "TensorFlow Lite",
    ".mlmodel": "Core ML",
}  # fmt: skip
OTHER_FOLDERS = ("", "onnx", "openvino")


def present(file: Path) -> bool:
    """Whether a file is there; ModelError where something else stands under its name.

    A link whose target is gone (a hub's cache that was cleaned) must not pass for a file that was never published.
    """
    try:
        mode = file.stat().st_mode
    except (FileNotFoundError, NotADirectoryError) as error:
        if file.is_symlink():
            raise ModelError(f"{file} is a link to a file that is not there; get the model again.") from error
        return False
    except OSError as error:
        raise ModelError(f"{file} cannot be read ({error.strerror or error}).") from error
    if not stat.S_ISREG(mode):
        raise ModelError(f"{file} is no file that could be read, but a folder, a pipe or a device.")
    return True


def read_bytes(file: Path, limit: int = MAX_JSON_BYTES) -> bytes:
    """A whole file; ModelError where it is missing or of more than `limit` bytes."""
    if not present(file):
        raise ModelError(f"{file} is missing; a model folder needs it.")
    try:
        size = file.stat().st_size
        if size > limit:
            raise ModelError(f"{file} has {size:,} bytes; no model has more than {limit:,} there.")
        return file.read_bytes()
    except OSError as error:
        raise ModelError(f"{file} cannot be read ({error.strerror or error}).") from error


def read_json(file: Path, limit: int = MAX_JSON_BYTES) -> dict[str, Any]:
    """A JSON object; ModelError where the file is missing or holds something else."""
    value = read_any_json(file, limit)
    if not isinstance(value, dict):
        raise ModelError(f"{file} is not a JSON object.")
    return value


def read_optional_json(file: Path) -> dict[str, Any]:
    """A JSON object, empty where there is no such file."""
    return read_json(file) if present(file) else {}


def read_any_json(file: Path, limit: int = MAX_JSON_BYTES) -> Any:
    """What a JSON file holds; ModelError where it is missing or is no JSON, or where it contradicts itself."""
    try:
        text = read_bytes(file, limit).decode("utf-8")
        value = json.loads(text, object_pairs_hook=_without_contradiction)
        if "\\ud" in text.lower():  # half a character, written as an escape, fails wherever the text is used
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeDecodeError as error:
        raise ModelError(f"{file} is not UTF-8 text ({error.reason} at byte {error.start}).") from error
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{file} is not valid JSON ({error}).") from error
    if _depth(value) > MAX_JSON_DEPTH:
        raise ModelError(f"{file} is JSON nested more than {MAX_JSON_DEPTH} deep, which no model's is.")
    return value


def _without_contradiction(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        for key, value in pairs:
            if found[key] != value:
                raise ValueError(f"key {key!r} is given twice, with different values")
    return found


def _depth(value: Any) -> int:
    """How many containers lie in one another, counted without recursion."""
    depth, level = 0, [value]
    while level := [inner for inner in level if isinstance(inner, dict | list)]:
        depth += 1
        level = [x for inner in level for x in (inner.values() if isinstance(inner, dict) else inner)]
    return depth


def inside(path: Path, part: str, file: Path) -> Path:
    """A sub-folder that `file` names by its key 'path'; one that leads out of the model folder is refused.

    Files may be links, as they are in a hub's cache, but folders may not lead elsewhere.
    """
    pure = PurePosixPath(part)
    out = pure.is_absolute() or ".." in pure.parts or bool(set(part) & set("\\:\0"))
    if out or not (path / part).resolve().is_relative_to(path.resolve()):
        raise ModelError(f"{file}: key 'path' is {part!r}, which leads out of the model folder.")
    return path / part


def other_weights(folder: Path) -> str:
    """A sentence on weights in a form that is not read here, such as ONNX; "" where there are none."""
    for part in OTHER_FOLDERS:
        for file in sorted((folder / part).glob("*")):
            kind = OTHER_WEIGHTS.get(file.suffix.lower())
            if kind is not None:
                danger = ", which can run code when it is read" * kind.endswith("pickle")
                return f" {file} is {kind}{danger}; this program reads model.safetensors only."
    return ""


def either(values: Iterable[Any]) -> str:
    """Allowed values as a part of a sentence."""
    return " or ".join(repr(value) for value in values)
