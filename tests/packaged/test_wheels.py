"""The wheel of every system, cross-built here and looked into: its machine, its functions, what it asks for."""

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from engine.kernels.build import TARGETS
from engine.kernels.loader import SIGNATURES
from tests.conftest import ROOT

pytestmark = pytest.mark.slow

# What `llvm-readobj --file-headers` says, and the libraries that a kernel may ask the system for.
MACHINES = {
    "linux-x86_64": ("Format: elf64-x86-64", r"lib(c|pthread|m|dl)\.so\.\d|ld-linux.*"),
    "linux-aarch64": ("Format: elf64-littleaarch64", r"lib(c|pthread|m|dl)\.so\.\d|ld-linux.*"),
    "windows-x86_64": ("Machine: IMAGE_FILE_MACHINE_AMD64", r"KERNEL32\.dll|ntdll\.dll|api-ms-win-crt-[\w-]+\.dll"),
    "windows-aarch64": ("Machine: IMAGE_FILE_MACHINE_ARM64", r"KERNEL32\.dll|ntdll\.dll|api-ms-win-crt-[\w-]+\.dll"),
    "macos-x86_64": ("CpuType: X86-64", r"/usr/lib/libSystem\.B\.dylib|.*libinkling_kernels\.dylib"),
    "macos-aarch64": ("CpuType: Arm64", r"/usr/lib/libSystem\.B\.dylib|.*libinkling_kernels\.dylib"),
}


def readobj(*arguments: str) -> str:
    tool = shutil.which("llvm-readobj")
    assert tool, "install llvm: its llvm-readobj reads the libraries of every system"
    return subprocess.run([tool, *arguments], check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module", params=MACHINES)
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """(target, the kernels out of the wheel for it)."""
    target = request.param
    folder = tmp_path_factory.mktemp(target)
    command = [sys.executable, str(ROOT / "packaging" / "wheels.py"), "--out", str(folder), target]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        libraries = [name for name in archive.namelist() if re.search(r"\.(so|dll|dylib)$", name)]
        assert libraries == [f"engine/kernels/{TARGETS[target].library}"]
        return target, Path(archive.extract(libraries[0], folder))


def test_every_target_of_the_compiler_is_looked_at() -> None:
    assert set(MACHINES) == set(TARGETS)


def test_it_is_for_the_machine_that_the_wheel_names(library: tuple[str, Path]) -> None:
    target, file = library
    assert MACHINES[target][0] in readobj("--file-headers", str(file))


def test_it_offers_every_function_that_the_program_calls(library: tuple[str, Path]) -> None:
    target, file = library
    shown = readobj("--coff-exports" if target.startswith("windows") else "--symbols", str(file))
    if target.startswith("linux"):
        shown = readobj("--dyn-symbols", str(file))
    offered = {name.lstrip("_") for name in re.findall(r"Name: (_?ink_\w+)", shown)}
    assert set(SIGNATURES) <= offered, set(SIGNATURES) - offered


def test_it_asks_for_nothing_but_the_systems_c_library(library: tuple[str, Path]) -> None:
    target, file = library
    if target.startswith("windows"):
        asked = re.findall(r"Import \{\s+Name: (\S+)", readobj("--coff-imports", str(file)))
    elif target.startswith("macos"):
        asked = macho_libraries(file)
    else:
        listed = readobj("--needed-libs", str(file)).partition("NeededLibraries [")[2].partition("]")[0]
        asked = listed.split()
    assert asked and not [name for name in asked if not re.fullmatch(MACHINES[target][1], name)], asked


def macho_libraries(file: Path) -> list[str]:
    """The libraries that a Mach-O file loads, as objdump lists them."""
    tool = shutil.which("llvm-objdump")
    assert tool, "install llvm: its llvm-objdump lists what a library for macOS loads"
    shown = subprocess.run([tool, "--macho", "--dylibs-used", str(file)], check=True, capture_output=True, text=True)
    return re.findall(r"^\s+(\S+) \(compat", shown.stdout, re.MULTILINE)
