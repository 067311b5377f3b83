"""What is to be known of a model: from its folder, without computing anything."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from engine.backbone import Backbone
from engine.batch import TOKEN_BUDGET
from engine.catalog import Catalog, CatalogModel
from engine.folder import ModelFolder
from engine.models import static
from engine.models.parameters import Parameter
from engine.options import NUMERICS, chosen_precision
from engine.plan import Plan
from engine.record import Fidelity, Record
from engine.reranker_folder import RerankerFolder, open_folder
from engine.weights import packed
from engine.weights.stored import Precision, StoredPrecision, arrays_of, form_of

Kind = Literal["embedding", "late interaction", "reranker"]


@dataclass(frozen=True)
class Memory:
    """Bytes. weights: by the precisions that can be had. activations: of a batch of TOKEN_BUDGET tokens.

    longest_activations: of one text of the model's greatest length, None where it has none. Both are what the values
    that are needed at once take; the room that the kernels set aside for them is up to two or three times that.
    """

    weights: dict[StoredPrecision, int]
    activations: int
    longest_activations: int | None


@dataclass(frozen=True)
class Facts:
    """dim: width of a vector, 1 for a score. precision: what "auto" computes. stored: the weights' dtypes on the disk.

    measured: None where int8 was never compared with fp32 by this version's numbers.
    """

    name: str
    kind: Kind
    path: Path
    source: str | None
    revision: str | None
    licence: str | None
    languages: tuple[str, ...]
    architecture: str
    parameters: int
    layers: int
    hidden: int
    dim: int
    matryoshka: tuple[int, ...]
    pooling: str
    normalize: bool
    prompts: dict[str, str]
    max_tokens: int
    tokenizer: str
    vocabulary: int
    stored: tuple[str, ...]
    disk_bytes: int
    precision: Precision
    memory: Memory
    measured: Fidelity | None


def facts(path: Path) -> Facts:
    """Read a model's folder. Raises ModelError where it cannot be computed."""
    folder = open_folder(path)
    parameters = folder.parameters()
    tokenizer = folder.tokenizer()
    with folder.weights() as weights:
        is_packed = packed.is_packed(weights)
        stored = tuple(sorted({weights.dtype(name) for name in weights.names}))
        digest = weights.metadata.get("source_sha256", "") if is_packed else ""
    record = Record.read(path)
    known = _known(folder.name, record, digest)
    precisions: tuple[StoredPrecision, ...] = ("int8",) if is_packed else ("fp32", "int8")
    vector = folder if isinstance(folder, ModelFolder) else None
    return Facts(
        name=folder.name,
        kind=_kind(folder),
        path=path,
        source=record.source or (known.hub_id if known else None),
        revision=record.revision or (known.revision if known and record.source in (None, known.hub_id) else None),
        licence=known.licence if known else _licence(path),
        languages=known.languages if known else (),
        architecture=folder.model_type,
        parameters=sum(math.prod(parameter.shape) for parameter in parameters if parameter.kind != "index"),
        layers=int(folder.config.get("num_hidden_layers", 0)),
        hidden=folder.hidden,
        dim=vector.dim if vector else 1,
        matryoshka=tuple(width for width in vector.matryoshka if width <= vector.dim) if vector else (),
        pooling="" if _kind(folder) == "late interaction" else _pooling(folder),
        normalize=vector is not None and vector.normalize,
        prompts=_prompts(folder),
        max_tokens=folder.max_tokens,
        tokenizer=str(json.loads(tokenizer.published())["model"].get("type", "")),
        vocabulary=int(folder.config["vocab_size"]),
        stored=stored,
        disk_bytes=sum(file.stat().st_size for file in path.rglob("*") if file.is_file()),
        precision=chosen_precision("auto", folder),
        memory=_memory(folder.backbone, parameters, folder.plan(), precisions),
        measured=record.fidelity if record.fidelity is not None and record.fidelity.numerics == NUMERICS else None,
    )


def _known(name: str, record: Record, digest: str) -> CatalogModel | None:
    """Which catalog model a folder holds: by its name, by where it came from, or by what it was packed from."""
    catalog = Catalog.load()
    return catalog.find(name) or catalog.find(record.source or "") or catalog.find_sha256(digest)


def _kind(folder: ModelFolder | RerankerFolder) -> Kind:
    if isinstance(folder, RerankerFolder):
        return "reranker"
    return "embedding" if folder.late is None else "late interaction"


def _pooling(folder: ModelFolder | RerankerFolder) -> str:
    return folder.classifier.pooling if isinstance(folder, RerankerFolder) else folder.pooling


def _prompts(folder: ModelFolder | RerankerFolder) -> dict[str, str]:
    """What is put before a text, by role; only what there is."""
    if isinstance(folder, RerankerFolder):
        return {}
    named: dict[str, str] = {"default": folder.default_prompt}
    named.update(folder.prompts.items())
    if folder.late is not None:
        named |= {f"{role} marker": marker for role, marker in folder.late.markers.items()}
    return {role: text for role, text in named.items() if text}


def _licence(path: Path) -> str | None:
    """The licence that a model card names in its head."""
    card = path / "README.md"
    head = card.read_text(encoding="utf-8", errors="replace").split("\n---", 1)[0] if card.is_file() else ""
    found = re.search(r"^license:\s*([\w.-]+)\s*$", head, re.MULTILINE) if head.startswith("---") else None
    return found[1] if found else None


def _memory(
    backbone: Backbone, parameters: list[Parameter], plan: Plan, precisions: tuple[StoredPrecision, ...]
) -> Memory:
    each = _bytes_a_token(plan)
    return Memory(
        {precision: sum(_bytes(parameter, precision) for parameter in parameters) for precision in precisions},
        each * TOKEN_BUDGET,
        each * backbone.max_tokens if backbone.max_tokens < static.NO_LIMIT else None,
    )


def _bytes(parameter: Parameter, precision: StoredPrecision) -> int:
    """What one parameter takes in the form that the kernels read."""
    arrays = arrays_of(form_of(parameter, precision), parameter.shape)
    return sum(np.dtype(array.dtype).itemsize * math.prod(array.shape) for array in arrays)


def _bytes_a_token(plan: Plan) -> int:
    """The most that one token needs at once.

    Each value lives from the step that makes it to its last use, in float32, and beside what a step reads there is the
    same rounded to 16 bits.
    """
    last = {value.index: i for i, op in enumerate(plan.ops) for value in (*op.inputs, op.out)}
    last[plan.tokens.index] = len(plan.ops)
    alive: dict[int, int] = {}
    most = 0
    for i, op in enumerate(plan.ops):
        if op.out.rows == "tokens":
            alive[op.out.index] = op.out.width
        rounded = max((value.width for value in op.inputs if value.rows == "tokens"), default=0)
        most = max(most, 4 * sum(alive.values()) + 2 * rounded)
        alive = {index: width for index, width in alive.items() if last[index] > i}
    return most
