"""The packaged program: which executable is which, where it lies, and what it must not pass on to other programs.

Packaged, there are two executables in one folder: `inkling-window` shows the window and has no console; `inkling` is
the command line and every child process, because a program without a console may have no streams to speak through.
"""

import os
import sys
from pathlib import Path

WINDOW_NAME, CONSOLE_NAME = "inkling-window", "inkling"
PORTABLE_FOLDER = "inkling-data"


def is_packaged() -> bool:
    """Whether this process runs from the packaged program rather than from Python."""
    return bool(getattr(sys, "frozen", False))


def is_window_program() -> bool:
    """Whether this process is the executable without a console: nobody reads what it prints."""
    return is_packaged() and Path(sys.executable).stem == WINDOW_NAME


def console_executable() -> str:
    """The packaged executable that can speak through pipes, whichever of the two this process is."""
    here = Path(sys.executable)
    return str(here.with_name(CONSOLE_NAME + here.suffix))


def place() -> Path:
    """The folder in which a user sees the packaged program: that of the executables, the bundle or the AppImage."""
    executable = Path(sys.executable)
    image, mounted = os.environ.get("APPIMAGE"), os.environ.get("APPDIR")
    if image and mounted and executable.is_relative_to(mounted):
        return Path(image).parent
    bundles = [folder for folder in executable.parents if folder.suffix == ".app"] if sys.platform == "darwin" else []
    return bundles[0].parent if bundles else executable.parent


def portable_data() -> Path | None:
    """The folder `inkling-data` beside the packaged program, where somebody has made one; all data stays in it."""
    if not is_packaged():
        return None
    data = place() / PORTABLE_FOLDER
    return data if data.is_dir() else None


def outside_environment() -> dict[str, str]:
    """The environment for programs that are not ours.

    A packaged program points the loader and Qt at its own libraries; another program that inherits this loads the
    wrong ones and may not start.
    """
    environment = dict(os.environ)
    inside = getattr(sys, "_MEIPASS", None)
    if inside is None:
        return environment
    for name, value in os.environ.items():
        if value == inside or value.startswith(inside + os.sep):
            environment.pop(name)
            # The packaged program's first step keeps what the user had under this name.
            before = environment.pop(f"{name}_ORIG", None)
            if before is not None:
                environment[name] = before
    return environment
