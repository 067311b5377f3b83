"""How fast the matrix products are beside what a core can do at all: `python -m tests.benchmarks.gemm`.

Weights lie in the cache ("hot"), or come from memory, many copies in turn ("cold"). One thread; the instruction set is
the one that INKLING_ISA says. Prints 10^9 operations a second, two a multiply-add, and their ratio to the peak of
8-lane multiply-adds (x86-64 only), measured just before.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from engine import kernels
from engine.kernels import build, loader
from engine.kernels.pairing import PAIRED_TOKENS
from engine.weights.int8 import GROUP, ONE, PANEL

SHAPES = ((384, 1536), (1536, 384), (768, 768))  # inputs, outputs
ROWS = (1, 4, 12, 32, 128)
COLD_BYTES = 96 << 20
ROUNDS, ROUND_S = 12, 0.02

Call = Callable[[int], None]  # one product, with weights of this copy


def main() -> None:
    found = kernels.library()
    assert found is not None, "build the kernels first: python -m engine.kernels.build"
    peak = fma_peak()
    print(f"{found.isa}; peak of multiply-adds: {peak:.1f}")
    kinds = {"fp32": _fp32, "int8": _int8} | ({"int8-full": _full} if found.has_u8 else {})
    for kind, make in kinds.items():
        for rows in ROWS:
            cells = []
            for inputs, outputs in SHAPES:
                operations = 2.0 * rows * inputs * outputs
                hot, cold = (_rate(operations, *make(found, rows, inputs, outputs, size)) for size in (0, COLD_BYTES))
                cells.append(f"{inputs}x{outputs} {hot:6.1f} ({hot / peak:4.2f}) cold {cold:6.1f}")
            print(f"{kind:9} rows {rows:4}  {'   '.join(cells)}", flush=True)


def fma_peak() -> float:
    """Of one core, in 10^9 operations a second."""
    target = build.target_of(None)
    with tempfile.TemporaryDirectory() as place:
        program = Path(place) / "peak"
        source = str(Path(__file__).with_name("fma_peak.c"))
        build.run([*build.compiler(target, own=True), "-O2", "-mavx2", "-mfma", source, "-o", str(program)])
        return float(subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout)


def _rate(operations: float, call: Call, copies: int) -> float:
    best, number = 0.0, 0
    for _ in range(ROUNDS):
        start, done = time.perf_counter(), 0
        while time.perf_counter() - start < ROUND_S:
            for _ in range(copies if copies > 1 else 8):
                call(number % copies)
                number, done = number + 1, done + 1
        best = max(best, operations * done / (time.perf_counter() - start) / 1e9)
    return best


def _fp32(found: loader.Library, m: int, k: int, n: int, size: int) -> tuple[Call, int]:
    copies = _copies(np.ones((n // PANEL, k, PANEL), np.float32), size)
    a, out = np.ones((m, k), np.float32), np.empty((m, n), np.float32)
    room = _room(m)
    return _caller(found, "gemm", lambda i: [a, copies[i], out, m, k, n, room], len(copies)), len(copies)


def _int8(found: loader.Library, m: int, k: int, n: int, size: int) -> tuple[Call, int]:
    copies, scales = _copies(np.ones((n // PANEL, k // 2, PANEL, 2), np.int8), size), _scales(k, n)
    multipliers = np.full((n // PANEL, k // GROUP, PANEL), ONE, np.int16)
    a, rows, out = np.ones((m, k), np.int16), np.ones(m, np.float32), np.empty((m, n), np.float32)
    fixed = [multipliers, scales, out, m, k, n, _room(m)]
    return _caller(found, "gemm_i8", lambda i: [a, rows, copies[i], *fixed], len(copies)), len(copies)


def _room(rows: int) -> np.ndarray[Any, Any] | None:
    """For products of pairs of rows, as a plan has them where there are enough."""
    return np.empty(loader.PAIR_BYTES, np.uint8) if rows >= PAIRED_TOKENS else None


def _full(found: loader.Library, m: int, k: int, n: int, size: int) -> tuple[Call, int]:
    """With the rounding of the rows, which a plan does once for all that read them."""
    copies, scales = _copies(np.ones((n // PANEL, k // 2, PANEL, 2), np.int8), size), _scales(k, n)
    a, sums, out = np.ones((m, k), np.float32), np.ones(n, np.float32), np.empty((m, n), np.float32)
    scratch = np.empty(m * (k + 8) + 64, np.uint8)
    fixed = [out, m, k, n, scratch]
    return _caller(found, "gemm_u8", lambda i: [a, copies[i], scales, sums, *fixed], len(copies)), len(copies)


def _copies(weights: np.ndarray[Any, Any], size: int) -> np.ndarray[Any, Any]:
    return np.repeat(weights[None], max(1, size // weights.nbytes), axis=0)


def _scales(inputs: int, outputs: int) -> np.ndarray[Any, Any]:
    return np.ones((outputs // PANEL, inputs // GROUP, PANEL), np.float32)


def _caller(found: loader.Library, name: str, arguments: Callable[[int], list[Any]], copies: int) -> Call:
    function = getattr(found.functions, f"ink_{name}")
    kept = [arguments(i) for i in range(copies)]
    ready = [
        [found.isa_index, *(loader.pointer(x, kind) if isinstance(x, np.ndarray) else x
                            for x, kind in zip(one, function.argtypes[1:], strict=True))]
        for one in kept
    ]  # fmt: skip

    def call(copy: int) -> None:
        assert kept
        function(*ready[copy])

    return call


if __name__ == "__main__":
    main()
