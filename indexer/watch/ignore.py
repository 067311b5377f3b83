"""What is not looked at: hidden folders, what nobody searches for, what .gitignore and .inklingignore name, our own.

A line like `!.config/` in an .inklingignore brings a folder back that is left out by default.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import pathspec

IGNORED_DIRECTORIES = frozenset(
    b"CVS node_modules bower_components __pycache__ venv site-packages $RECYCLE.BIN lost+found DerivedData".split()
) | {b"System Volume Information"}  # besides hidden ones, those whose name begins with a dot
_IGNORED_PREFIXES = (b"~$", b".~lock.", b"._", b".#")
_IGNORED_SUFFIXES = (b"~", b".swp", b".swo", b".tmp", b".temp", b".part", b".crdownload", b".partial")
IGNORE_FILES = (b".gitignore", b".inklingignore")
LARGEST_IGNORE_FILE_BYTES = 256 * 1024


class IgnoreRules:
    """The rules of one root. Paths are absolute bytes; a directory's own ignore files count for all below it."""

    def __init__(self, root: bytes, own_folders: Iterable[bytes] = ()) -> None:
        self._root = root
        self._own = frozenset(_seen_from(root, folder) for folder in own_folders)
        self._specs: dict[bytes, pathspec.GitIgnoreSpec | None] = {}
        self._repositories: dict[bytes, bool] = {}

    def ignores(self, path: bytes, *, is_directory: bool) -> bool:
        """Whether this entry is left out, its parents being known to be in."""
        if is_directory and path in self._own:
            return True
        verdict = self._verdict(path, is_directory)
        if verdict is not None:
            return verdict
        name = os.path.basename(path)
        if is_directory:
            return name.startswith(b".") or name in IGNORED_DIRECTORIES
        return name.startswith(_IGNORED_PREFIXES) or name.endswith(_IGNORED_SUFFIXES)

    def ignores_deep(self, path: bytes, *, is_directory: bool) -> bool:
        """Whether this entry or a folder above it is left out."""
        below = path[len(self._root) :].strip(b"/").split(b"/")
        for depth in range(1, len(below)):
            if self.ignores(self._root + b"/" + b"/".join(below[:depth]), is_directory=True):
                return True
        return self.ignores(path, is_directory=is_directory)

    def forget(self, directory: bytes) -> None:
        """The ignore files of a directory were written: read them again."""
        self._specs.pop(directory, None)
        self._repositories.clear()

    def _in_repository(self, directory: bytes) -> bool:
        """Whether git itself would read this directory's .gitignore: elsewhere the file is only a file."""
        known = self._repositories.get(directory)
        if known is None:
            known = os.path.lexists(directory + b"/.git")
            if not known and directory != self._root:
                known = self._in_repository(os.path.dirname(directory))
            self._repositories[directory] = known
        return known

    def _verdict(self, path: bytes, is_directory: bool) -> bool | None:
        """What the ignore files say, None where they say nothing. Git's rule: the deepest file decides, and in it the
        last matching line."""
        directory = os.path.dirname(path)
        while directory == self._root or directory.startswith(self._root + b"/"):
            spec = self._spec(directory)
            if spec is not None:
                relative = os.fsdecode(path[len(directory) :].lstrip(b"/")) + ("/" if is_directory else "")
                verdict = spec.check_file(relative).include
                if verdict is not None:
                    return verdict
            if directory == self._root:
                break
            directory = os.path.dirname(directory)
        return None

    def _spec(self, directory: bytes) -> pathspec.GitIgnoreSpec | None:
        if directory not in self._specs:
            lines = _lines(directory + b"/.gitignore") if self._in_repository(directory) else []
            lines += _lines(directory + b"/.inklingignore")
            self._specs[directory] = pathspec.GitIgnoreSpec.from_lines(lines) if lines else None
        return self._specs[directory]


def _seen_from(root: bytes, folder: bytes) -> bytes:
    """The folder as a walk from the root names it, also where the root's own path goes through a link."""
    real_root, real = os.path.realpath(root), os.path.realpath(folder)
    return root + real[len(real_root) :] if real.startswith(real_root + b"/") else real


def _lines(path: bytes) -> list[str]:
    try:
        with open(path, "rb") as file:
            data = file.read(LARGEST_IGNORE_FILE_BYTES)
    except OSError:
        return []  # none there, or none that may be read: then it rules nothing
    return data.decode("utf-8", "surrogateescape").splitlines()
