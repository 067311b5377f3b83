"""Ids and vectors that another program made of texts, to compare an engine with: JSON lines, or NumPy's npz.

JSON lines: one object a text with `text`, `vector` and, where the token ids are to be compared, `ids`; `role` ("query",
"document") or `prompt` say what the model was given before the text. npz: arrays `texts` (n,), `vectors` (n, dim) and
maybe `ids` (all of them, flat) with `starts` (n + 1,); one `role` or `prompt` for all.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from engine import EngineError, Role

ROLES: tuple[str, ...] = get_args(Role)


@dataclass(frozen=True)
class ReferenceRow:
    """One text. ids: (t,) int32, None where the file has none; vector: (dim,) float64."""

    text: str
    vector: NDArray[np.float64]
    ids: NDArray[np.int32] | None
    role: Role | None
    prompt: str | None


def read_reference(file: Path) -> list[ReferenceRow]:
    """Read and check a file. Raises EngineError, naming the line or the array, where it is not such a file."""
    try:
        rows = list(_of_npz(file) if file.suffix == ".npz" else _of_lines(file))
    except OSError as error:
        raise EngineError(f"{file} cannot be read ({error.strerror or error}).") from error
    if not rows:
        raise EngineError(f"{file} holds no texts.")
    widths = {len(row.vector) for row in rows}
    if len(widths) > 1:
        raise EngineError(f"{file} holds vectors of different widths: {', '.join(map(str, sorted(widths)))}.")
    return rows


def _of_lines(file: Path) -> Iterator[ReferenceRow]:
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                place = f"{file}, line {number}"
                try:
                    yield _row(place, json.loads(line))
                except ValueError as error:
                    raise EngineError(f"{place} is not JSON ({error}).") from error


def _of_npz(file: Path) -> Iterator[ReferenceRow]:
    try:
        with np.load(file, allow_pickle=False) as arrays:
            held = {name: arrays[name] for name in arrays.files}
    except (ValueError, zipfile.BadZipFile) as error:
        raise EngineError(f"{file} is not an npz file of plain arrays ({error}).") from error
    for name in ("texts", "vectors"):
        if name not in held:
            raise EngineError(f"{file} has no array {name!r}.")
    texts, vectors, ids = held["texts"], held["vectors"], held.get("ids")
    starts = held.get("starts", np.zeros(0, np.int64))
    if len(texts) != len(vectors) or (ids is not None and len(starts) != len(texts) + 1):
        raise EngineError(f"{file}: {len(texts)} 'texts' need as many rows of 'vectors', and 'starts' one more.")
    shared = {key: held[key].item() for key in ("role", "prompt") if key in held}
    for i, text in enumerate(texts.tolist()):
        own = None if ids is None else ids[starts[i] : starts[i + 1]].tolist()
        yield _row(f"{file}, text {i + 1}", {"text": text, "vector": vectors[i].tolist(), "ids": own, **shared})


def _row(place: str, values: Any) -> ReferenceRow:
    if not isinstance(values, dict):
        raise EngineError(f"{place} is not a JSON object.")
    text, role, prompt, ids = (values.get(key) for key in ("text", "role", "prompt", "ids"))
    if not isinstance(text, str):
        raise EngineError(f"{place}: key 'text' is not a text.")
    if role is not None and role not in ROLES:
        raise EngineError(f"{place}: key 'role' is {role!r}, not one of {', '.join(ROLES)}.")
    if prompt is not None and not isinstance(prompt, str):
        raise EngineError(f"{place}: key 'prompt' is not a text.")
    vector = _numbers(place, "vector", values.get("vector"), np.float64)
    if not np.isfinite(vector).all():
        raise EngineError(f"{place}: key 'vector' holds a number that is not finite.")
    return ReferenceRow(text, vector, None if ids is None else _numbers(place, "ids", ids, np.int32), role, prompt)


def _numbers(place: str, key: str, values: Any, dtype: Any) -> NDArray[Any]:
    whole = dtype is np.int32
    kinds: tuple[type, ...] = (int,) if whole else (int, float)
    if not isinstance(values, list) or not (values or whole) or not all(type(value) in kinds for value in values):
        raise EngineError(f"{place}: key {key!r} is not a list of {'whole ' * whole}numbers.")
    try:
        return np.array(values, dtype)
    except OverflowError as error:
        raise EngineError(f"{place}: key {key!r} holds a number that is too large.") from error
