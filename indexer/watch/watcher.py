"""The system's events about watched folders, as hints. On Linux one inotify watch a directory, laid by the scanner just
before it lists that directory, so that nothing falls between; elsewhere one recursive watch a root.

Read and open events are never asked for: they would wake the indexer whenever any program reads a file.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import Protocol

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer
from watchdog.observers.api import ObservedWatch

from indexer.watch.hints import Hint, HintSink, Interesting

log = logging.getLogger(__name__)

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
    if sys.platform == "linux":
        from indexer.watch.inotify import InotifyWatcher  # the library refuses its import elsewhere

        try:
            return InotifyWatcher(sink, interesting)
        except OSError as error:
            log.info("the system gives no events at all: %s", error)
            return DeafWatcher()
    else:
        return RecursiveWatcher(sink, interesting)


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
        self._watches: dict[bytes, ObservedWatch] = {}
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
            self._observer.unschedule(watch)

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
