"""The kernels on processors that this machine is not: compiled by the shipping compiler, run under an emulator."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from engine.kernels import build
from tests.engine.kernels.cases import every_case, write_cases

DRIVER = Path(__file__).with_name("driver.c")


def tool(*names: str) -> str:
    """The first of these programs that is installed; the suite needs one (README names the packages)."""
    found = next((path for path in map(shutil.which, names) if path), None)
    assert found, f"install one of {', '.join(names)}: the kernels of other processors are tested with it"
    return found


def static_driver(processor: str, folder: Path) -> Path:
    """driver.c and all kernels of a processor in one static program for Linux."""
    target = build.Target(f"{processor}-linux-musl", processor, "driver")
    command = build.compiler(target, own=False)
    objects = build.compile_objects(command, target, folder)
    program = folder / "driver"
    build.run([*command, *build.FLAGS, f"-I{build.SRC}", str(DRIVER), *objects, "-static", "-lm", "-o", str(program)])
    return program


@pytest.mark.parametrize(
    "processor, emulator, isa",
    [
        ("aarch64", ["qemu-aarch64", "qemu-aarch64-static"], "neon"),
        ("aarch64", ["qemu-aarch64", "qemu-aarch64-static"], "neondot"),
        # A processor from before AVX: an instruction past the baseline ends the program.
        ("x86_64", ["qemu-x86_64", "qemu-x86_64-static"], "baseline"),
    ],
)
def test_the_kernel_suite_passes_under_an_emulator(
    processor: str, emulator: list[str], isa: str, tmp_path: Path
) -> None:
    cases = tmp_path / "cases.bin"
    cases.write_bytes(write_cases([case for case in every_case() if isa == "neondot" or not case.needs_u8]))
    cpu = ["-cpu", "Nehalem"] if processor == "x86_64" else []
    command = [tool(*emulator), *cpu, str(static_driver(processor, tmp_path)), str(cases), isa]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^[1-9]\d* passed, 0 failed$", done.stdout, re.MULTILINE)


def test_the_baseline_body_holds_no_instruction_past_the_baseline(tmp_path: Path) -> None:
    target = build.TARGETS["linux-x86_64"]
    build.compile_objects(build.compiler(target, own=False), target, tmp_path)
    listing = {}
    for name in ("ink_isa_baseline", "ink_isa_avx2", "pool", "dispatch"):
        command = [tool("objdump"), "-d", "--no-show-raw-insn", str(tmp_path / f"{name}.o")]
        listing[name] = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    wide = re.compile(r"[%\s](ymm|zmm)\d|^\s*[0-9a-f]+:\s+v[a-z]", re.MULTILINE)
    assert wide.search(listing["ink_isa_avx2"])  # the pattern does find what it looks for
    for name in ("ink_isa_baseline", "pool", "dispatch"):
        assert not wide.search(listing[name]), name
        # SSE3, SSSE3 and SSE4 are past the baseline too.
        assert not re.search(r"\s(pmovsx|pshufb|pmulld|phadd|blendv|roundp|haddps|lddqu|movddup)", listing[name]), name


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("ink_isa_avx2", (r"vpmaddwd .*%ymm", r"vfmadd231ps .*%ymm")),
        ("ink_isa_avxvnni", (r"\{vex\} vpdpwssd .*%ymm", r"\{vex\} vpdpbusd .*%ymm")),
        ("ink_isa_avx512vnni", (r"vpdpwssd .*%zmm", r"vpdpbusd .*%zmm")),
    ],
)
def test_a_body_holds_the_instructions_that_it_is_there_for(body: str, wanted: tuple[str, ...], tmp_path: Path) -> None:
    target = build.TARGETS["linux-x86_64"]
    build.compile_objects(build.compiler(target, own=False), target, tmp_path)
    command = [tool("objdump"), "-d", "--no-show-raw-insn", str(tmp_path / f"{body}.o")]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for pattern in wanted:
        assert re.search(pattern, shown), pattern


def test_the_arm_body_with_dot_products_holds_them_and_the_plain_one_does_not(tmp_path: Path) -> None:
    target = build.TARGETS["linux-aarch64"]
    build.compile_objects(build.compiler(target, own=False), target, tmp_path)
    counts = {}
    for name in ("ink_isa_neon", "ink_isa_neondot"):
        words = np.frombuffer((tmp_path / f"{name}.o").read_bytes(), np.uint8)
        aligned = words[: words.size // 4 * 4].view("<u4")
        # SDOT of four lanes: 0100 1110 100m mmmm 1001 01nn nnnd dddd (Arm Architecture Reference Manual, C7.2)
        counts[name] = int(((aligned & np.uint32(0xFFE0FC00)) == np.uint32(0x4E809400)).sum())
    assert counts["ink_isa_neondot"] >= 10 and counts["ink_isa_neon"] == 0


def test_every_target_of_the_wheels_compiles(tmp_path: Path) -> None:
    found = build.build(tmp_path, "linux-aarch64")
    assert found.read_bytes()[:4] == b"\x7fELF" and found.read_bytes()[18] == 0xB7
