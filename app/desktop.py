"""Opening a file with its program and showing it in the file manager, on each system its own way.

Every call may take seconds (a cold file manager, a sleeping disk): call from a worker, never from the window.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

from app import program
from indexer.errors import IndexerError

_WAIT_S = 20.0


class DesktopError(IndexerError):
    """The system could not open or show something; the sentence says which file and what to try."""


def open_file(path: str) -> None:
    """Open a file or folder with the program the user has chosen for it. Raises DesktopError."""
    _must_exist(path)
    if sys.platform == "win32":
        try:
            os.startfile(path)
        except OSError as error:
            raise DesktopError(f"Windows could not open {_shown(path)}: {error.strerror}.") from error
        return
    opener = "open" if sys.platform == "darwin" else "xdg-open"
    _run([opener, path], f"No program opened {_shown(path)}. Choose one for this kind of file in your file manager.")


def reveal_file(path: str) -> None:
    """Show a file in its folder, selected where the file manager can do that. Raises DesktopError."""
    _must_exist(path)
    if sys.platform == "win32":
        # Explorer answers with 1 also when all went well, and wants the quotes exactly so.
        subprocess.Popen(f'explorer /select,"{path}"')
    elif sys.platform == "darwin":
        _run(["open", "-R", path], f"Finder did not show {_shown(path)}.")
    elif not _show_items(path):
        open_file(os.path.dirname(path))


def _show_items(path: str) -> bool:
    """Ask the file manager over the session bus; False where there is none that understands."""
    command = [
        "dbus-send", "--session", "--print-reply", "--reply-timeout=5000", "--dest=org.freedesktop.FileManager1",
        "/org/freedesktop/FileManager1", "org.freedesktop.FileManager1.ShowItems",
        f"array:string:{file_uri(path)}", "string:",
    ]  # fmt: skip
    try:
        environment = program.outside_environment()
        done = subprocess.run(command, capture_output=True, timeout=_WAIT_S, check=False, env=environment)
        return done.returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def file_uri(path: str) -> str:
    """A file URI by bytes; commas are escaped too, because dbus-send splits arrays at them."""
    return "file://" + quote(os.fsencode(path))


def _must_exist(path: str) -> None:
    try:
        os.lstat(path)
    except FileNotFoundError as error:
        raise DesktopError(
            f"{_shown(path)} is not there now. Its disk may be away, or it has just been moved or deleted."
        ) from error
    except OSError as error:
        raise DesktopError(f"{_shown(path)} cannot be reached: {error.strerror}.") from error


def _run(command: list[str], sentence: str) -> None:
    """Run an opener to its end; its own exit code is all it tells. One that stays is the program itself: fine."""
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True, cwd=Path.home(), env=program.outside_environment(),
        )  # fmt: skip
    except OSError as error:
        raise DesktopError(f"{sentence} ({command[0]}: {error.strerror})") from error
    try:
        if process.wait(_WAIT_S) != 0:
            raise DesktopError(sentence)
    except subprocess.TimeoutExpired:
        return


def _shown(path: str) -> str:
    return ascii(path)[1:-1] if any(not char.isprintable() for char in path) else path
