"""Finds, checks and loads the compiled kernels and picks the instruction set; without them the reference serves."""

from __future__ import annotations

import ctypes
import logging
import os
from collections.abc import Callable, Iterator
from ctypes import POINTER, c_char_p, c_float, c_int8, c_int16, c_int32, c_int64, c_uint8, c_void_p
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from engine.errors import KernelError
from engine.kernels import reference

log = logging.getLogger(__name__)

FOLDER = Path(__file__).parent
REFERENCE = "reference"  # what INKLING_ISA says to switch the compiled kernels off
REBUILD = "python -m engine.kernels.build"

F32P, I8P, I16P, I32P, I64P, U8P = (POINTER(t) for t in (c_float, c_int8, c_int16, c_int32, c_int64, c_uint8))

# Largest difference that the check at load allows between a kernel and the reference, relative to the largest value.
CHECK_BOUND = 1e-5

PAIR_BYTES = 512 * 1024  # of ink.h: scratch for products of pairs of rows

SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "ink_source_hash": (c_char_p, []),
    "ink_isa_count": (c_int32, []),
    "ink_isa_name": (c_char_p, [c_int32]),
    "ink_isa_runs": (c_int32, [c_int32]),
    "ink_new_pool": (c_void_p, [c_int32]),
    "ink_free_pool": (None, [c_void_p]),
    "ink_run_plan": (None, [c_int32, c_void_p, c_void_p]),
    "ink_scan_int8": (None, [c_int32, I8P, F32P, F32P, F32P, c_int64, c_int32]),
    "ink_maxsim": (None, [c_int32, F32P, c_int32, c_int32, U8P, I64P, c_int64, F32P, I32P, c_void_p]),
    "ink_pack_bits": (None, [c_int32, F32P, U8P, c_int64, c_int32]),
    "ink_gemm": (None, [c_int32, F32P, F32P, F32P, c_int32, c_int32, c_int32, c_void_p]),
    "ink_gemm_i8": (None, [c_int32, I16P, F32P, I8P, I16P, F32P, F32P, c_int32, c_int32, c_int32, c_void_p]),
    "ink_has_u8": (c_int32, [c_int32]),
    "ink_gemm_u8": (None, [c_int32, F32P, I8P, F32P, F32P, F32P, c_int32, c_int32, c_int32, c_void_p]),
    "ink_act": (None, [c_int32, F32P, c_int64, c_int32]),
}


@dataclass(frozen=True)
class Library:
    """A loaded library and the instruction set that this process uses of it."""

    path: Path
    functions: ctypes.CDLL
    isa: str
    isa_index: int
    runnable: tuple[str, ...]

    @property
    def has_u8(self) -> bool:
        """Whether there are products of four 8-bit numbers, which int8-full needs."""
        return bool(self.functions.ink_has_u8(self.isa_index))

    def call(self, name: str, *arguments: object) -> None:
        """Call ink_NAME(isa, ...); the interpreter's lock is released meanwhile."""
        getattr(self.functions, f"ink_{name}")(self.isa_index, *arguments)


def pointer(array: np.ndarray[Any, Any], kind: Any = c_void_p) -> Any:
    """The array's data as a ctypes pointer; the caller keeps the array alive and C-contiguous."""
    return ctypes.cast(array.ctypes.data, kind)


