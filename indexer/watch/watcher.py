"""The system's events about watched folders, as hints. On Linux one inotify watch a directory, laid by the scanner just
before it lists that directory, so that nothing falls between; elsewhere one recursive watch a root.

Read and open events are never asked for: they would wake the indexer whenever any program reads a file.
"""

from __future__ import annotations

import errno
import logging
import os
import sys
import threading
from collections.abc import Callable
from typing import Protocol

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer

from indexer.watch.hints import Hint, HintSink

log = logging.getLogger(__name__)

Interesting = Callable[[bytes, bool], bool]  # (absolute path, is a directory) -> worth a hint
_READ_EVENTS = frozenset(["opened", "closed_no_write"])


class Watcher(Protocol):
    """Watches directories until told otherwise; hints arrive on a thread of its own."""

    @property
    def exhausted(self) -> bool:
        """Whether the system refused a watch, so that some folders must be looked at from time to time."""
        ...

    def add_root(self, root: bytes) -> None:
        """Before a root is scanned."""
        ...

    def add_directory(self, directory: bytes) -> None:
        """Before a directory is listed."""
        ...

    def remove_root(self, root: bytes) -> None:
        """No more hints from below this root."""
        ...

    def close(self) -> None:
        """End the threads."""
        ...


def open_watcher(sink: HintSink, interesting: Interesting) -> Watcher:
    """The watcher of this operating system."""
    if sys.platform != "linux":
        return RecursiveWatcher(sink, interesting)
    try:
        return InotifyWatcher(sink, interesting)
    except OSError as error:
        log.info("the system gives no events at all: %s", error)
        return DeafWatcher()


class DeafWatcher:
    """Where the system gives no events: everything is looked at from time to time."""

    exhausted = True

    def add_root(self, root: bytes) -> None:
        """Nothing is watched."""

    def add_directory(self, directory: bytes) -> None:
        """Nothing is watched."""

    def remove_root(self, root: bytes) -> None:
        """Nothing was watched."""

    def close(self) -> None:
        """Nothing runs."""


class RecursiveWatcher:
    """macOS and Windows: the system watches whole trees."""

    def __init__(self, sink: HintSink, interesting: Interesting) -> None:
        self._sink = sink
        self._interesting = interesting
        self._observer = Observer()
        self._observer.start()
        self._watches: dict[bytes, object] = {}
        self.exhausted = False

    def add_root(self, root: bytes) -> None:
        """Watch the tree below a root."""
        if root in self._watches:
            return
        try:
            self._watches[root] = self._observer.schedule(_Handler(self), os.fsdecode(root), recursive=True)
        except OSError as error:
            log.warning("no events from %r: %s", root, error)
            self.exhausted = True

    def add_directory(self, directory: bytes) -> None:
        """Nothing to do: the root's watch covers it."""

    def remove_root(self, root: bytes) -> None:
        """Stop watching a root."""
        watch = self._watches.pop(root, None)
        if watch is not None:
            self._observer.unschedule(watch)  # type: ignore[arg-type]

    def close(self) -> None:
        """End the observer's threads."""
        self._observer.stop()
        self._observer.join(5)

    def heard(self, event: FileSystemEvent) -> None:
        """One event of the library, as hints about both of its paths."""
        if event.event_type in _READ_EVENTS:
            return
        for name in (event.src_path, event.dest_path):
            if name:
                path = os.fsencode(name)
                if self._interesting(path, event.is_directory):
                    changed_tree = event.is_directory and event.event_type != "modified"
                    self._sink(Hint("tree" if changed_tree else "path", path))


