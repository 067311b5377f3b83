"""The indexer process: one loop that owns the only writer, and does one small step at a time.

Each turn it obeys commands, then takes the first of these that has something to do: compare with the disk, read a
file's words, embed a batch, read a part of a big file, tidy up. With nothing to do it blocks: no polling, no CPU.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from engine import Encoder, EngineError
from indexer.embed import MeaningStage
from indexer.errors import IndexerError
from indexer.extract import extractor_for
from indexer.extract.process import ExtractProcess, FileError, Interrupted
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
    RootChanged,
    RootRemoved,
    RootState,
    StateChanged,
    Stop,
)
from indexer.store.records import QueueItem, Root
from indexer.store.writer import Writer
from indexer.watch.aggregator import Aggregator
from indexer.watch.filesystem import filesystem_type, is_network, volume_identity
from indexer.watch.hints import Hint
from indexer.watch.ignore import IGNORE_FILES, IgnoreRules
from indexer.watch.roots import SAMPLE_FILES, root_trouble
from indexer.watch.scanner import PRIORITY_BIG, Comparison, Scope
from indexer.watch.walk import absolute, relative
from indexer.watch.watcher import Watcher, open_watcher
from indexer.words import SMALL_ANSWERS, Derivation, Reading, WordStage

log = logging.getLogger(__name__)

Emit = Callable[[Event], None]
LoadEncoder = Callable[[IndexerOptions], Encoder]
Wake = None  # in the inbox: look around, something besides commands has changed

CHANGED_EVENT_S = 0.5
TOKENIZER_STAMP = "tokenizer"
CLEAN_STAMP = "stopped_cleanly"
CHECKED_AT_START_BYTES = 256 << 20
NEVER = float("inf")


def load_encoder(options: IndexerOptions) -> Encoder:
    """The model of the options; raises EngineError."""
    return Encoder.load(options.model, precision=options.precision, workers=options.workers)


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
        self._own = [os.fsencode(os.path.realpath(folder)) for folder in (options.data_dir, *own_folders)]
        self._inbox: queue.SimpleQueue[Command | None] = queue.SimpleQueue()
        self._aggregator = Aggregator(
            options.quiet_ms / 1000, options.longest_quiet_ms / 1000, options.busy_file_pause_s
        )
        self._wake_pending = threading.Event()
        self._writer = Writer.open(options.data_dir)
        self._small = ExtractProcess(options.limits)
        self._large = ExtractProcess(options.limits)
        self._meter = ProgressMeter(emit, options.progress_ms / 1000)
        self._scopes: dict[int, Scope] = {}
        self._comparison: Iterator[None] | None = None
        self._scans_due: dict[int, float] = {}  # root id -> monotonic time of its next full scan
        self._reading: Reading | None = None  # the big file under way
        self._words_turn = False
        self._paused = self._finishing = self._stopping = False
        self._phase: Phase = "starting"
        self._tidy = False
        self._changed_at_s = 0.0
        self._changed_pending = False
        self._told_exhausted = False
        self._watcher: Watcher | None = None
        self._meaning: MeaningStage | None = None
        self._derivation: Derivation
        self._words: WordStage

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

    def _hear(self, hint: Hint) -> None:
        self._aggregator.add(hint)
        if not self._wake_pending.is_set():
            self._wake_pending.set()
            self._inbox.put(Wake)

    # ---- the loop ----

    def run(self) -> None:
        """Work until told to stop, or, with Finish, until the index equals the disk. Raises IndexerError."""
        self._start()
        while not self._stopping:
            busy = not self._paused and self._work()
            if not busy and self._finished():
                break
            self._obey(wait=not busy)
        self._writer.set_stamp(CLEAN_STAMP, "1")
        self._enter("stopped")

    def close(self) -> None:
        """Let go of processes, threads and the store; what is committed stays."""
        if self._watcher is not None:
            self._watcher.close()
        self._small.stop()
        self._large.stop()
        if self._meaning is not None:
            self._meaning.close()
        self._writer.close()

    def _start(self) -> None:
        self._enter("starting")
        if self._writer.stamp(CLEAN_STAMP) == "0" and self._writer.index_size_bytes() <= CHECKED_AT_START_BYTES:
            damage = self._writer.quick_check()
            if damage:
                raise IndexerError(
                    f"The index {self._writer.path} is damaged ({damage[0]}); delete it and it is built anew."
                )
        self._writer.set_stamp(CLEAN_STAMP, "0")
        self._load_model()
        if self._options.watch:
            self._watcher = open_watcher(self._hear, self._interesting)
        for root in self._writer.roots():
            self._scans_due[root.root_id] = 0.0

    def _load_model(self) -> None:
        """Without a model, files are still found by their words; the reason is said."""
        options = self._options
        distrust = False
        try:
            encoder = self._load(options)
        except EngineError as error:
            self._emit(Notice(f"Search by meaning is off: {error}"))
            self._derivation = Derivation(None, options.chunk_target_tokens, options)
        else:
            self._meaning = MeaningStage(self._writer, encoder, options.model, options.batch_tokens)
            self._derivation = Derivation(encoder.token_spans, encoder.chunk_tokens, options)
            self._tokenizer_name = encoder.name
            known = self._writer.stamp(TOKENIZER_STAMP)
            distrust = known is not None and known != encoder.name
        self._words = WordStage(self._writer, self._derivation, self._failed, distrust_partials=distrust)

    def _work(self) -> bool:
        """Do the first step that there is; False where there is none."""
        if self._compare():
            return True
        item = self._next_item()
        if item is not None and item.priority > PRIORITY_BIG and not self._is_under_way(item):
            self._enter("words")
            self._read_small(item)
            self._announce_change()
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
                self._report("")
                return True
        if item is not None:
            self._enter("words")
            self._read_big(item)
            return True
        return False

    def _finished(self) -> bool:
        if not self._finishing or self._paused or self._comparison is not None:
            return False
        waits = [self._aggregator.next_due_s(), *(due - time.monotonic() for due in self._first_scans())]
        due_s = self._writer.next_due_s()
        if due_s is not None:
            waits.append(due_s - time.time())
        # A file that is to be tried again in half a minute or more is not waited for: its failure is on record.
        return not any(wait is not None and wait < 10.0 for wait in waits)

    def _first_scans(self) -> list[float]:
        """Scans that must happen before the index can equal the disk."""
        return [due for due in self._scans_due.values() if due <= time.monotonic()]

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
        now = time.monotonic()
        waits = [due - now for due in self._scans_due.values() if due != NEVER]
        quiet_s = self._aggregator.next_due_s()
        if quiet_s is not None:
            waits.append(quiet_s)
        due_s = self._writer.next_due_s()
        if due_s is not None:
            waits.append(due_s - time.time())
        return max(0.0, min(waits)) if waits else None

    # ---- commands ----

    def _handle(self, command: Command) -> None:
        match command:
            case AddRoot(path):
                self._add_root(os.fsencode(os.path.abspath(path)))
            case RemoveRoot(path):
                self._remove_root(os.fsencode(os.path.abspath(path)))
            case Pause():
                self._paused = True
            case Resume():
                self._paused = False
            case Rescan(path):
                self._rescan(path)
            case Retry(path):
                self._retry(path)
            case Finish():
                self._finishing = True
            case Stop():
                self._stopping = True

    def _add_root(self, path: bytes) -> None:
        for root in self._writer.roots():
            inside = relative(root.path, path)
            if inside == b"":
                self._scans_due[root.root_id] = 0.0
                return
            if inside is not None:
                self._emit(Notice(f"{os.fsdecode(path)} is indexed already, as a part of {os.fsdecode(root.path)}."))
                return
        if not os.path.isdir(path):
            self._emit(Notice(f"{os.fsdecode(path)} is not a folder that can be indexed."))
            return
        for root in self._writer.roots():
            if relative(path, root.path):  # the new one holds it: its files keep their vectors, found by content
                self._remove_root(root.path)
        root = self._writer.add_root(path, identity=volume_identity(path))
        self._scans_due[root.root_id] = 0.0

    def _remove_root(self, path: bytes) -> None:
        for root in self._writer.roots():
            if root.path == path:
                self._forget_scope(root)
                self._comparison = None  # it may hold rows of this root; what it found is found again
                self._writer.remove_root(root.root_id)
                for other in self._scopes:
                    self._scans_due[other] = 0.0
                self._tidy = self._changed_pending = True
                self._emit(RootRemoved(os.fsdecode(path)))

    def _forget_scope(self, root: Root) -> None:
        self._scopes.pop(root.root_id, None)
        self._scans_due.pop(root.root_id, None)
        if self._watcher is not None:
            self._watcher.remove_root(root.path)
        if self._reading is not None and self._reading.item.root_id == root.root_id:
            self._drop_reading()

    def _rescan(self, path: str) -> None:
        for root in self._writer.roots():
            if not path or relative(root.path, os.fsencode(os.path.abspath(path))) is not None:
                self._scans_due[root.root_id] = 0.0

    def _retry(self, path: str) -> None:
        wanted = os.fsencode(os.path.abspath(path)) if path else None
        for root in self._writer.roots():
            for failure in self._writer.failures(root_id=root.root_id):
                if wanted in (None, absolute(root.path, failure.path)):
                    with self._writer.transaction():
                        self._writer.clear_failure(root.root_id, failure.path)
                        self._writer.enqueue(root.root_id, [failure.path], priority=PRIORITY_BIG + 1)

    # ---- comparing with the disk ----

    def _compare(self) -> bool:
        if self._comparison is None:
            self._comparison = self._next_comparison()
        if self._comparison is None:
            return False
        try:
            next(self._comparison)
        except StopIteration:
            self._comparison = None
        return True

    def _next_comparison(self) -> Iterator[None] | None:
        now = time.monotonic()
        hints, overflowed = self._aggregator.due()
        if overflowed:
            self._scans_due = dict.fromkeys(self._scans_due, 0.0)
        due = [root for root in self._writer.roots() if self._scans_due.get(root.root_id, now + 1) <= now]
        if due:
            for hint in hints:  # after the scan
                self._aggregator.add(hint)
            return self._scan_root(due[0])
        return self._look_at(hints) if hints else None

    def _scan_root(self, root: Root) -> Iterator[None]:
        started = time.monotonic()
        self._enter("scanning")
        scope = self._open_scope(root)
        if scope is None:
            self._scans_due[root.root_id] = started + self._options.poll_s
            return
        comparison = self._new_comparison()
        for _ in comparison.tree(scope, b""):
            self._report(os.fsdecode(root.path))
            yield
        yield from comparison.finish()
        took_s = time.monotonic() - started
        self._writer.set_root_settings(
            root.root_id, json.dumps({"mounts": sorted(os.fsdecode(mount) for mount in scope.mounts)})
        )
        self._writer.set_root_scanned(root.root_id, time.time())
        self._settle(comparison)
        self._scans_due[root.root_id] = time.monotonic() + self._scan_interval_s(scope, took_s)
        retry_s = comparison.outcome.retry_in_s
        if retry_s is not None:
            self._scans_due[root.root_id] = time.monotonic() + retry_s
        self._tell_root(scope)

    def _look_at(self, hints: list[Hint]) -> Iterator[None]:
        comparison = self._new_comparison()
        for hint in hints:
            scope, path = self._place(hint.path)
            if scope is None or path is None:
                continue
            if path == b"" or not os.path.isdir(scope.path):
                self._scans_due[scope.root_id] = 0.0  # the root itself changed: a full look, which minds its absence
                continue
            if os.path.basename(path) in IGNORE_FILES:
                directory = os.path.dirname(hint.path)
                scope.rules.forget(directory)
                yield from comparison.tree(scope, relative(scope.path, directory) or b"", urgent=True)
            yield from comparison.path(scope, path)
        yield from comparison.finish()
        self._settle(comparison)

    def _new_comparison(self) -> Comparison:
        on_directory = self._watcher.add_directory if self._watcher is not None else _unwatched
        return Comparison(self._writer, self._derivation, on_directory, self._options.big_file_bytes)

    def _settle(self, comparison: Comparison) -> None:
        outcome = comparison.outcome
        if outcome.deleted or outcome.moved:
            self._changed_pending = self._tidy = True
        self._meter.expect(self._writer.queue_length(), self._writer.pending_count())
        if self._watcher is not None and self._watcher.exhausted and not self._told_exhausted:
            self._told_exhausted = True
            self._emit(Notice(EXHAUSTED))

    def _open_scope(self, root: Root) -> Scope | None:
        """The root as it stands now; None where it is offline, which is noted and told."""
        sample = self._sample(root)
        trouble = root_trouble(root.path, root.identity, bool(sample), sample)
        if trouble:
            if root.status != "offline" or root.reason != trouble:
                self._writer.set_root_status(root.root_id, "offline", trouble)
            self._emit(RootChanged(os.fsdecode(root.path), "offline", trouble))
            self._scopes.pop(root.root_id, None)
            if self._watcher is not None:
                self._watcher.remove_root(root.path)  # its folders may come back as others
            return None
        if root.status != "online":
            self._writer.set_root_status(root.root_id, "online")
        identity = volume_identity(root.path)
        if identity != root.identity:
            self._writer.set_root_identity(root.root_id, identity)
        scope = self._scopes.get(root.root_id)
        if scope is None:
            mounts = {os.fsencode(mount) for mount in json.loads(root.settings).get("mounts", [])}
            network = is_network(filesystem_type(root.path))
            scope = Scope(root.root_id, root.path, IgnoreRules(root.path, self._own), network, mounts)
            self._scopes[root.root_id] = scope
        else:
            scope.rules = IgnoreRules(root.path, self._own)
        if self._watcher is not None:
            self._watcher.add_root(root.path)
        return scope

    def _sample(self, root: Root) -> list[bytes]:
        sample: list[bytes] = []
        for document in self._writer.documents(root.root_id):
            sample.append(absolute(root.path, document.path))
            if len(sample) == SAMPLE_FILES:
                break
        return sample

    def _scan_interval_s(self, scope: Scope, took_s: float) -> float:
        if not self._options.watch:
            return NEVER
        polled = scope.network or (self._watcher is not None and self._watcher.exhausted)
        return max(self._options.poll_s, 30 * took_s) if polled else self._options.rescan_s

    def _tell_root(self, scope: Scope) -> None:
        state: RootState = "watching"
        message = ""
        if scope.network:
            state, message = "polling", "A network folder gives no word of changes: it is compared from time to time."
        elif self._watcher is not None and self._watcher.exhausted:
            state, message = "polling", EXHAUSTED
        self._emit(RootChanged(os.fsdecode(scope.path), state, message))

    def _place(self, path: bytes) -> tuple[Scope | None, bytes | None]:
        for scope in self._scopes.values():
            inside = relative(scope.path, path)
            if inside is not None:
                return scope, inside
        return None, None

    def _interesting(self, path: bytes, is_directory: bool) -> bool:
        """Whether an event is worth a look; called on the watcher's thread, so it only reads."""
        if is_directory:
            return path not in self._own
        return extractor_for(path) is not None or os.path.basename(path) in IGNORE_FILES or _is_bare(path)

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
        return self._reading is not None and self._reading.item.queue_id == item.queue_id

    def _read_small(self, item: QueueItem) -> None:
        """A whole file. One that turns out long takes the big file's place, if that is free."""
        item = self._writer.count_attempt(item)
        root = self._root_path(item.root_id)
        if self._reading is not None and self._reading.path == absolute(root, item.path):
            self._drop_reading()  # it was written to meanwhile: begin anew
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
        """The next part of the big file under way; a newer event on it starts it anew."""
        root = self._root_path(item.root_id)
        try:
            if not self._is_under_way(item):
                self._drop_reading()
                item = self._writer.count_attempt(item)
                self._reading = self._words.begin(item, root, self._large)
            if self._reading is not None:
                if not self._reading.step(whole=False):
                    self._changed_pending = True
                    self._report(os.fsdecode(self._reading.path))
                    return
                self._reading.process.close_file()
        except FileError as error:
            self._words.fail(self._reading.item if self._reading is not None else item, root, error, time.time())
        except Interrupted:
            return
        self._reading = None
        self._file_done(absolute(root, item.path))

    def _drop_reading(self) -> None:
        if self._reading is not None:
            self._reading.process.close_file()
            self._reading = None

    def _file_done(self, path: bytes) -> None:
        self._changed_pending = self._tidy = True
        self._meter.file_done()
        self._report(os.fsdecode(path))

    def _failed(self, path: bytes, kind: str, message: str) -> None:
        self._emit(FileFailed(os.fsdecode(path), kind, message))

    def _root_path(self, root_id: int) -> bytes:
        return next(root.path for root in self._writer.roots() if root.root_id == root_id)

    # ---- in between ----

    def _tidy_up(self) -> bool:
        """With all work done: remove what no document uses, then give the room back. True while there is more."""
        if not self._tidy:
            return False
        if self._writer.queue_length() == 0 and self._writer.purge_orphans():
            return True
        self._writer.tidy()
        if self._meaning is not None:
            self._writer.set_stamp(TOKENIZER_STAMP, self._tokenizer_name)
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
            self._meter.report(self._phase, current, waiting, pending, self._writer.counts().failed)

    def _announce_change(self, *, now: bool = False, always: bool = False) -> None:
        moment = time.monotonic()
        if always or (self._changed_pending and (now or moment - self._changed_at_s >= CHANGED_EVENT_S)):
            self._changed_pending, self._changed_at_s = False, moment
            counts = self._writer.counts()
            self._emit(IndexChanged(counts.documents, counts.chunks, counts.pending_files + counts.pending_chunks))


EXHAUSTED = (
    "The system allows no more watched folders, so changes in some are only seen when Inkling looks, about once a "
    "minute. An administrator can raise the limit: sysctl fs.inotify.max_user_watches=524288."
)


def _is_bare(path: bytes) -> bool:
    """A name without a suffix may be a folder that was deleted or moved away, seen as a file by some systems."""
    return b"." not in os.path.basename(path)


def _unwatched(directory: bytes) -> None:
    """The scan-once indexer hears no events."""
