"""Published weights, read where they lie: memory-mapped safetensors, one file or shards.

The file format is small enough to be checked here in full (https://github.com/huggingface/safetensors#format): eight
bytes of header length, a JSON header naming each tensor's dtype, shape and byte range, then the bytes. Everything the
header claims is checked against the file before any tensor is handed out, so a cut or crafted file is a sentence and
not a crash.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
import struct
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from engine.errors import ModelError
from engine.published import other_weights, present, read_any_json

SINGLE_FILE = "model.safetensors"
SHARD_INDEX = "model.safetensors.index.json"
DIGEST_BLOCK_BYTES = 16 << 20
MAX_HEADER_BYTES = 16_000_000  # some hundred thousand tensors; the largest published headers have 2 MB

# BF16 has no NumPy dtype: its bits are kept as uint16 and widened when a tensor is asked for.
DTYPES: dict[str, str] = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "<i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "<u1", "BOOL": "|b1",
}  # fmt: skip

# What often stands where safetensors belong, by its first bytes.
IMPOSTORS = {
    b"GGUF": "weights in the format GGUF", b"PK\x03\x04": "a zip, such as torch.save writes around a Python pickle",
    b"\x80": "a Python pickle", b"version https://git-lfs": "a pointer of Git LFS in place of the weights",
    b"<": "a web page", b"\x89HDF": "weights in the format HDF5",
}  # fmt: skip


@dataclass(frozen=True)
class _Tensor:
    """Where one tensor lies: `file` numbers its mapped file, `start`..`stop` are bytes from the file's start."""

    dtype: str
    shape: tuple[int, ...]
    file: int
    start: int
    stop: int


