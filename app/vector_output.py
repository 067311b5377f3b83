"""Vectors as they go out: JSON lines, or NumPy's npy of which no more than a portion is ever in memory."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]


def write_row(out: BinaryIO, row: dict[str, Any]) -> None:
    """One JSON object and a line end; arrays of float32 come back as they were."""
    values = {key: numbers(value) if isinstance(value, np.ndarray) else value for key, value in row.items()}
    out.write(json.dumps(values, separators=(",", ":")).encode("ascii") + b"\n")


def numbers(values: NDArray[Any]) -> list[Any]:
    """Nested lists of numbers, those of float32 with nine digits: enough for each to come back as it was."""
    if values.dtype != np.float32:
        return list(values.tolist())
    if values.ndim > 1:
        return [numbers(row) for row in values]
    return [float(f"{value:.9g}") for value in values.tolist()]


class Npy:
    """An npy file of (n, dim) float32 whose n is known only at its end."""

    def __init__(self, out: BinaryIO, dim: int):
        self._out, self._dim, self._rows = out, dim, 0
        self._start = out.tell()
        self._write_header()

    def write(self, rows: F32) -> None:
        """Append (m, dim) float32."""
        self._out.write(np.ascontiguousarray(rows, "<f4").data)
        self._rows += len(rows)

    def finish(self) -> None:
        """Put the number of rows into the header, which has room for any."""
        self._out.seek(self._start)
        self._write_header()
        self._out.seek(0, 2)

    def _write_header(self) -> None:
        shape = (self._rows, self._dim)
        np.lib.format.write_array_header_1_0(self._out, {"descr": "<f4", "fortran_order": False, "shape": shape})


@contextmanager
def npy(out: BinaryIO, dim: int, *, own_file: bool) -> Iterator[Npy]:
    """Write an npy file to `out`.

    own_file: `out` was opened for it and may be sought in. Otherwise, a pipe or a file that is appended to, it gets
    everything at the end from a temporary file.
    """
    if own_file and out.seekable():
        found = Npy(out, dim)
        yield found
        found.finish()
        return
    with tempfile.TemporaryFile() as file:
        found = Npy(file, dim)
        yield found
        found.finish()
        file.seek(0)
        shutil.copyfileobj(file, out, 1 << 20)
