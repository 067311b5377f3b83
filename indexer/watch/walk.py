"""One look at a tree of the disk: the files Inkling reads, in the byte order of their paths, and what stayed unseen."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from indexer.extract import extractor_for
from indexer.store.records import path_key
from indexer.watch.filesystem import entry_kind, filesystem_type, is_pseudo
from indexer.watch.ignore import IgnoreRules


@dataclass(frozen=True, slots=True)
class Entry:
    """A file on the disk. path: relative to its root, '/' between parts. placeholder: its content is in the cloud."""

    path: bytes
    size_bytes: int
    mtime_ns: int
    placeholder: bool


@dataclass(slots=True)
class Seen:
    """What a walk learned besides the files. Paths are relative; b"" is the root."""

    unreadable: dict[bytes, str] = field(default_factory=dict)  # directory (or file) -> why; nothing is known below it
    mounts: set[bytes] = field(default_factory=set)  # directories on which another volume is mounted
    directories: int = 0

    def hides(self, path: bytes) -> bool:
        """Whether `path` lies where nothing could be seen, so that its absence proves nothing."""
        if b"" in self.unreadable:
            return True
        parts = path.split(b"/")
        return any(b"/".join(parts[:depth]) in self.unreadable for depth in range(1, len(parts) + 1))


def absolute(root: bytes, relative: bytes) -> bytes:
    """The path to open."""
    if not relative:
        return root
    return os.path.join(root, relative if os.sep == "/" else relative.replace(b"/", os.fsencode(os.sep)))


def relative(root: bytes, path: bytes) -> bytes | None:
    """The path within its root, b"" for the root itself; None where it lies elsewhere."""
    if path == root:
        return b""
    separator = os.fsencode(os.sep)
    top = root if root.endswith(separator) else root + separator
    if not path.startswith(top):
        return None
    below = path[len(top) :]
    return below if os.sep == "/" else below.replace(separator, b"/")


def exact_path(root: bytes, path: bytes) -> bytes:
    """The relative path as the disk spells it, for systems whose events may spell it otherwise (case, NFC or NFD).

    Parts that are not there stay as they were given.
    """
    found: list[bytes] = []
    for part in path.split(b"/"):
        folder = absolute(root, b"/".join(found))
        try:
            names = os.listdir(folder)
        except OSError:
            names = []
        if part not in names:
            key = path_key(part)
            part = next((name for name in names if path_key(name) == key), part)
        found.append(part)
    return b"/".join(found)


def walk(
    root: bytes, under: bytes, rules: IgnoreRules, seen: Seen, on_directory: Callable[[bytes], None]
) -> Iterator[Entry]:
    """The files at and below the directory `under`, sorted as the store sorts paths. `on_directory` is told each
    directory just before it is listed. Links are not followed. A directory that vanished meanwhile is simply empty."""
    top = absolute(root, under)
    try:
        device = os.stat(top).st_dev
    except OSError as error:
        _note(seen, under, error)
        return
    yield from _walk_directory(root, under, device, rules, seen, on_directory)


def _walk_directory(
    root: bytes, directory: bytes, device: int, rules: IgnoreRules, seen: Seen, on_directory: Callable[[bytes], None]
) -> Iterator[Entry]:
    # A stack instead of recursion: trees may be deeper than Python's.
    stack = [_list(root, directory, device, rules, seen, on_directory)]
    while stack:
        item = next(stack[-1], None)
        if item is None:
            stack.pop()
        elif isinstance(item, Entry):
            yield item
        else:
            below, below_device = item
            stack.append(_list(root, below, below_device, rules, seen, on_directory))


def _list(
    root: bytes, directory: bytes, device: int, rules: IgnoreRules, seen: Seen, on_directory: Callable[[bytes], None]
) -> Iterator[Entry | tuple[bytes, int]]:
    path = absolute(root, directory)
    on_directory(path)
    seen.directories += 1
    try:
        with os.scandir(path) as listing:
            entries = list(listing)
    except OSError as error:
        _note(seen, directory, error)
        return
    found: list[tuple[bytes, Entry | tuple[bytes, int]]] = []
    for entry in entries:
        name = directory + b"/" + entry.name if directory else entry.name
        try:
            is_directory = entry.is_dir(follow_symlinks=False)
            if not is_directory and extractor_for(entry.name) is None:
                continue
            if rules.ignores(entry.path, is_directory=is_directory):
                continue
            status = entry.stat(follow_symlinks=False) if os.name != "nt" else os.lstat(entry.path)
        except OSError as error:
            _note(seen, name, error)
            continue
        kind = entry_kind(status)
        if kind == "directory":
            if status.st_dev != device:
                if is_pseudo(filesystem_type(entry.path)):
                    continue
                seen.mounts.add(name)
            found.append((name + b"/", (name, status.st_dev)))
        elif kind in ("file", "placeholder"):
            found.append((name, Entry(name, status.st_size, status.st_mtime_ns, kind == "placeholder")))
    found.sort(key=lambda pair: pair[0])
    for _, item in found:
        yield item


def _note(seen: Seen, path: bytes, error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        seen.unreadable[path] = error.strerror or str(error)
    elif path == b"":
        seen.unreadable[path] = "the folder is not there"
