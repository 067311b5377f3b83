"""Copies of libraries that believe to run on a processor with AVX2 alone, for peers that have no switch for it.

Every CPUID instruction of a copy is replaced by an undefined opcode of the same length, and masked_cpuid.c answers it.
Linux on x86-64, with `cc` and `objdump`. For measuring only; the copies stay in the benchmark's store.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import struct
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
PACKAGES = ("onnxruntime", "openvino")
CPUID, MARK = b"\x0f\xa2", b"\x0f\x04"
LOADED, EXECUTABLE = 1, 1  # a program header's type and flag
_CPUID_LINE = re.compile(r"^\s*([0-9a-f]+):\s+0f a2\s+cpuid", re.MULTILINE)


def environment(store: Path) -> dict[str, str]:
    """What a process needs to find the copies, which are made at the first call."""
    place = store / "masked"
    place.mkdir(parents=True, exist_ok=True)
    answers = place / "masked_cpuid.so"
    if not answers.exists():
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", answers, HERE / "masked_cpuid.c"], check=True)
    for name in PACKAGES:
        if not (place / name).is_dir() and (found := importlib.util.find_spec(name)) is not None and found.origin:
            _copy(Path(found.origin).parent, place / name)
    return {"LD_PRELOAD": str(answers), "PYTHONPATH": str(place)}


def _copy(package: Path, place: Path) -> None:
    made = place.with_suffix(".part")
    shutil.rmtree(made, ignore_errors=True)
    shutil.copytree(package, made)
    for file in made.rglob("*.so*"):
        _mask(file)
    made.rename(place)


def _mask(file: Path) -> None:
    """Replace a library's CPUID instructions in place."""
    data = bytearray(file.read_bytes())
    if CPUID not in data:
        return
    listing = subprocess.run(["objdump", "-d", "-w", file], check=True, capture_output=True, text=True).stdout
    for match in _CPUID_LINE.finditer(listing):
        at = _offset(data, int(match.group(1), 16))
        assert data[at : at + 2] == CPUID, f"{file} is not laid out as its headers say"
        data[at : at + 2] = MARK
    file.write_bytes(data)


def _offset(data: bytearray, address: int) -> int:
    """Where in an ELF file of 64 bits the code of this address lies."""
    (table,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for i in range(count):
        kind, flags, offset, start, _, length = struct.unpack_from("<IIQQQQ", data, table + i * size)
        if kind == LOADED and flags & EXECUTABLE and start <= address < start + length:
            return int(address - start + offset)
    raise ValueError(f"no code of this file has the address {address:#x}")
