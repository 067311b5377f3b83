"""Parameters into memory, and our own packed file: int8 weights in the kernels' layout, so that loading is mapping.

The packed file is a plain safetensors file. A linear weight is `{name}.q8` (I8 panels) with `{name}.scale` (F16
panels), a table `{name}.q8` (I8 rows) with `{name}.scale` (F32: one a row, or of wide rows one for every 64 numbers), a
vector or small table `{name}` (F32); see engine.weights.int8. Quantising the published file on load and reading the
packed one give the same numbers.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.errors import ModelError
from engine.models.parameters import Parameter
from engine.weights import int8
from engine.weights.arena import Arena
from engine.weights.loaded import Index, LinearI8, Loaded, TableF32, TableI8, Vector
from engine.weights.safetensors import Weights
from engine.weights.sources import check_finite, find_sources, index_of
from engine.weights.stored import StoredPrecision, form_of, is_small

F32 = NDArray[np.float32]
Progress = Callable[[int, int], None]  # bytes of weights done, bytes of weights in all

FORMAT = "inkling-int8"
# By version. 2 differs from 1 in the scales of wide tables alone, and narrow ones are still written as 1.
_LAYOUT = (
    "linear (n, k): q8 I8 [ceil(n/16)][ceil(k/64)*32][16][2] = output 16p+c, input 2i+j; "
    "scale F16 [ceil(n/16)][ceil(k/64)][16]; table (rows, dim): q8 I8 rows, scale F32 {}; "
    "vector and table of up to 16 rows: F32"
)
LAYOUTS = {"1": _LAYOUT.format("one a row"), "2": _LAYOUT.format("[rows][ceil(dim/64)]")}

_STORED = {"<f4": "F32", "<f2": "F16", "|i1": "I8", "<i4": "I32"}
ALIGNMENT_BYTES = 64


def is_packed(weights: Weights) -> bool:
    """Whether the weights are in our packed form; ModelError where it is a form that this version cannot read."""
    if weights.metadata.get("format") != FORMAT:
        return False
    version = weights.metadata.get("version")
    if version not in LAYOUTS:
        raise ModelError(
            f"{weights.paths[0]}: key 'version' of the packed format is {version!r}, this program reads "
            f"{' and '.join(map(repr, LAYOUTS))}; "
            f"convert the model again, or use a newer program."
        )
    return True


def load(
    parameters: Iterable[Parameter], weights: Weights, precision: StoredPrecision, prefixes: Sequence[str] = ("",)
) -> dict[str, Loaded]:
    """Every parameter by its plan name, in the form that a plan runs on.

    prefixes: what the published tensor names may begin with; the first that fits the first parameter is used.
    Raises ModelError where a tensor is missing, has the wrong shape, or cannot be had in this precision.
    """
    wanted = list(parameters)
    if not is_packed(weights):
        sources, arena = find_sources(wanted, weights, prefixes), Arena()
        return {source.parameter.name: source.load(precision, arena) for source in sources}
    if precision != "int8":
        raise ModelError(
            f"{weights.paths[0]} holds int8 weights only; for {precision} use the model as it was published, which "
            f"`inkling models pull hf:OWNER/NAME` or `inkling models import` brings in."
        )
    return {parameter.name: _packed(parameter, weights, wanted[0].shape[0]) for parameter in wanted}


def pack(
    parameters: Sequence[Parameter],
    weights: Weights,
    prefixes: Sequence[str] = ("",),
    progress: Progress | None = None,
) -> dict[str, NDArray[Any]]:
    """The tensors of the packed file, by name. Raises ModelError where a published tensor is missing or not finite."""
    total = sum(math.prod(parameter.shape) * 4 for parameter in parameters)
    done = 0
    tensors: dict[str, NDArray[Any]] = {}
    arena = Arena()
    for found in find_sources(parameters, weights, prefixes):
        parameter = found.parameter
        if form_of(parameter, "int8") == "panels8":
            tensors[f"{parameter.name}.q8"], tensors[f"{parameter.name}.scale"] = found.panels8()
        else:
            tensors |= _tensors(parameter.name, found.load("int8", arena))
        done += math.prod(parameter.shape) * 4
        if progress is not None:
            progress(done, total)
    return tensors


def _tensors(name: str, loaded: Loaded) -> dict[str, NDArray[Any]]:
    """What a parameter that is no linear weight is packed as."""
    if isinstance(loaded, TableI8):
        narrow = loaded.scales.shape[1] == 1
        return {f"{name}.q8": loaded.codes, f"{name}.scale": loaded.scales[:, 0] if narrow else loaded.scales}
    assert isinstance(loaded, TableF32 | Vector | Index)
    return {name: loaded.values}


def version_of(parameters: Iterable[Parameter]) -> str:
    """The version of the format that a model's tensors are packed in."""
    forms = [(form_of(parameter, "int8"), parameter.shape) for parameter in parameters]
    return "2" if any(form == "rows8" and int8.table_groups(shape[1]) > 1 for form, shape in forms) else "1"


