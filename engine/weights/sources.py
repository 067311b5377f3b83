"""Where each parameter's numbers lie in a published checkpoint, readable in blocks of rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from engine.errors import ModelError
from engine.models.parameters import Parameter
from engine.weights.arena import Arena
from engine.weights.int8 import quantize_panels
from engine.weights.loaded import Loaded
from engine.weights.safetensors import Weights
from engine.weights.stored import Form, StoredPrecision, decode, encode, form_of

F32 = NDArray[np.float32]

CHECK_BLOCK_BYTES = 32 << 20  # of numbers as float32 that are read at once
FINITE_BLOCK = 1 << 20  # numbers that are looked at at once

# Names that checkpoints from before 2019 give to the weight and bias of a LayerNorm.
_LEGACY = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}


def find_sources(parameters: Sequence[Parameter], weights: Weights, prefixes: Sequence[str] = ("",)) -> list[Source]:
    """Where each parameter's numbers lie in a published checkpoint.

    prefixes: what the published tensor names may begin with; the first that fits the first parameter is used.
    Raises ModelError where a tensor is missing or has the wrong shape.
    """
    prefix = _prefix(parameters[0], weights, prefixes)
    rows = parameters[0].shape[0]  # those of the first table, which an index points into
    return [Source.find(parameter, weights, prefix, rows) for parameter in parameters]


@dataclass(frozen=True)
class Source:
    """One parameter, and the published tensors that it consists of, one below the other.

    table_rows: rows of the first table, which an index points into.
    """

    parameter: Parameter
    weights: Weights
    names: tuple[str, ...]
    table_rows: int

    @classmethod
    def find(cls, parameter: Parameter, weights: Weights, prefix: str, table_rows: int) -> Self:
        """The published tensors of a parameter; ModelError where one is missing or the shapes do not add up."""
        if parameter.kind == "index":  # static models have no prefix
            weights.shape(parameter.sources[0])
            return cls(parameter, weights, parameter.sources, table_rows)
        names = tuple(_published_name(_full_name(source, prefix), weights) for source in parameter.sources)
        shapes = [weights.shape(name) for name in names]
        rows = sum(shape[0] for shape in shapes if shape)
        for name, shape in zip(names, shapes, strict=True):
            if not shape or shape[1:] != parameter.shape[1:] or rows != parameter.shape[0]:
                raise ModelError(
                    f"{weights.file(name)}: tensor {name!r} has shape {list(shape)}, "
                    f"but config.json calls for {list(parameter.shape)}"
                    + (f" of {len(shapes)} such tensors together." if len(shapes) > 1 else ".")
                )
        return cls(parameter, weights, names, table_rows)

    def rows(self, start: int, stop: int) -> NDArray[Any]:
        """Rows of the parameter: float32, of an index int32; a view of the file where that is stored so."""
        if self.parameter.kind == "index":
            return index_of(self.parameter, self.weights, self.names[0], self.table_rows)[start:stop]
        parts, first = list[F32](), 0
        for name in self.names:
            count = self.weights.shape(name)[0]
            here = slice(max(0, start - first), min(count, stop - first))
            if here.start < here.stop:
                parts.append(self._numbers(name, here))
            first += count
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def arrays(self, form: Form, start: int, stop: int) -> dict[str, NDArray[Any]]:
        """The arrays of those rows in this form; ModelError where a number cannot be rounded."""
        with self._packing():
            return encode(form, self.rows(start, stop))

    def panels8(self) -> tuple[NDArray[np.int8], NDArray[np.float16]]:
        """A linear weight's codes and scales of groups in panels; ModelError where a number cannot be rounded."""
        with self._packing():
            return quantize_panels(self.rows(0, self.parameter.shape[0]))

    @contextmanager
    def _packing(self) -> Iterator[None]:
        try:
            yield
        except ValueError as error:
            raise ModelError(f"{self.weights.paths[0]}: tensor {self.names[0]!r} cannot be packed: {error}.") from error

    def check(self) -> None:
        """Read every number once, in blocks, as the model may be larger than the memory. Raises what `rows` does."""
        shape = self.parameter.shape
        step = max(1, CHECK_BLOCK_BYTES // (4 * math.prod(shape[1:])))
        for first in range(0, shape[0], step):
            self.rows(first, min(first + step, shape[0]))
            self.release()

    def release(self) -> None:
        """Let go of the file's pages that were read; reading them again brings them back."""
        for name in self.names:
            self.weights.release(name)

    def load(self, precision: StoredPrecision, arena: Arena) -> Loaded:
        """The whole parameter in memory, in the form that a plan runs on."""
        form, shape = form_of(self.parameter, precision), self.parameter.shape
        arrays = self.arrays(form, 0, shape[0])
        return decode(form, shape, {role: arena.keep(array) for role, array in arrays.items()})

    def _numbers(self, name: str, rows: slice) -> F32:
        # Tables of static models are published in int8 too, whose numbers count as they are.
        if self.parameter.kind == "table" and self.weights.dtype(name) == "I8":
            return self.weights.array(name, rows=rows).astype(np.float32)
        values = self.weights.f32(name, rows=rows)
        check_finite(self.weights, name, values)
        return values


def check_finite(weights: Weights, name: str, values: F32) -> None:
    """Refuse numbers of a tensor with NaN or infinity among them: every vector would be NaN.

    Looked at once, when the numbers are laid out; in blocks, as tables may be large.
    """
    flat = values.reshape(-1)
    for start in range(0, flat.size, FINITE_BLOCK):
        if not np.isfinite(flat[start : start + FINITE_BLOCK]).all():
            raise ModelError(f"{weights.file(name)}: tensor {name!r} holds numbers that are not finite.")


def _full_name(source: str, prefix: str) -> str:
    """A tensor's name in the file: a module's own and one that begins with a slash go without the prefix."""
    return source.removeprefix("/") if "/" in source else prefix + source


def _prefix(first: Parameter, weights: Weights, prefixes: Sequence[str]) -> str:
    for prefix in prefixes:
        if _published_name(prefix + first.sources[0], weights) in weights:
            return prefix
    return prefixes[0]


def _published_name(name: str, weights: Weights) -> str:
    for new, old in _LEGACY.items():
        if name.endswith(new) and name not in weights and name.removesuffix(new) + old in weights:
            return name.removesuffix(new) + old
    return name


def index_of(parameter: Parameter, weights: Weights, name: str, rows: int) -> NDArray[np.int32]:
    """An index as int32, which no entry leads out of the table; ModelError otherwise."""
    values = weights.array(name, parameter.shape)
    if values.dtype.kind not in "iu" or values.min(initial=0) < 0 or values.max(initial=0) >= rows:
        raise ModelError(f"{weights.paths[0]}: tensor {name!r} holds numbers that are no rows of a table of {rows}.")
    return np.ascontiguousarray(values, np.int32)