class _Handler(FileSystemEventHandler):
    def __init__(self, watcher: RecursiveWatcher) -> None:
        self._watcher = watcher

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Every event takes the same way."""
        self._watcher.heard(event)


if sys.platform == "linux":
    from watchdog.observers.inotify_c import InotifyConstants as In
    from watchdog.observers.inotify_c import (
        InotifyEvent,
        InotifyFD,
        Mask,
        WatchDescriptor,
        inotify_add_watch,
        inotify_rm_watch,
    )

    _MASK = Mask(
        In.IN_MODIFY
        | In.IN_ATTRIB
        | In.IN_CLOSE_WRITE
        | In.IN_MOVED_FROM
        | In.IN_MOVED_TO
        | In.IN_CREATE
        | In.IN_DELETE
        | In.IN_DELETE_SELF
        | In.IN_MOVE_SELF
        | In.IN_DONT_FOLLOW
        | In.IN_ONLYDIR
        | In.IN_EXCL_UNLINK
    )

    class _Inotify(InotifyFD):
        """The library's inotify descriptor and its blocking reader thread, with directories of our own choice."""

        def __init__(self, heard: Callable[[InotifyEvent], None]) -> None:
            super().__init__()
            self._heard = heard

        def handle_event(self, event: InotifyEvent) -> None:
            """One event of the kernel; runs on the reader thread."""
            self._heard(event)

        def watch(self, directory: bytes) -> WatchDescriptor | None:
            """Watch one directory; None where it may not be read. Raises OSError for any other trouble."""
            descriptor = inotify_add_watch(self._inotify_fd, directory, _MASK)
            if descriptor != -1:
                return descriptor
            self._raise_error()
            return None

        def unwatch(self, descriptor: WatchDescriptor) -> None:
            """Drop a watch; one that the kernel has dropped already is no trouble."""
            inotify_rm_watch(self._inotify_fd, descriptor)

    class InotifyWatcher:
        """Linux: one watch a directory."""

        def __init__(self, sink: HintSink, interesting: Interesting) -> None:
            self._sink = sink
            self._interesting = interesting
            self._paths_lock = threading.Lock()
            self._paths: dict[WatchDescriptor, bytes] = {}
            self._descriptors: dict[bytes, WatchDescriptor] = {}
            self._roots: set[bytes] = set()
            self.exhausted = False
            self._inotify = _Inotify(self._heard)
            self._inotify.start()

        def add_root(self, root: bytes) -> None:
            """Remember the root; its directories are added as the scan comes to them."""
            self._roots.add(root)

        def add_directory(self, directory: bytes) -> None:
            """Watch one directory; when the system has no watches left, `exhausted` says so from then on."""
            with self._paths_lock:
                if self.exhausted or directory in self._descriptors:
                    return
                try:
                    descriptor = self._inotify.watch(directory)
                except OSError as error:
                    self._refused(directory, error)
                    return
                if descriptor is None:
                    return
                moved_from = self._paths.get(descriptor)
                if moved_from is not None:
                    self._descriptors.pop(moved_from, None)
                self._paths[descriptor] = directory
                self._descriptors[directory] = descriptor

        def remove_root(self, root: bytes) -> None:
            """Drop the watches of a root."""
            self._roots.discard(root)
            self._drop_below(root)

        def close(self) -> None:
            """End the reader."""
            self._inotify.stop()
            self._inotify.join(5)

        def _heard(self, event: InotifyEvent) -> None:
            if event.is_queue_overflow:
                self._sink(Hint("everything", b""))
                return
            with self._paths_lock:
                directory = self._paths.get(event.wd)
                if event.is_ignored and directory is not None:
                    del self._paths[event.wd]
                    if self._descriptors.get(directory) == event.wd:
                        del self._descriptors[directory]
            if directory is None or event.is_ignored:
                return
            if event.is_delete_self or event.is_move_self or event.mask & In.IN_UNMOUNT:
                if directory in self._roots:
                    self._sink(Hint("tree", directory))
                return
            path = directory + b"/" + event.name if event.name else directory
            is_directory = bool(event.mask & In.IN_ISDIR)
            if is_directory and event.is_moved_from:
                self._drop_below(path)
            if event.name and self._interesting(path, is_directory) and not (is_directory and event.is_modify):
                self._sink(Hint("tree" if is_directory else "path", path))

        def _drop_below(self, top: bytes) -> None:
            """Directories that moved away or are of no interest any more."""
            with self._paths_lock:
                gone = [path for path in self._descriptors if path == top or path.startswith(top + b"/")]
                for path in gone:
                    descriptor = self._descriptors.pop(path)
                    self._paths.pop(descriptor, None)
                    self._inotify.unwatch(descriptor)

        def _refused(self, directory: bytes, error: OSError) -> None:
            if error.errno in (errno.ENOSPC, errno.ENOMEM):
                log.info("the system allows no more watches, from %r on", directory)
                self.exhausted = True
            elif error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                raise error