class Weights:
    """The tensors of one model folder.

    Arrays are read-only views into the mapping wherever the stored dtype allows it; a view keeps its mapping alive, so
    `close()` only lets go of this object's own hold. Not thread-safe to close while in use; reading is thread-safe.
    """

    def __init__(
        self,
        paths: tuple[Path, ...],
        tensors: dict[str, _Tensor],
        maps: list[mmap.mmap],
        metadata: dict[str, str],
        own: int | None = None,
    ):
        self.paths = paths
        self.metadata = metadata
        self._tensors = tensors
        self._maps = maps
        self._own = len(paths) if own is None else own  # the first so many files are not those of modules
        self._digests: list[str] = []

    @classmethod
    def open(cls, folder: Path) -> Weights:
        """Map the weights of a model folder: model.safetensors, else the shards of model.safetensors.index.json.

        Raises ModelError where there are none, or where a file is not what its header says.
        """
        single = folder / SINGLE_FILE
        if present(single):
            return cls.open_files((single,))
        index = folder / SHARD_INDEX
        if present(index):
            return _open_shards(folder, index)
        others = other_weights(folder)
        raise ModelError(f"{folder} holds no {SINGLE_FILE} and no {SHARD_INDEX}, so it has no weights to read.{others}")

    @classmethod
    def open_files(cls, paths: Iterable[Path]) -> Weights:
        """Map the given safetensors files as one set of tensors; a name held twice is refused."""
        files = tuple(paths)
        tensors: dict[str, _Tensor] = {}
        maps: list[mmap.mmap] = []
        metadata: dict[str, str] = {}
        for number, path in enumerate(files):
            mapping = _map(path)
            maps.append(mapping)
            header, data_start = _read_header(path, mapping)
            metadata = {**_metadata(path, header), **metadata}
            for name, tensor in _tensors(path, header, number, data_start, len(mapping)).items():
                if name in tensors:
                    raise ModelError(f"{path}: tensor {name!r} is also in {files[tensors[name].file].name}.")
                tensors[name] = tensor
        return cls(files, tensors, maps, metadata)

    def beside(self, folders: Mapping[str, Path]) -> Weights:
        """These tensors, and those of each folder's model.safetensors under `name/tensor`.

        folders: name -> folder. `sha256` stays that of these files alone.
        """
        found = self
        for name, folder in folders.items():
            other = Weights.open(folder)
            shift = len(found._maps)
            tensors = {f"{name}/{n}": replace(t, file=t.file + shift) for n, t in other._tensors.items()}
            paths, maps = (*found.paths, *other.paths), [*found._maps, *other._maps]
            found = Weights(paths, {**found._tensors, **tensors}, maps, self.metadata, self._own)
        return found

    @property
    def names(self) -> tuple[str, ...]:
        """Every tensor's name, sorted."""
        return tuple(sorted(self._tensors))

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor; ModelError where it is missing."""
        return self._find(name, None).shape

    def dtype(self, name: str) -> str:
        """The stored dtype in the file format's own spelling, such as "F32" or "BF16"; ModelError where missing."""
        return self._find(name, None).dtype

    def array(self, name: str, shape: tuple[int, ...] | None = None, *, rows: slice = slice(None)) -> NDArray[Any]:
        """One tensor, or some of its rows, in its stored dtype; read-only, no copy where the file keeps it aligned.

        BF16 comes as a converted float32 copy. `shape`, when given, is what the caller expects.
        Raises ModelError where the tensor is missing or has another shape.
        """
        tensor = self._find(name, shape)
        if not self._maps:
            raise ModelError(f"{self.paths[0]} was closed before tensor {name!r} was read.")
        count = math.prod(tensor.shape)
        raw: NDArray[Any] = np.frombuffer(
            self._maps[tensor.file], np.dtype(DTYPES[tensor.dtype]), count=count, offset=tensor.start
        ).reshape(tensor.shape)
        if tensor.shape:
            raw = raw[rows]
        if tensor.dtype == "BF16":
            raw = (raw.astype(np.uint32) << 16).view(np.float32)
        elif not raw.flags.aligned:  # an old writer's header of odd length: kernels want aligned loads
            raw = raw.copy()
        raw.flags.writeable = False
        return raw

    def f32(self, name: str, shape: tuple[int, ...] | None = None, *, rows: slice = slice(None)) -> NDArray[np.float32]:
        """One tensor, or some of its rows, as float32: the mapped view where it is stored so, else a converted copy.

        Raises ModelError where the tensor is missing, has another shape, or holds integers.
        """
        tensor = self._find(name, shape)
        if tensor.dtype not in ("F32", "F16", "BF16", "F64"):
            raise ModelError(
                f"{self.paths[tensor.file]}: tensor {name!r} holds {tensor.dtype}, not floating-point numbers."
            )
        with np.errstate(over="ignore", invalid="ignore"):  # what float32 cannot hold becomes infinite
            values: NDArray[np.float32] = self.array(name, shape, rows=rows).astype(np.float32, copy=False)
        return values

    def file(self, name: str) -> Path:
        """The file that holds a tensor; ModelError where it is missing."""
        return self.paths[self._find(name, None).file]

    @property
    def fingerprint(self) -> str:
        """SHA-256 in hex of the file's bytes, header included; with several files, of their digests in order."""
        return self._digest(len(self.paths))

    @property
    def sha256(self) -> str:
        """The same without the files of modules: what identifies a published model.safetensors."""
        return self._digest(self._own)

    @property
    def digests(self) -> list[str]:
        """SHA-256 in hex of each file's bytes. Setting them spares reading files whose digests are known."""
        self._digests = self._digests or [_sha256(mapping) for mapping in self._maps]
        return self._digests

    @digests.setter
    def digests(self, known: list[str]) -> None:
        self._digests = known

    def identities(self) -> list[dict[str, Any]]:
        """What tells each file from a changed one without reading it through: size, time, digest of the header.

        Raises ModelError where a file is gone.
        """
        return [_identity(path, mapping) for path, mapping in zip(self.paths, self._maps, strict=True)]

    def release(self, name: str) -> None:
        """Let go of the pages of a tensor that were read; where the system knows no such advice, nothing happens."""
        tensor = self._find(name, None)
        _release(self._maps[tensor.file], tensor.start, tensor.stop)

    def _digest(self, files: int) -> str:
        digests = self.digests[:files]
        return digests[0] if files == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()

    def close(self) -> None:
        """Let go of the files; each is unmapped when the last array read from it is gone."""
        self._maps = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _find(self, name: str, shape: tuple[int, ...] | None) -> _Tensor:
        tensor = self._tensors.get(name)
        if tensor is None:
            raise ModelError(f"{self.paths[0]} has no tensor {name!r}, which the model's config.json calls for.")
        if shape is not None and tensor.shape != tuple(shape):
            raise ModelError(
                f"{self.paths[tensor.file]}: tensor {name!r} has shape {list(tensor.shape)}, "
                f"but config.json calls for {list(shape)}."
            )
        return tensor


def _open_shards(folder: Path, index: Path) -> Weights:
    listing = read_any_json(index)
    placed = listing.get("weight_map") if isinstance(listing, dict) else None
    if not isinstance(placed, dict) or not placed:
        raise ModelError(f"{index}: key 'weight_map' does not list the tensors.")
    for name, shard in placed.items():
        # A shard is a plain name beside the index: anything else could reach out of the folder.
        if not isinstance(shard, str) or not shard or shard.startswith(".") or set(shard) & set("/\\:\0"):
            raise ModelError(f"{index}: key 'weight_map' puts {name!r} into {shard!r}, which is not a file beside it.")
    shards = sorted(set(placed.values()))
    for shard in shards:
        if not present(folder / shard):
            raise ModelError(f"{index} names {shard}, which is not in {folder}.")
    weights = Weights.open_files(folder / shard for shard in shards)
    for name, shard in placed.items():
        tensor = weights._tensors.get(name)
        if tensor is None or weights.paths[tensor.file].name != shard:
            raise ModelError(f"{folder / shard} lacks tensor {name!r}, which {index.name} puts there.")
    return weights