def write(file: Path, tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> None:
    """Write a safetensors file whose bytes depend on its content alone.

    The data begin on a 64-byte line and so does every tensor of whole lines; the format allows no gaps, so the others
    come last, widest elements first, which keeps each aligned to its element.
    """
    order = sorted(tensors, key=lambda n: (tensors[n].nbytes % ALIGNMENT_BYTES != 0, -tensors[n].dtype.itemsize, n))
    header: dict[str, Any] = {"__metadata__": dict(sorted(metadata.items()))}
    position = 0
    for name in order:
        tensor = tensors[name]
        span = [position, position + tensor.nbytes]
        header[name] = {"dtype": _STORED[tensor.dtype.str], "shape": list(tensor.shape), "data_offsets": span}
        position = span[1]
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=True).encode("ascii")
    text += b" " * (-(8 + len(text)) % ALIGNMENT_BYTES)
    with file.open("wb") as out:
        out.write(struct.pack("<Q", len(text)))
        out.write(text)
        for name in order:
            out.write(np.ascontiguousarray(tensors[name]).tobytes())


def _packed(parameter: Parameter, weights: Weights, rows: int) -> Loaded:
    name, shape = parameter.name, parameter.shape
    if parameter.kind == "index":
        return Index(index_of(parameter, weights, name, rows))
    if parameter.kind == "vector":
        return Vector(_numbers(weights, name, shape))
    if is_small(parameter):
        return TableF32(_numbers(weights, name, shape))
    if parameter.kind == "table":
        return TableI8(_codes(weights, f"{name}.q8", shape), _table_scales(weights, f"{name}.scale", shape))
    panels, depth = int8.panel_count(shape[0]), int8.padded_inputs(shape[1])
    codes = _codes(weights, f"{name}.q8", (panels, depth // 2, int8.PANEL, 2))
    scales = _numbers(weights, f"{name}.scale", (panels, depth // int8.GROUP, int8.PANEL))
    return LinearI8.of_groups(codes, scales, *shape)


def _numbers(weights: Weights, name: str, shape: tuple[int, ...]) -> F32:
    """Float numbers of the packed file: few beside the codes, so looking at each costs next to nothing."""
    values = weights.f32(name, shape)
    check_finite(weights, name, values)
    return values


def _table_scales(weights: Weights, name: str, shape: tuple[int, ...]) -> F32:
    """(rows, groups) float32; one scale a row was stored flat, and version 1 knew nothing else."""
    groups = int8.table_groups(shape[1]) if weights.metadata.get("version") != "1" else 1
    if groups == 1:
        return _numbers(weights, name, shape[:1])[:, None]
    return _numbers(weights, name, (shape[0], groups))


def _codes(weights: Weights, name: str, shape: tuple[int, ...]) -> NDArray[np.int8]:
    codes = weights.array(name, shape)
    if codes.dtype != np.int8:
        raise ModelError(f"{weights.paths[0]}: tensor {name!r} holds {weights.dtype(name)}, not I8.")
    return codes
