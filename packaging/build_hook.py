"""Build hook of the wheel: compiles the native kernels and names the wheel after what is inside.

The compiler comes as a wheel (`ziglang`), asked for only when it can really be had, because a build requirement that
cannot be met stops pip before any code of ours runs. Without a compiler the install goes on: the program then computes
with NumPy, and `inkling doctor` repeats the reason that is left in `engine/kernels/not_built.txt`.

CC=...               compile with this C compiler instead of ziglang
INKLING_NO_KERNELS=1 do not compile
INKLING_TARGET=...   compile for another machine: one of TARGET_TAGS
"""

from __future__ import annotations

import importlib.util
import os
import platform
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ZIGLANG = "ziglang==0.17.1"
KERNELS = Path("engine", "kernels")
NOTE = "not_built.txt"

# The compiler binds symbols of the C library no newer than 2.17, which is what these names promise.
TARGET_TAGS = {
    "linux-x86_64": "manylinux2014_x86_64.manylinux_2_17_x86_64",
    "linux-aarch64": "manylinux2014_aarch64.manylinux_2_17_aarch64",
    "windows-x86_64": "win_amd64",
    "windows-aarch64": "win_arm64",
    "macos-x86_64": "macosx_11_0_x86_64",
    "macos-aarch64": "macosx_11_0_arm64",
}

INDEX_OPTIONS = ("-i", "--index-url", "--extra-index-url", "-f", "--find-links", "--proxy", "--cert", "--trusted-host")


class KernelBuildHook(BuildHookInterface):
    """Adds the compiled library to the wheel; never fails an install for want of a compiler."""

    def dependencies(self) -> list[str]:
        """What pip must bring into the build environment besides hatchling."""
        return [ZIGLANG] if compiler_wheel_wanted() and compiler_wheel_within_reach() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile; `version` is "editable" for `pip install -e`, where the library stays in the source folder."""
        kernels = Path(self.root, KERNELS)
        editable = version == "editable"
        self._scratch = tempfile.TemporaryDirectory(prefix="inkling-kernels-")
        out_dir = kernels if editable else Path(self._scratch.name)
        (kernels / NOTE).unlink(missing_ok=True)
        target = os.environ.get("INKLING_TARGET") or None
        reason = why_not(target)
        if not reason:
            try:
                library = load_build_module(kernels / "build.py").build(out_dir, target)
            except Exception as error:  # whatever went wrong, the install must go on without kernels
                reason = f"The native kernels were not compiled: {error}"
        if reason:
            self._leave_note(reason, out_dir, editable, build_data)
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag(target)}"
        if not editable:
            build_data["force_include"][str(library)] = str(KERNELS / Path(library).name)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """The wheel is written: the scratch folder may go."""
        self._scratch.cleanup()

    def _leave_note(self, reason: str, out_dir: Path, editable: bool, build_data: dict[str, Any]) -> None:
        self.app.display_warning(f"{reason}\nInkling will compute with NumPy, which is right but slower.")
        note = out_dir / NOTE
        note.write_text(reason + "\n", encoding="utf-8")
        if not editable:
            build_data["force_include"][str(note)] = str(KERNELS / NOTE)


def why_not(target: str | None) -> str:
    """A sentence if there is nothing to compile or nothing to compile with, else an empty string."""
    if os.environ.get("INKLING_NO_KERNELS"):
        return "The native kernels were left out because INKLING_NO_KERNELS was set at install time."
    if target and target not in TARGET_TAGS:
        return f"INKLING_TARGET={target} is not known; it can be {', '.join(TARGET_TAGS)}."
    if not os.environ.get("CC") and importlib.util.find_spec("ziglang") is None:
        return f"No C compiler: {ZIGLANG} could not be had at install time, and CC was not set."
    return ""


def compiler_wheel_wanted() -> bool:
    """Whether the ziglang wheel would be used if it were there."""
    return not os.environ.get("CC") and not os.environ.get("INKLING_NO_KERNELS")


def compiler_wheel_within_reach() -> bool:
    """Ask pip, without installing anything, whether this machine can get the compiler's wheel.

    Where pip cannot be run the answer is yes: the installer in charge will say itself what it misses.
    """
    if importlib.util.find_spec("ziglang") is not None:
        return True
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    if subprocess.run([*pip, "--version"], env=environment, capture_output=True).returncode != 0:
        return True
    question = ["install", "--dry-run", "--ignore-installed", "--no-deps", "--only-binary", ":all:", ZIGLANG]
    patience = ["--retries", "1", "--timeout", "15"]
    ask = [*pip, *question, *patience, *index_options(installer_command_line())]
    return subprocess.run(ask, env=environment, capture_output=True).returncode == 0


def installer_command_line() -> list[str]:
    """The arguments of the process that runs this hook, where the system shows them; else nothing."""
    shown = Path(f"/proc/{os.getppid()}/cmdline")
    return os.fsdecode(shown.read_bytes()).split("\0") if shown.exists() else []


def index_options(arguments: list[str]) -> list[str]:
    """Those of the installer's options that decide where packages come from: the question must go to the same place."""
    taken: list[str] = []
    for position, argument in enumerate(arguments):
        name, _, value = argument.partition("=")
        if name == "--no-index":
            taken.append(name)
        elif name in INDEX_OPTIONS:
            taken += [name, value or "".join(arguments[position + 1 : position + 2])]
    return taken


def load_build_module(path: Path) -> ModuleType:
    """`engine/kernels/build.py` by its path: importing it through the package would need NumPy."""
    spec = importlib.util.spec_from_file_location("inkling_kernel_build", path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def platform_tag(target: str | None) -> str:
    """The platform part of the wheel's name, promising no more than the compiled library keeps."""
    if target:
        return TARGET_TAGS[target]
    system = {"linux": "linux", "darwin": "macos", "win32": "windows"}.get(sys.platform, sys.platform)
    machine = platform.machine().lower()
    host = f"{system}-{({'amd64': 'x86_64', 'arm64': 'aarch64'}).get(machine, machine)}"
    pinned = not os.environ.get("CC") and (system != "linux" or platform.libc_ver()[0] == "glibc")
    if pinned and host in TARGET_TAGS:
        return TARGET_TAGS[host]
    # Another compiler links against this very machine's C library: only this machine's own name is honest.
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")
