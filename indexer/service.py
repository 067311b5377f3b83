"""The indexer process: one loop that owns the only writer, and does one small step at a time.

Each turn it obeys commands, then takes the first of these that has something to do: compare with the disk, read a
file's words, embed a batch, read a part of a big file, tidy up. With nothing to do it blocks: no polling, no CPU.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from engine import Encoder, EngineError
from engine.catalog import model_path
from indexer.embed import MeaningStage
from indexer.errors import IndexerError
from indexer.extract.process import ExtractProcess, FileError, Interrupted
from indexer.folder_list import read_folders, write_folders
from indexer.options import IndexerOptions
from indexer.progress import ProgressMeter
from indexer.protocol import (
    AddRoot,
    Command,
    Event,
    FileFailed,
    Finish,
    IndexChanged,
    Notice,
    Pause,
    Phase,
    RemoveRoot,
    Rescan,
    Resume,
    Retry,
    StateChanged,
    Stop,
)
from indexer.roots import RootKeeper
from indexer.store.records import QueueItem
from indexer.store.writer import Writer
from indexer.watch.scanner import PRIORITY_BIG
from indexer.watch.walk import absolute
from indexer.words import SMALL_ANSWERS, Derivation, Reading, WordStage

log = logging.getLogger(__name__)

Emit = Callable[[Event], None]
LoadEncoder = Callable[[IndexerOptions], Encoder]
Wake = None  # in the inbox: look around, something besides commands has changed

CHANGED_EVENT_S = 0.5
TOKENIZER_STAMP = "tokenizer"
CLEAN_STAMP = "stopped_cleanly"
CHECKED_AT_START_BYTES = 256 << 20
LONGEST_RETRY_WAIT_S = 10.0
REST_FACTOR = 10.0  # times that a big file's reading took
COUNTING_SHARE = 20  # counting for the window may take 1 in so many parts of the time


def load_encoder(options: IndexerOptions) -> Encoder:
    """The model of the options; raises EngineError."""
    folder = model_path(options.model, options.models_dir)
    return Encoder.load(
        folder, precision=options.precision, workers=options.workers, disk_weights=options.disk_weights
    )


class Service:
    """One data folder's indexer. Commands come through `send`, from any thread; `run` returns when told to end."""

    def __init__(
        self,
        options: IndexerOptions,
        emit: Emit,
        *,
        own_folders: Sequence[Path] = (),
        load: LoadEncoder = load_encoder,
    ) -> None:
        self._options = options
        self._emit = emit
        self._load = load
        weights = () if options.disk_weights is None else (options.disk_weights,)
        self._own = [os.fsencode(os.path.realpath(folder)) for folder in (options.data_dir, *own_folders, *weights)]
        self._inbox: queue.SimpleQueue[Command | None] = queue.SimpleQueue()
        self._wake_pending = threading.Event()
        self._writer = Writer.open(options.data_dir)
        self._small = ExtractProcess(options.limits)
        self._large = ExtractProcess(options.limits)
        self._meter = ProgressMeter(emit, options.progress_ms / 1000)
        self._reading: Reading | None = None  # the big file under way
        self._resting: dict[tuple[int, bytes], float] = {}  # unix seconds before which a big file is not read again
        self._words_turn = False
        self._paused = self._finishing = self._stopping = False
        self._phase: Phase = "starting"
        self._tidy = self._orphans = True  # the process before this one may have been stopped ahead of its own tidying
        self._tell_change_s = 0.0  # monotonic: not before
        self._changed_pending = False
        self._meaning: MeaningStage | None = None
        self._words: WordStage
        self._roots: RootKeeper
        self._started = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- from other threads ----

    def send(self, command: Command) -> None:
        """Hand over a command; a Stop also ends the wait for a slow file."""
        if isinstance(command, Stop):
            self._stopping = True
            self._small.interrupt()
            self._large.interrupt()
        self._inbox.put(command)

    def _wake(self) -> None:
        if not self._wake_pending.is_set():
            self._wake_pending.set()
            self._inbox.put(Wake)

    # ---- the loop ----

    def run(self) -> None:
        """Work until told to stop, or, with Finish, until the index equals the disk. Raises IndexerError."""
        self._start()
        while not self._stopping:
            busy = not self._paused and self._work()
            if not busy:
                self._require_index()
                if self._finished():
                    break
            self._obey(wait=not busy)
        self._writer.set_stamp(CLEAN_STAMP, "1")
        self._enter("stopped")

    def close(self) -> None:
        """Let go of processes, threads and the store; what is committed stays."""
        if self._started:
            self._roots.close()
        self._small.stop()
        self._large.stop()
        if self._meaning is not None:
            self._meaning.close()
        self._writer.close()

    def _start(self) -> None:
        self._enter("starting")
        # A disk that goes bad asks for no stop: who indexes once and looks at the exit code must hear of it.
        doubtful = self._writer.stamp(CLEAN_STAMP) == "0" or not self._options.watch
        if doubtful and self._writer.index_size_bytes() <= CHECKED_AT_START_BYTES:
            damage = self._writer.quick_check()
            if damage:
                raise IndexerError(
                    f"The index {self._writer.path} is damaged ({damage[0]}); delete it and it is built anew."
                )
        if self._writer.stamp(CLEAN_STAMP) is None:
            for folder in read_folders(self._options.data_dir):  # of an index before this one, which was deleted
                self._writer.add_root(folder)
        self._writer.set_stamp(CLEAN_STAMP, "0")
        self._keep_folder_list()
        derivation = self._load_model()
        self._roots = RootKeeper(self._writer, self._options, derivation, self._own, self._emit, self._wake)
        self._started = True

    def _keep_folder_list(self) -> None:
        write_folders(self._options.data_dir, [root.path for root in self._writer.roots()])

    def _require_index(self) -> None:
        """Raises IndexerError where the file was deleted under us: all that is written would go nowhere."""
        if not self._writer.is_in_place():
            raise IndexerError(
                f"The index {self._writer.path} was deleted or replaced while it was in use: start Inkling again, and "
                "it is built anew."
            )

    def _load_model(self) -> Derivation:
        """Without a model, files are still found by their words; the reason is said."""
        options = self._options
        distrust = False
        try:
            encoder = self._load(options)
            self._meaning = MeaningStage(self._writer, encoder, options.model, options.batch_tokens)
        except EngineError as error:
            self._emit(Notice(f"Search by meaning is off: {error}"))
            derivation = Derivation(None, options.chunk_target_tokens, options)
        else:
            derivation = Derivation(encoder.token_spans, encoder.chunk_tokens, options)
            self._tokenizer_name = encoder.name
            known = self._writer.stamp(TOKENIZER_STAMP)
            distrust = known is not None and known != encoder.name
        self._words = WordStage(self._writer, derivation, self._failed, distrust_partials=distrust)
        return derivation

    def _work(self) -> bool:
        """Do the first step that there is; False where there is none."""
        if self._roots.step():
            self._after_comparison()
            return True
        item = self._next_item()
        if item is not None and item.priority > PRIORITY_BIG and not self._is_under_way(item):
            self._enter("words")
            self._read_small(item)
            self._announce_change()
            return True
        if item is None and self._forget():
            return True
        if self._take_turns(item):
            self._announce_change()
            return True
        self._announce_change(now=True)
        return self._tidy_up()

    def _take_turns(self, item: QueueItem | None) -> bool:
        """A batch of vectors and a part of a big file, by turns, so that neither waits for the other."""
        self._words_turn = not self._words_turn
        if self._words_turn and item is not None:
            self._enter("words")
            self._read_big(item)
            return True
        if self._meaning is not None:
            texts = self._meaning.step()
            if texts:
                self._enter("meaning")
                self._changed_pending = self._tidy = True
                self._meter.embedded(texts)
                self._report(self._current_document())
                return True
        if item is not None:
            self._enter("words")
            self._read_big(item)
            return True
        return False

    def _after_comparison(self) -> None:
        if self._roots.scanning:
            self._enter("scanning")
            self._report(self._roots.scanning)
        if self._roots.take_changed():
            self._changed_pending = self._tidy = self._orphans = True

    def _finished(self) -> bool:
        if not self._finishing or self._paused or not self._roots.is_settled():
            return False
        due_s = self._writer.next_due_s()
        # A file that is to be tried again much later is not waited for: its failure is on record.
        return due_s is None or due_s - time.time() > LONGEST_RETRY_WAIT_S

    def _obey(self, *, wait: bool) -> None:
        """Take commands; with `wait`, block until there is one or something else comes due."""
        timeout_s = self._idle_wait_s() if wait else 0.0
        if wait:
            self._enter("paused" if self._paused else "idle")
        while not self._stopping:
            try:
                if wait and timeout_s is not None and timeout_s <= 0:
                    command = self._inbox.get_nowait()
                else:
                    command = self._inbox.get(block=wait, timeout=timeout_s if wait else None)
            except queue.Empty:
                return
            wait = False
            if command is None:
                self._wake_pending.clear()
            else:
                self._handle(command)

    def _idle_wait_s(self) -> float | None:
        if self._paused:
            return None
        waits = [self._roots.wait_s()]
        due_s = self._writer.next_due_s()
        if due_s is not None:
            waits.append(max(0.0, due_s - time.time()))
        return min((wait for wait in waits if wait is not None), default=None)

    # ---- commands ----

    def _handle(self, command: Command) -> None:
        match command:
            case AddRoot(path):
                self._roots.add(_bytes(path))
                self._keep_folder_list()
            case RemoveRoot(path):
                self._remove_root(_bytes(path))
            case Pause():
                self._paused = True
            case Resume():
                self._paused = False
            case Rescan(path):
                self._roots.rescan(_bytes(path) if path else b"")
            case Retry(path):
                self._retry(path)
            case Finish():
                self._finishing = True
            case Stop():
                self._stopping = True

    def _remove_root(self, path: bytes) -> None:
        root = self._roots.remove(path)
        self._keep_folder_list()
        if root is not None:
            self._tidy = self._orphans = self._changed_pending = True
            if self._reading is not None and self._reading.item.root_id == root.root_id:
                self._drop_reading()

    def _retry(self, path: str) -> None:
        wanted = _bytes(path) if path else None
        for root in self._writer.roots():
            for failure in self._writer.failures(root_id=root.root_id):
                path_there = absolute(root.path, failure.path)
                if wanted not in (None, path_there):
                    continue
                if failure.kind == "folder":
                    self._roots.rescan(path_there)
                else:
                    with self._writer.transaction():
                        self._writer.clear_failure(root.root_id, failure.path)
                        self._writer.enqueue(root.root_id, [failure.path], priority=PRIORITY_BIG + 1)

    # ---- reading files ----

    def _next_item(self) -> QueueItem | None:
        """The next small file; with none waiting, the big file under way, else the next big one."""
        items = self._writer.peek(2)
        under_way = [item for item in items if self._is_under_way(item)]
        others = [item for item in items if not self._is_under_way(item)]
        if others and (others[0].priority > PRIORITY_BIG or not under_way):
            return others[0]
        return under_way[0] if under_way else None

    def _is_under_way(self, item: QueueItem) -> bool:
        """Whether this is the file being read. A newer event on it waits: a log that always grows would never end."""
        reading = self._reading
        return reading is not None and (reading.item.root_id, reading.item.path) == (item.root_id, item.path)

    def _read_small(self, item: QueueItem) -> None:
        """A whole file. One that turns out long takes the big file's place, if that is free."""
        item = self._writer.count_attempt(item)
        root = self._root_path(item.root_id)
        try:
            reading = self._words.begin(item, root, self._small)
            while reading is not None and not reading.step(whole=True):
                if reading.answers >= SMALL_ANSWERS and self._reading is None:
                    self._small, self._large = self._large, self._small
                    self._reading = reading
                    return
                if self._stopping:
                    return
        except FileError as error:
            self._words.fail(item, root, error, time.time())
        except Interrupted:
            return
        self._file_done(absolute(root, item.path))

    def _read_big(self, item: QueueItem) -> None:
        """The next part of the big file under way, or the first of another one."""
        root = self._root_path(item.root_id)
        try:
            if not self._is_under_way(item):
                self._drop_reading()
                if self._must_rest(item):
                    return
                item = self._writer.count_attempt(item)
                self._reading = self._words.begin(item, root, self._large)
            if self._reading is not None:
                if not self._reading.step(whole=False):
                    self._changed_pending = True
                    self._report(os.fsdecode(self._reading.path))
                    return
                self._reading.process.close_file()
                took_s = time.monotonic() - self._reading.started_s
                self._resting[item.root_id, item.path] = time.time() + REST_FACTOR * took_s
        except FileError as error:
            self._words.fail(self._reading.item if self._reading is not None else item, root, error, time.time())
        except Interrupted:
            return
        self._reading = None
        self._file_done(absolute(root, item.path))

    def _must_rest(self, item: QueueItem) -> bool:
        """A big file that changes all the time is read again only after a rest many times as long as its reading."""
        until_s = self._resting.pop((item.root_id, item.path), 0.0)
        if not self._options.watch or until_s <= time.time():
            return False
        self._writer.postpone(item, until_s)
        return True

    def _drop_reading(self) -> None:
        if self._reading is not None:
            self._reading.process.close_file()
            self._reading = None

    def _file_done(self, path: bytes) -> None:
        self._changed_pending = self._tidy = self._orphans = True
        self._meter.file_done()
        self._report(os.fsdecode(path))

    def _failed(self, path: bytes, kind: str, message: str) -> None:
        self._emit(FileFailed(os.fsdecode(path), kind, message))

    def _root_path(self, root_id: int) -> bytes:
        return next(root.path for root in self._writer.roots() if root.root_id == root_id)

    # ---- in between ----

    def _forget(self) -> bool:
        """Remove a part of what no document uses any more. Ahead of the vectors, which may take hours: until then, what
        was deleted would stay in the file. But behind the queue, which may name a part as the content of a move."""
        if not self._orphans or self._reading is not None:
            return False
        self._orphans = self._writer.purge_orphans() > 0
        return self._orphans

    def _tidy_up(self) -> bool:
        """With nothing left to do: remove what no document uses, then give the room back. True while there is more."""
        if not self._tidy:
            return False
        if self._writer.purge_orphans():
            return True
        self._writer.tidy()
        if self._meaning is not None:
            self._writer.set_stamp(TOKENIZER_STAMP, self._tokenizer_name)
        if self._reading is None:
            self._large.stop()  # one idle process is enough
        self._tidy = False
        self._announce_change(now=True, always=True)
        self._meter.finished()
        return True

    def _enter(self, phase: Phase) -> None:
        if phase != self._phase or phase == "starting":
            self._phase = phase
            self._emit(StateChanged(phase))

    def _report(self, current: str) -> None:
        if self._meter.is_due():
            waiting, pending = self._writer.queue_length(), self._writer.pending_count()
            self._meter.report(self._phase, current, waiting, pending, self._writer.failure_count())

    def _current_document(self) -> str:
        """A file of the batch that was embedded last."""
        if self._meaning is None or not self._meter.is_due():
            return ""
        found = self._writer.document_of_chunk(self._meaning.last_chunk_id)
        return os.fsdecode(absolute(self._root_path(found[0]), found[1])) if found else ""

    def _announce_change(self, *, now: bool = False, always: bool = False) -> None:
        moment = time.monotonic()
        if always or (self._changed_pending and (now or moment >= self._tell_change_s)):
            counts = self._writer.counts()
            took_s = time.monotonic() - moment
            self._changed_pending = False
            self._tell_change_s = moment + max(CHANGED_EVENT_S, COUNTING_SHARE * took_s)
            self._emit(IndexChanged(counts.documents, counts.chunks, counts.pending_files + counts.pending_chunks))


def _bytes(path: str) -> bytes:
    return os.fsencode(os.path.abspath(path))
