"""Compile the kernels into one shared library, for the package build or by hand: `python -m engine.kernels.build`.

The compiler is the pinned `ziglang` wheel (no system compiler needed, cross-compiles); the environment variable CC
overrides it for the machine's own platform. Only the standard library is used: this runs before anything is installed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

SRC = Path(__file__).with_name("src")
SOURCES = tuple(sorted(SRC.glob("*.[ch]")))

# Contracting a * b + c into one rounding at the compiler's whim would make results differ by tile and by compiler.
FLAGS = ("-std=gnu11", "-O3", "-fPIC", "-ffp-contract=off", "-fno-math-errno", "-fvisibility=hidden",
         "-Wall", "-Wextra", "-Wno-unused-function", "-Wno-unknown-pragmas")  # fmt: skip
ZIG_FLAGS = ("-fno-sanitize=undefined", "-g0")
AVX512 = ("-mavx2", "-mfma", "-mf16c", "-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl")

# Processor -> the bodies that its library holds: macro -> compiler flags beyond the processor's baseline.
BODIES: dict[str, dict[str, tuple[str, ...]]] = {
    "x86_64": {
        "INK_ISA_BASELINE": (),
        "INK_ISA_AVX2": ("-mavx2", "-mfma", "-mf16c"),
        "INK_ISA_AVXVNNI": ("-mavx2", "-mfma", "-mf16c", "-mavxvnni"),
        "INK_ISA_AVX512": AVX512,
        "INK_ISA_AVX512VNNI": (*AVX512, "-mavx512vnni"),
    },
    "aarch64": {
        "INK_ISA_NEON": (),
        "INK_ISA_NEONDOT": ("-mcpu=generic+dotprod",),
        "INK_ISA_NEONI8MM": ("-mcpu=generic+dotprod+i8mm",),
    },
}


@dataclass(frozen=True)
class Target:
    """What to compile for: the zig target triple, the processor, and the library's file name."""

    triple: str
    processor: str
    library: str


TARGETS: dict[str, Target] = {
    "linux-x86_64": Target("x86_64-linux-gnu.2.17", "x86_64", "libinkling_kernels.so"),
    "linux-aarch64": Target("aarch64-linux-gnu.2.17", "aarch64", "libinkling_kernels.so"),
    "windows-x86_64": Target("x86_64-windows-gnu", "x86_64", "inkling_kernels.dll"),
    "windows-aarch64": Target("aarch64-windows-gnu", "aarch64", "inkling_kernels.dll"),
    "macos-x86_64": Target("x86_64-macos.11.0", "x86_64", "libinkling_kernels.dylib"),
    "macos-aarch64": Target("aarch64-macos.11.0", "aarch64", "libinkling_kernels.dylib"),
}


class BuildError(Exception):
    """The kernels could not be compiled: a sentence that says why."""


def source_hash() -> str:
    """SHA-256 in hex over every source's name and bytes; compiled into the library so that a stale one is noticed."""
    digest = hashlib.sha256()
    for path in SOURCES:
        digest.update(path.name.encode() + b"\0" + path.read_bytes().replace(b"\r\n", b"\n") + b"\0")
    return digest.hexdigest()


def host() -> str:
    """The target of this machine, such as "linux-x86_64"."""
    system = {"Linux": "linux", "Windows": "windows", "Darwin": "macos"}.get(platform.system(), platform.system())
    machine = platform.machine().lower()
    processor = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
    return f"{system}-{processor}"


def target_of(name: str | None) -> Target:
    """The target of this name, or of this machine; BuildError where there are no kernels for it."""
    name = name or host()
    if name not in TARGETS:
        raise BuildError(f"there are no compiled kernels for {name}; the NumPy reference is used there")
    return TARGETS[name]


def compiler(target: Target, own: bool) -> list[str]:
    """The compiler's command for a target: CC for this machine's own platform, else zig's clang."""
    chosen = os.environ.get("CC")
    if chosen and own:
        baseline = ["-march=x86-64"] if target.processor == "x86_64" else []
        return [*shlex.split(chosen), *baseline]
    if importlib.util.find_spec("ziglang") is None:
        raise BuildError("no compiler: the package ziglang is not installed and CC names no other")
    # Zig would otherwise tune for the building machine, and the baseline body would crash on older ones.
    baseline = ["-mcpu=x86_64"] if target.processor == "x86_64" else ["-mcpu=generic"]
    return [sys.executable, "-m", "ziglang", "cc", "-target", target.triple, *baseline, *ZIG_FLAGS]


def build(out_dir: Path, target: str | None = None) -> Path:
    """Compile the library for a target (None: this machine) into out_dir; returns its path.

    Raises BuildError with the compiler's own words where it fails. The file appears whole or not at all.
    """
    chosen = target_of(target)
    command = compiler(chosen, target is None or target == host())
    out_dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out_dir) as work:
        objects = compile_objects(command, chosen, Path(work))
        library = Path(work) / chosen.library
        threads = [] if "windows" in chosen.triple else ["-lpthread"]
        strip = [] if "macos" in chosen.triple else ["-s"]
        run([*command, "-shared", *strip, "-o", str(library), *objects, *threads])
        os.replace(library, out_dir / chosen.library)
    return out_dir / chosen.library


def compile_objects(command: list[str], target: Target, out_dir: Path) -> list[str]:
    """Compile every translation unit into out_dir; returns the object files' paths."""
    objects = []
    for source, name, flags in _units(target):
        objects.append(str(out_dir / f"{name}.o"))
        run([*command, *FLAGS, *flags, "-c", str(SRC / source), "-o", objects[-1]])
    return objects


def _units(target: Target) -> list[tuple[str, str, tuple[str, ...]]]:
    """(source, object name, flags) of each translation unit."""
    units = [("dispatch.c", "dispatch", (f'-DINK_SOURCE_HASH="{source_hash()}"',)), ("pool.c", "pool", ())]
    for macro, flags in BODIES[target.processor].items():
        units.append(("body.c", macro.lower(), (f"-D{macro}", *flags)))
    return units


def run(command: list[str]) -> None:
    """Run the compiler; BuildError with its last words where it fails."""
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise BuildError(f"the compiler failed ({' '.join(command[:4])} ...): {done.stderr.strip()[-2000:]}")


if __name__ == "__main__":
    print(build(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent, *sys.argv[2:3]))
