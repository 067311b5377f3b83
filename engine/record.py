"""What Inkling notes beside a model that it has brought in: where it came from, and what int8 does to it.

The note is inkling.json in the model's folder. A folder without one is as good as any other: nothing of it is needed to
compute, but `auto` takes int8 for a model that was never measured.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, Self, get_args

from engine.errors import ModelError
from engine.published import read_json

FILE = "inkling.json"

# Below this, int8 changes a model too much to be taken unasked.
LEAST_LIKENESS = 0.99

Kind = Literal["vectors", "tokens", "scores"]


@dataclass(frozen=True)
class Fidelity:
    """How much int8 differs from fp32 on the texts that the program brings along (engine.fidelity).

    kind: what was compared. worst, mean: cosines; of a reranker the worst and mean rank correlation of a query's
    scores. top10: share of the ten best that both have. largest_difference: of a reranker's scores, else 0.
    numerics: the version of the engine's numbers that were compared.
    """

    kind: Kind
    worst: float
    mean: float
    top10: float
    largest_difference: float
    texts: int
    numerics: int

    @property
    def int8_suffices(self) -> bool:
        return self.worst >= LEAST_LIKENESS


@dataclass(frozen=True)
class Record:
    """source: a hub id or the name of a file or folder; revision: the hub's commit; fidelity: None where unmeasured."""

    source: str | None = None
    revision: str | None = None
    fidelity: Fidelity | None = None

    @classmethod
    def read(cls, folder: Path) -> Self:
        """The note in a model's folder, an empty one where there is none; ModelError where it is not one."""
        file = folder / FILE
        if not file.is_file():
            return cls()
        values = read_json(file)
        measured = values.get("int8")
        return cls(
            _text(file, values, "source"),
            _text(file, values, "revision"),
            None if measured is None else _fidelity(file, measured),
        )

    def write(self, folder: Path) -> None:
        """Put the note into a model's folder."""
        measured = None if self.fidelity is None else asdict(self.fidelity)
        values = {"source": self.source, "revision": self.revision, "int8": measured}
        text = json.dumps(values, indent=2, ensure_ascii=False) + "\n"
        (folder / FILE).write_text(text, encoding="utf-8", newline="\n")


def _text(file: Path, values: dict[str, Any], key: str) -> str | None:
    value = values.get(key)
    if value is not None and not isinstance(value, str):
        raise ModelError(f"{file}: key {key!r} is {value!r}, not a text.")
    return value


def _fidelity(file: Path, values: Any) -> Fidelity:
    types: dict[str, tuple[type, ...]] = {"texts": (int,), "numerics": (int,)}
    if isinstance(values, dict) and values.get("kind") in get_args(Kind):
        numbers: dict[str, Any] = {each.name: values.get(each.name) for each in fields(Fidelity) if each.name != "kind"}
        if all(type(value) in types.get(name, (int, float)) for name, value in numbers.items()):
            return Fidelity(kind=values["kind"], **numbers)
    raise ModelError(f"{file}: key 'int8' is not what a measurement looks like; delete the file.")