def _map(path: Path) -> mmap.mmap:
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except ValueError as error:  # an empty file cannot be mapped
        raise ModelError(f"{path} is empty.") from error
    except OSError as error:
        raise ModelError(f"{path} cannot be read ({error.strerror or error}).") from error


def _identity(path: Path, mapping: mmap.mmap) -> dict[str, Any]:
    try:
        changed = path.stat().st_mtime_ns
    except OSError as error:
        raise ModelError(f"{path} cannot be read ({error.strerror or error}).") from error
    (length,) = struct.unpack("<Q", mapping[:8])
    header = hashlib.sha256(mapping[: 8 + length]).hexdigest()
    return {"path": os.path.abspath(path), "bytes": len(mapping), "mtime_ns": changed, "header": header}


def _sha256(mapping: mmap.mmap) -> str:
    """The digest of a file, whose pages are let go of on the way: it may be larger than the memory."""
    found = hashlib.sha256()
    for start in range(0, len(mapping), DIGEST_BLOCK_BYTES):
        stop = min(start + DIGEST_BLOCK_BYTES, len(mapping))
        with memoryview(mapping) as view:
            found.update(view[start:stop])
        _release(mapping, start, stop)
    return found.hexdigest()


def _release(mapping: mmap.mmap, start: int, stop: int) -> None:
    if sys.platform != "win32" and stop > start:
        page = start // mmap.PAGESIZE * mmap.PAGESIZE
        mapping.madvise(mmap.MADV_DONTNEED, page, stop - page)


def _read_header(path: Path, mapping: mmap.mmap) -> tuple[dict[str, Any], int]:
    """The header as a dict and the file offset at which tensor data starts."""
    if len(mapping) < 8:
        raise ModelError(f"{path} is {len(mapping)} bytes long: too short for a safetensors file.")
    for start, kind in IMPOSTORS.items():
        if mapping[: len(start)] == start and mapping[8:9] != b"{":
            raise ModelError(f"{path} is {kind}, and no safetensors file; it is not read.")
    (length,) = struct.unpack("<Q", mapping[:8])
    if length > MAX_HEADER_BYTES or 8 + length > len(mapping):
        raise ModelError(f"{path}: the header claims {length} bytes; the file is cut off or is no safetensors file.")
    try:
        header = json.loads(mapping[8 : 8 + length].decode("utf-8"), object_pairs_hook=_no_duplicates)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path}: the header is not valid JSON ({error}).") from error
    if not isinstance(header, dict):
        raise ModelError(f"{path}: the header is not a JSON object.")
    return header, 8 + length


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _metadata(path: Path, header: Mapping[str, Any]) -> dict[str, str]:
    metadata = header.get("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise ModelError(f"{path}: key '__metadata__' is not an object of strings.")
    return metadata


def _tensors(path: Path, header: Mapping[str, Any], number: int, data_start: int, size: int) -> dict[str, _Tensor]:
    """Each tensor of one header, checked: known dtype, byte count equal to the shape's, no overlap, no gap, no rest."""
    tensors = {
        name: _tensor(path, name, entry, number, data_start) for name, entry in header.items() if name != "__metadata__"
    }
    for name, tensor in tensors.items():
        if tensor.stop > size:
            raise ModelError(
                f"{path}: tensor {name!r} ends behind the end of the file (key 'data_offsets'); the file is cut off."
            )
    position = data_start
    for name, tensor in sorted(tensors.items(), key=lambda item: (item[1].start, item[1].stop)):
        if tensor.start != position:
            trouble = "overlaps the tensor before it" if tensor.start < position else "leaves a gap before it"
            raise ModelError(f"{path}: tensor {name!r} {trouble} (key 'data_offsets').")
        position = tensor.stop
    if position != size:
        raise ModelError(f"{path}: {size - position} bytes at the end belong to no tensor.")
    return tensors


def _tensor(path: Path, name: str, entry: Any, number: int, data_start: int) -> _Tensor:
    where = f"{path}: tensor {name!r}"
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise ModelError(f"{where} is not described by exactly 'dtype', 'shape' and 'data_offsets'.")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise ModelError(f"{where} has dtype {dtype!r}, which this program does not read.")
    if not _counts(shape):
        raise ModelError(f"{where} has an impossible shape {shape!r}.")
    if not _counts(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise ModelError(f"{where} has impossible 'data_offsets' {offsets!r}.")
    need = math.prod(shape) * np.dtype(DTYPES[dtype]).itemsize
    if offsets[1] - offsets[0] != need:
        raise ModelError(f"{where} has {offsets[1] - offsets[0]} bytes, but its shape {shape} in {dtype} needs {need}.")
    return _Tensor(dtype, tuple(shape), number, data_start + offsets[0], data_start + offsets[1])


def _counts(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) is int and value >= 0 for value in values)