def open_library(path: Path, isa: str | None = None) -> Library:
    """Load a library, check that it was compiled from the sources beside it, and take the best (or the named) set.

    Raises KernelError with a sentence where it cannot be used.
    """
    try:
        functions = ctypes.CDLL(str(path))
        for name, (result, arguments) in SIGNATURES.items():
            function = getattr(functions, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        raise KernelError(f"The kernels in {path} cannot be loaded ({error}); rebuild them with: {REBUILD}") from error
    # Imported late: `python -m engine.kernels.build` must find its own module not loaded yet.
    from engine.kernels.build import SOURCES, source_hash

    built_from = functions.ink_source_hash().decode()
    if SOURCES and built_from != source_hash():
        raise KernelError(f"The kernels in {path} were compiled from other sources; rebuild them with: {REBUILD}")
    names = [functions.ink_isa_name(i).decode() for i in range(functions.ink_isa_count())]
    runnable = [name for i, name in enumerate(names) if functions.ink_isa_runs(i)]
    chosen = isa or runnable[-1]
    if chosen not in runnable:
        held = (
            f"this processor runs {', '.join(runnable)}" if chosen in names else f"the library holds {', '.join(names)}"
        )
        raise KernelError(f"INKLING_ISA asks for {chosen!r}, but {held} (or {REFERENCE!r}, the NumPy kernels).")
    return Library(path, functions, chosen, names.index(chosen), tuple(runnable))


@cache
def library() -> Library | None:
    """The kernels of this process, or None for the reference (said aloud, once).

    INKLING_ISA forces an instruction set by name, or "reference". Raises KernelError for one that cannot be had, and
    for a library compiled from other sources.
    """
    isa = os.environ.get("INKLING_ISA") or None
    if isa == REFERENCE:
        return None
    path = library_path()
    if path is None or not path.exists():
        if isa is not None:
            raise KernelError(f"INKLING_ISA asks for {isa!r}, but there are no compiled kernels; build: {REBUILD}")
        log.warning("No compiled kernels for this machine: the NumPy reference is used, which is many times slower.")
        return None
    found = open_library(path, isa)
    wrong = differing_kernels(found)
    if wrong:
        log.warning(
            "The %s kernels compute %s wrongly on this machine: the much slower NumPy reference is used.",
            found.isa,
            ", ".join(wrong),
        )
        return None
    return found


def library_path() -> Path | None:
    """Where the library of this platform lies, or None where there is none for it."""
    from engine.kernels.build import TARGETS, host

    target = TARGETS.get(host())
    return None if target is None else FOLDER / target.library


def info() -> dict[str, Any]:
    """What `doctor` shows: library (path or None), isa in use, available (what runs here), problem (or None)."""
    path = library_path()
    shown: dict[str, Any] = {"library": str(path) if path and path.exists() else None}
    try:
        found = library()
    except KernelError as error:
        return shown | {"isa": None, "available": [], "problem": str(error)}
    if found is not None:
        return shown | {"isa": found.isa, "available": [*found.runnable, REFERENCE], "problem": None}
    forced = os.environ.get("INKLING_ISA") == REFERENCE
    problem = None if forced else f"no usable compiled kernels, so embedding is many times slower; build: {REBUILD}"
    return shown | {"isa": REFERENCE, "available": [REFERENCE], "problem": problem}


def differing_kernels(found: Library) -> list[str]:
    """The kernels whose result on a small made case differs from the reference; takes about a millisecond."""
    random = np.random.default_rng(7)
    return [name for name, check in CHECKS.items() if not check(found, random)]


def _close(got: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> bool:
    return bool(np.abs(got - wanted).max() <= CHECK_BOUND * np.abs(wanted).max())


def _plain_and_paired() -> Iterator[Any]:
    """What a product takes for scratch: nothing, and room for pairs of rows."""
    room = np.empty(PAIR_BYTES, np.uint8)
    yield None
    yield pointer(room)


def _check_gemm(found: Library, random: np.random.Generator) -> bool:
    from engine.weights.int8 import fp32_panels

    rows, inputs, outputs = 27, 128, 64
    a = random.standard_normal((rows, inputs)).astype(np.float32)
    weight = random.standard_normal((outputs, inputs)).astype(np.float32)
    panels, out = fp32_panels(weight), np.empty((rows, outputs), np.float32)
    for scratch in _plain_and_paired():
        found.call("gemm", pointer(a, F32P), pointer(panels, F32P), pointer(out, F32P), rows, inputs, outputs, scratch)
        if not _close(out, a @ weight.T):
            return False
    return True


def _check_gemm_i8(found: Library, random: np.random.Generator) -> bool:
    from engine.weights.int8 import ACTIVATION_LIMIT, quantize_panels, spread, widened

    a = random.integers(-ACTIVATION_LIMIT, ACTIVATION_LIMIT + 1, (13, 448), np.int16)
    panels, of_groups = quantize_panels(random.standard_normal((48, 448)).astype(np.float32))
    multipliers, scales = spread(panels, of_groups)
    rows, out = np.ones(13, np.float32), np.empty((13, 48), np.float32)
    weight = widened(panels, multipliers).transpose(1, 3, 0, 2).reshape(448, 48).astype(np.float64)
    by_block = np.repeat(scales, (384, 64), axis=1).transpose(1, 0, 2).reshape(448, 48)
    wanted = a.astype(np.float64) @ (weight * by_block)
    for scratch in _plain_and_paired():
        found.call("gemm_i8", pointer(a, I16P), pointer(rows, F32P), pointer(panels, I8P), pointer(multipliers, I16P),
                   pointer(scales, F32P), pointer(out, F32P), 13, 448, 48, scratch)  # fmt: skip
        if not _close(out, wanted):
            return False
    return True


def _check_scan(found: Library, random: np.random.Generator) -> bool:
    codes = random.integers(-127, 128, (9, 72), np.int8)
    scales, query = random.random(9).astype(np.float32), random.standard_normal(72).astype(np.float32)
    out = np.empty(9, np.float32)
    found.call("scan_int8", pointer(codes, I8P), pointer(scales, F32P), pointer(query, F32P), pointer(out, F32P), 9, 72)
    return _close(out, reference.scan_int8(codes, scales, query))


CHECKS: dict[str, Callable[[Library, np.random.Generator], bool]] = {
    "gemm": _check_gemm,
    "gemm_i8": _check_gemm_i8,
    "scan_int8": _check_scan,
}
