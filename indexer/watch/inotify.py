"""Linux: one inotify watch a directory, laid by the scanner just before it lists that directory."""

from __future__ import annotations

import errno
import logging
import threading
from collections.abc import Callable

from watchdog.observers.inotify_c import InotifyConstants as In
from watchdog.observers.inotify_c import (
    InotifyEvent,
    InotifyFD,
    Mask,
    WatchDescriptor,
    inotify_add_watch,
    inotify_rm_watch,
)

from indexer.watch.hints import Hint, HintSink, Interesting

log = logging.getLogger(__name__)

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
