"""The kernels on processors that this machine is not: compiled by the shipping compiler, run under an emulator."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from engine.kernels import build
from tests.engine.kernels.cases import every_case, gemm_u8, write_cases

DRIVER = Path(__file__).with_name("driver.c")
ARM_EMULATOR = ("qemu-aarch64", "qemu-aarch64-static")
WITH_U8 = ("neondot", "neoni8mm")


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
        ("aarch64", ARM_EMULATOR, "neon"),
        ("aarch64", ARM_EMULATOR, "neondot"),
        ("aarch64", ARM_EMULATOR, "neoni8mm"),
        # A processor from before AVX: an instruction past the baseline ends the program.
        ("x86_64", ("qemu-x86_64", "qemu-x86_64-static"), "baseline"),
    ],
)
def test_the_kernel_suite_passes_under_an_emulator(
    processor: str, emulator: tuple[str, ...], isa: str, tmp_path: Path
) -> None:
    cases = tmp_path / "cases.bin"
    cases.write_bytes(write_cases([case for case in every_case() if isa in WITH_U8 or not case.needs_u8]))
    cpu = ["-cpu", "Nehalem"] if processor == "x86_64" else []
    command = [tool(*emulator), *cpu, str(static_driver(processor, tmp_path)), str(cases), isa]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^[1-9]\d* passed, 0 failed$", done.stdout, re.MULTILINE)


@pytest.fixture(scope="module")
def arm_driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return static_driver("aarch64", tmp_path_factory.mktemp("arm"))


def test_products_of_matrices_give_the_bits_of_products_of_four(arm_driver: Path, tmp_path: Path) -> None:
    random = np.random.default_rng(11)
    heights = [gemm_u8(random, m, 448, 33) for m in range(1, 15)]
    cases = tmp_path / "cases.bin"
    cases.write_bytes(write_cases([*heights, *(case for case in every_case() if case.needs_u8)]))
    results = {}
    for isa in ("neondot", "neoni8mm"):
        command = [tool(*ARM_EMULATOR), str(arm_driver), str(cases), isa]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        results[isa] = re.findall(r"^results ([0-9a-f]{16})$", done.stdout, re.MULTILINE)
    assert len(results["neondot"]) == 1 and results["neondot"] == results["neoni8mm"]


@pytest.mark.parametrize(
    ("cpu", "runnable"),
    [
        ("cortex-a53", ["neon"]),
        ("neoverse-n1", ["neon", "neondot"]),
        ("max", ["neon", "neondot", "neoni8mm"]),
    ],
)
def test_an_arm_processor_runs_the_bodies_whose_instructions_it_has(
    arm_driver: Path, cpu: str, runnable: list[str]
) -> None:
    command = [tool(*ARM_EMULATOR), "-cpu", cpu, str(arm_driver)]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert shown.splitlines() == runnable


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


def test_each_arm_body_holds_its_own_products_and_no_other_body_does(tmp_path: Path) -> None:
    target = build.TARGETS["linux-aarch64"]
    build.compile_objects(build.compiler(target, own=False), target, tmp_path)
    # Fixed bits of SDOT and SMMLA on four lanes (Arm Architecture Reference Manual, C7.2): 0100 1110 100m mmmm, then
    # 1001 01nn nnnd dddd or 1010 01nn nnnd dddd.
    fixed, sdot, smmla = np.uint32(0xFFE0FC00), np.uint32(0x4E809400), np.uint32(0x4E80A400)
    counts = {}
    for name in ("ink_isa_neon", "ink_isa_neondot", "ink_isa_neoni8mm", "pool", "dispatch"):
        words = np.frombuffer((tmp_path / f"{name}.o").read_bytes(), np.uint8)
        aligned = words[: words.size // 4 * 4].view("<u4") & fixed
        counts[name] = int((aligned == sdot).sum()), int((aligned == smmla).sum())
    dots, matrices = counts.pop("ink_isa_neondot"), counts.pop("ink_isa_neoni8mm")
    assert dots[0] >= 10 and dots[1] == 0
    assert matrices[0] == 0 and matrices[1] >= 80
    assert set(counts.values()) == {(0, 0)}


def test_every_target_of_the_wheels_compiles(tmp_path: Path) -> None:
    found = build.build(tmp_path, "linux-aarch64")
    assert found.read_bytes()[:4] == b"\x7fELF" and found.read_bytes()[18] == 0xB7
