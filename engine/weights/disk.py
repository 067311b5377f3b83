"""Disk weights: a published model's parameters in the kernels' own layout, in a file that is mapped and never copied.

The file is made once, in blocks of rows, so that a model may be larger than the memory; every process that maps it
shares its pages. It holds, little-endian and each part at a multiple of 64 bytes:

    8 bytes magic, uint32 version, uint32 bytes of the header, 32 bytes SHA-256 of the header, 16 zeros
    the header, JSON: what it was made from, and every array's parameter, role, dtype, shape, offset and checksum
    the arrays

Nothing in the header is trusted: what it must say follows from the model, and a file that says anything else, is cut or
was made from other weights is not used. Checksums cover the first and the last page of every array, which finds holes
and strays without reading gigabytes. A mapped file must not be cut by others: it is only ever replaced or removed.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
import struct
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from engine.weights.int8 import PANEL
from engine.weights.loaded import Loaded
from engine.weights.safetensors import Weights
from engine.weights.sources import Source
from engine.weights.stored import StoredPrecision, arrays_of, decode, form_of

MAGIC, VERSION = b"INKDISK\n", 3  # the version changes with the layout and with what rounding gives
ALIGNMENT_BYTES = 64
BLOCK_BYTES = 8 << 20  # published numbers, as float32, that are laid out at once
SYNC_BYTES = 64 << 20  # written between two waits for the disk, so that unwritten pages do not pile up in memory
PAGE_BYTES = 4096
SUFFIX, PARTIAL_SUFFIX = ".weights", ".partial"
_PREFIX = struct.Struct("<8sII32s16x")


class Unusable(Exception):
    """A file of disk weights cannot serve: it is not there, damaged, or was made from something else."""


@dataclass(frozen=True)
class Entry:
    """One array: bytes `offset` up to `offset + bytes` behind the header."""

    parameter: str
    role: str
    dtype: str
    shape: tuple[int, ...]
    offset: int

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize


def layout(sources: Sequence[Source], precision: StoredPrecision) -> tuple[list[Entry], int]:
    """Every array in the order of the file, and the bytes of them all."""
    entries, position = list[Entry](), 0
    for source in sources:
        parameter = source.parameter
        for stored in arrays_of(form_of(parameter, precision), parameter.shape):
            entries.append(Entry(parameter.name, stored.role, stored.dtype, stored.shape, position))
            position = _align(position + entries[-1].bytes)
    return entries, position


def read(file: Path, sources: Sequence[Source], weights: Weights, precision: StoredPrecision) -> dict[str, Loaded]:
    """Map a file and return every parameter by name; `weights` learn the digests of their files, if they are still so.

    Raises Unusable, with the reason.
    """
    mapping = _map(file)
    header, start = _read_header(mapping)
    entries, size = layout(sources, precision)
    wanted, known = _origin(sources, weights, precision), header.get("origin")
    if known != wanted:
        raise Unusable("it was made from other weights or for another model")
    stored, digests = header.get("arrays"), header.get("digests")
    if not isinstance(stored, list) or len(stored) != len(entries) or start + size != len(mapping):
        raise Unusable("it holds other arrays than the model, or is cut")
    if not isinstance(digests, list) or len(digests) != len(weights.paths):
        raise Unusable("it does not say which bytes it was made from")
    arrays: dict[str, dict[str, NDArray[Any]]] = {}
    for entry, found in zip(entries, stored, strict=True):
        array = np.frombuffer(mapping, np.dtype(entry.dtype), math.prod(entry.shape), start + entry.offset)
        if found != _described(entry, _checksum(array.view(np.uint8).data)):
            raise Unusable(f"the array {entry.role!r} of {entry.parameter!r} is not what it should be")
        arrays.setdefault(entry.parameter, {})[entry.role] = array.reshape(entry.shape)
    weights.digests = digests
    return {source.parameter.name: _loaded(source, precision, arrays[source.parameter.name]) for source in sources}


def write(file: Path, sources: Sequence[Source], weights: Weights, precision: StoredPrecision, name: str) -> None:
    """Make the file of a model called `name`, whole or not at all: in a temporary one beside it that is then renamed.

    Raises ModelError where the weights cannot be stored in this precision, OSError where the file cannot be written.
    """
    entries, size = layout(sources, precision)
    header = {"model": name, "origin": _origin(sources, weights, precision), "digests": weights.digests}
    # Checksums are known last; they take as much room as these zeros.
    start = _align(_PREFIX.size + len(_header_text(header, [_described(entry, 0) for entry in entries])))
    with _replacing(file) as out:
        out.truncate(start + size)
        checksums = dict[tuple[str, str], int]()
        synced = 0
        for source in sources:
            mine = {entry.role: entry for entry in entries if entry.parameter == source.parameter.name}
            synced += _write_parameter(out, start, source, precision, mine)
            checksums |= {(entry.parameter, entry.role): _checksum_in(out, start, entry) for entry in mine.values()}
            if synced >= SYNC_BYTES:
                _sync(out)
                synced = 0
        described = [_described(entry, checksums[entry.parameter, entry.role]) for entry in entries]
        text = _header_text(header, described)
        out.seek(0)
        out.write(_PREFIX.pack(MAGIC, VERSION, len(text), hashlib.sha256(text).digest()) + text)


@dataclass(frozen=True)
class DiskFile:
    """One file of disk weights: the model that it was made for, where that lies, and its size."""

    path: Path
    model: str
    precision: str
    source: str
    bytes: int


def files(folder: Path) -> list[DiskFile]:
    """The files of disk weights in a folder, sorted by name; one that cannot be read has no model."""
    found = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        try:
            header = _read_header(_map(path))[0]
            origin = header["origin"]
            facts = str(header["model"]), str(origin["precision"]), str(origin["files"][0]["path"])
        except (Unusable, LookupError, TypeError):
            facts = "", "", ""
        found.append(DiskFile(path, *facts, path.stat().st_size))
    return found


def remove_partial(folder: Path) -> None:
    """Remove what killed processes left behind; nobody may be writing meanwhile."""
    for path in folder.glob(f".*{PARTIAL_SUFFIX}"):
        path.unlink(missing_ok=True)


def _write_parameter(
    out: IO[bytes], start: int, source: Source, precision: StoredPrecision, entries: dict[str, Entry]
) -> int:
    """Write one parameter block by block; the bytes written."""
    shape, form = source.parameter.shape, form_of(source.parameter, precision)
    step = max(1, BLOCK_BYTES // (4 * math.prod(shape[1:])) // PANEL) * PANEL
    written = dict.fromkeys(entries, 0)
    for first in range(0, shape[0], step):
        for role, array in source.arrays(form, first, min(first + step, shape[0])).items():
            out.seek(start + entries[role].offset + written[role])
            values = np.ascontiguousarray(array, entries[role].dtype)
            written[role] += out.write(values.reshape(-1).view(np.uint8).data)
        source.release()
    return sum(written.values())


def _loaded(source: Source, precision: StoredPrecision, arrays: dict[str, NDArray[Any]]) -> Loaded:
    parameter = source.parameter
    if parameter.kind == "index":
        values = arrays["values"]
        if values.min(initial=0) < 0 or values.max(initial=0) >= source.table_rows:
            raise Unusable(f"the index {parameter.name!r} leads out of the table")
    return decode(form_of(parameter, precision), parameter.shape, arrays)


def _origin(sources: Sequence[Source], weights: Weights, precision: StoredPrecision) -> dict[str, Any]:
    """All that decides what a file must hold, as JSON gives it back."""
    asked = repr([(source.parameter, source.names, source.table_rows) for source in sources])
    return {
        "precision": precision,
        "parameters": hashlib.sha256(asked.encode()).hexdigest(),
        "files": weights.identities(),
    }


def _described(entry: Entry, checksum: int) -> dict[str, Any]:
    return {**asdict(entry), "shape": list(entry.shape), "crc32": f"{checksum:08x}"}


def _header_text(header: dict[str, Any], arrays: list[dict[str, Any]]) -> bytes:
    return json.dumps({**header, "arrays": arrays}, separators=(",", ":")).encode("ascii")


def _map(file: Path) -> mmap.mmap:
    try:
        with file.open("rb") as opened:
            return mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:  # an empty file cannot be mapped
        raise Unusable(f"it cannot be read ({error})") from error


def _read_header(mapping: mmap.mmap) -> tuple[dict[str, Any], int]:
    """The header, and where the arrays begin."""
    if len(mapping) < _PREFIX.size:
        raise Unusable("it is cut")
    magic, version, length, digest = _PREFIX.unpack(mapping[: _PREFIX.size])
    if magic != MAGIC or version != VERSION:
        raise Unusable("another version of the program wrote it")
    text = mapping[_PREFIX.size : _PREFIX.size + length]
    if len(text) != length or hashlib.sha256(text).digest() != digest:
        raise Unusable("its header is damaged")
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unusable(f"its header is not JSON ({error})") from error
    if not isinstance(header, dict):
        raise Unusable("its header is not a JSON object")
    return header, _align(_PREFIX.size + length)


def _checksum(array: memoryview) -> int:
    """Of the first and the last page of an array's bytes."""
    return zlib.crc32(array[max(PAGE_BYTES, len(array) - PAGE_BYTES) :], zlib.crc32(array[:PAGE_BYTES]))


def _checksum_in(out: IO[bytes], start: int, entry: Entry) -> int:
    """The same, read back from what was written."""
    out.seek(start + entry.offset)
    found = zlib.crc32(out.read(min(PAGE_BYTES, entry.bytes)))
    last = max(PAGE_BYTES, entry.bytes - PAGE_BYTES)
    out.seek(start + entry.offset + last)
    return zlib.crc32(out.read(max(0, entry.bytes - last)), found)


@contextmanager
def _replacing(file: Path) -> Iterator[IO[bytes]]:
    """A new file that takes the place of `file` when the block ends well, and is removed when it does not."""
    handle, name = tempfile.mkstemp(PARTIAL_SUFFIX, f".{file.name}.", file.parent)
    try:
        with open(handle, "w+b") as out:
            yield out
            _sync(out)
        os.replace(name, file)
    finally:
        Path(name).unlink(missing_ok=True)


def _sync(out: IO[bytes]) -> None:
    out.flush()
    os.fsync(out.fileno())


def _align(size: int) -> int:
    return -(-size // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
