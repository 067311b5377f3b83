"""The window's IndexClient: the indexer process and the index file's figures, as Qt signals."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.index_picture import Figures, IndexPicture
from app.worker import Worker
from indexer.errors import IndexerError
from indexer.options import IndexerOptions
from indexer.protocol import Event
from ui.clients import Failure

if TYPE_CHECKING:  # at run time they are imported on the threads that use them: the window shows first
    from app.index_process import IndexClient
    from indexer.store.reader import Reader

log = logging.getLogger(__name__)

_BEAT_MS = 120  # between two progress signals: at most about eight a second reach the window
_FIGURES_MS = 600  # between two readings of the index file's figures


class IndexBridge(QObject):
    """Lives in the GUI thread. The process is started, told and ended on a worker; events come on its reader thread."""

    status_changed = Signal(object)
    progress_changed = Signal(object)
    failures_changed = Signal(object)
    _heard = Signal()  # from the reader thread: there is something in the inbox
    _seen = Signal(object)  # from the worker: Figures

    def __init__(self, options: IndexerOptions, on_bug: Callable[[Exception], None]) -> None:
        super().__init__()
        self._options = options
        self._picture = IndexPicture()
        self._inbox: list[Event | str] = []  # a str is the message of the end
        self._inbox_lock = threading.Lock()
        self._told = False  # `_heard` was sent and not yet received
        self._commands = Worker("index-commands", on_bug)
        self._figures = Worker("index-figures", on_bug)
        self._source = _FigureSource(options)
        self._client: IndexClient | None = None
        self._closed = False
        self._figures_due = False
        self._beat = QTimer(self, singleShot=True, interval=_BEAT_MS)
        self._beat.timeout.connect(self._deliver)
        self._figures_timer = QTimer(self, singleShot=True, interval=_FIGURES_MS)
        self._figures_timer.timeout.connect(self._figures_timeout)
        self._heard.connect(self._on_heard)
        self._seen.connect(self._on_seen)

    def start(self, folders: tuple[str, ...] = ()) -> None:
        """Start the indexer, and have it watch `folders` besides those it knows."""
        self._read_figures()
        self._commands.post("start", lambda: self._start_client(folders))
        for folder in folders:
            self._picture.add(folder)

    def close(self) -> None:
        """End the indexer and the threads; waits, so call it when the window is gone. No signal comes after it."""
        self._closed = True
        self._commands.close(self._close_client)
        self._figures.close(self._source.close)
        self._beat.stop()
        self._figures_timer.stop()
        # The client holds us by its callbacks. Left to the garbage collector, which runs on any thread, that ring
        # would one day end this QObject on a wrong one.
        self._client = None

    # Wishes of the window

    def add_root(self, path: str) -> None:
        self._picture.add(path)
        self._send(("add", path), lambda client: client.add_root(os.path.abspath(path)))

    def remove_root(self, path: str) -> None:
        self._picture.remove(path)
        self._send(("remove", path), lambda client: client.remove_root(path))

    def set_paused(self, paused: bool) -> None:
        self._send("pause", lambda client: client.pause() if paused else client.resume())

    def rescan(self) -> None:
        self._send("rescan", lambda client: client.rescan())

    def retry(self, paths: tuple[str, ...]) -> None:
        for path in paths or ("",):
            self._retry(path)

    def _retry(self, path: str) -> None:
        self._send(("retry", path), lambda client: client.retry(path))

    def read_failures(self) -> None:
        self.failures_changed.emit(self._picture.figures.failures)
        self._read_figures()

    def _send(self, key: object, command: Callable[[IndexClient], None]) -> None:
        def tell() -> None:
            if self._client is not None:
                command(self._client)

        self._commands.post(key, tell)
        self.status_changed.emit(self._picture.status())

    # On the worker and reader threads

    def _start_client(self, folders: tuple[str, ...]) -> None:
        from app.index_process import IndexClient

        client = IndexClient(self._options, self._put, lambda code, message: self._put(message))
        try:
            client.start()
        except IndexerError as error:
            self._put(str(error))
            return
        self._client = client
        for folder in folders:
            client.add_root(folder)

    def _close_client(self) -> None:
        if self._client is not None:
            self._client.close()

    def _put(self, event: Event | str) -> None:
        with self._inbox_lock:
            self._inbox.append(event)
            told, self._told = self._told, True
        if not told:
            self._heard.emit()

    # In the GUI thread

    @Slot()
    def _on_heard(self) -> None:
        if not self._closed and not self._beat.isActive():
            self._beat.start()

    def _deliver(self) -> None:
        with self._inbox_lock:
            events, self._inbox, self._told = self._inbox, [], False
        before = self._picture.progress()
        figures_changed = False
        for event in events:
            if isinstance(event, str):
                self._picture.ended(event)
            else:
                self._picture.hear(event)
            figures_changed = figures_changed or type(event).__name__ != "Progress"
        progress = self._picture.progress()
        if progress != before:
            self.progress_changed.emit(progress)
        if figures_changed:
            self.status_changed.emit(self._picture.status())
            self._read_figures()

    def _read_figures(self) -> None:
        """Read them now, or when the last reading is long enough ago."""
        if self._figures_timer.isActive():
            self._figures_due = True
            return
        self._figures_due = False
        self._figures_timer.start()
        self._figures.post("figures", self._read_and_tell)

    def _read_and_tell(self) -> None:
        figures = self._source.read()
        if figures is not None:
            self._seen.emit(figures)

    def _figures_timeout(self) -> None:
        if self._figures_due:
            self._read_figures()

    @Slot(object)
    def _on_seen(self, figures: Figures) -> None:
        if self._closed:
            return
        failures_before = self._picture.figures.failures
        self._picture.see(figures)
        self.status_changed.emit(self._picture.status())
        if figures.failures != failures_before:
            self.failures_changed.emit(figures.failures)


class _FigureSource:
    """Reads figures from the index file; used on one worker thread only."""

    def __init__(self, options: IndexerOptions) -> None:
        self._options = options
        self._reader: Reader | None = None

    def read(self) -> Figures | None:
        """The figures, or None while there is no index to read."""
        from indexer.errors import StoreError
        from indexer.store.reader import Reader

        try:
            if self._reader is None:
                self._reader = Reader.open(self._options.data_dir)
            return self._read(self._reader)
        except StoreError as error:
            log.info("no figures now: %s", error)
            self.close()
            return None

    def _read(self, reader: Reader) -> Figures:
        with reader.snapshot():
            roots, documents, counts = reader.roots(), reader.document_counts(), reader.counts()
            failures = reader.failures() if counts.failed else []
            generation = reader.active_generation()
        paths = {root.root_id: os.fsdecode(root.path) for root in roots}
        alone = counts.pending_files if len(roots) == 1 else 0
        return Figures(
            roots=tuple(
                (paths[root.root_id], documents.get(root.root_id, 0), alone, root.status == "offline", root.reason)
                for root in roots
            ),
            documents=counts.documents,
            waiting=counts.pending_files,
            passages_waiting=counts.pending_chunks,
            failures=tuple(
                Failure(os.path.join(paths[failure.root_id], os.fsdecode(failure.path)), failure.kind, failure.message)
                for failure in failures
            ),
            model=generation.stamp.model if generation else self._options.model,
            size_bytes=reader.index_size_bytes(),
        )

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
