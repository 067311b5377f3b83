"""Runs the real indexer process for a test, hears its events, and compares what it made with the disk."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from app.index_process import IndexClient
from indexer.embed import EMBEDDED_STAMP
from indexer.errors import StoreError
from indexer.extract import extractor_for
from indexer.options import IndexerOptions
from indexer.protocol import Event, FileFailed, IndexChanged, RootChanged, StateChanged
from indexer.store.dump import dump
from indexer.store.reader import Reader

WAIT_S = 60.0


class RunningIndexer:
    """A client of a real indexer process, with its events kept."""

    def __init__(
        self, data_dir: Path, model: Path, *, restarts: int = 0, command: Sequence[str] | None = None, **options: Any
    ) -> None:
        self.data_dir = data_dir
        self.events: list[Event] = []
        self.exit: tuple[int, str] | None = None
        self.roots: list[str] = []
        self._changed = threading.Condition()
        base = IndexerOptions(data_dir=data_dir, model=str(model), precision="fp32", workers=1)
        self.client = IndexClient(replace(base, **options), self._hear, self._ended, restarts=restarts, command=command)

    def _hear(self, event: Event) -> None:
        with self._changed:
            self.events.append(event)
            self._changed.notify_all()

    def _ended(self, code: int, message: str) -> None:
        with self._changed:
            self.exit = (code, message)
            self._changed.notify_all()

    def wait_for(self, condition: Callable[[], bool], timeout_s: float = WAIT_S) -> None:
        """Until the condition holds, looked at after each event."""
        with self._changed:
            found = self._changed.wait_for(condition, timeout_s)
        assert found, f"waited {timeout_s} s in vain; exit {self.exit}; last events: {self.events[-5:]}"

    def wait_idle(self, since: int = 0, timeout_s: float = WAIT_S) -> None:
        """Until it is idle with nothing pending, and has told of a change since event number `since`."""
        self.wait_for(lambda: self._is_idle(since), timeout_s)

    def _is_idle(self, since: int) -> bool:
        changes = [event for event in self.events[since:] if isinstance(event, IndexChanged)]
        states = [event for event in self.events if isinstance(event, StateChanged)]
        seen = {event.path for event in self.events if isinstance(event, RootChanged)}
        if not states or states[-1].phase != "idle" or not seen.issuperset(self.roots):
            return False
        if since and not changes:
            return False  # deletions and moves leave the state as it is: what they changed is told
        return not changes or changes[-1].pending == 0

    def add_root(self, root: Path) -> None:
        """Index a folder; `wait_idle` waits for its first comparison too."""
        self.roots.append(str(root))
        self.client.add_root(str(root))

    def wait_exit(self, timeout_s: float = WAIT_S) -> tuple[int, str]:
        """Until the process has ended for good: its code and last words."""
        self.wait_for(lambda: self.exit is not None, timeout_s)
        assert self.exit is not None
        return self.exit

    def failures(self) -> dict[str, FileFailed]:
        """The failures told of so far, by path."""
        with self._changed:
            return {event.path: event for event in self.events if isinstance(event, FileFailed)}


@contextmanager
def running(data_dir: Path, model: Path, *roots: Path, **options: Any) -> Iterator[RunningIndexer]:
    """A watching indexer with these roots; ended when the block ends."""
    indexer = RunningIndexer(data_dir, model, **options)
    indexer.client.start()
    try:
        for root in roots:
            indexer.add_root(root)
        yield indexer
    finally:
        indexer.client.close()


def index_once(data_dir: Path, model: Path, *roots: Path, **options: Any) -> RunningIndexer:
    """Index the roots to the end in one run."""
    with running(data_dir, model, *roots, watch=False, **options) as indexer:
        indexer.client.finish()
        assert indexer.wait_exit(600.0) == (0, ""), indexer.exit
    return indexer


def picture(data_dir: Path) -> list[dict[str, Any]]:
    """The canonical dump of an index."""
    with Reader.open(data_dir) as reader:
        return list(dump(reader))


def indexed_paths(data_dir: Path) -> dict[str, bool]:
    """Document path below its root -> whether its content is whole."""
    return {path: complete for path, (_, complete) in documents(data_dir).items()}


def documents(data_dir: Path) -> dict[str, tuple[int, bool]]:
    """Document path below its root -> its size and whether its content is whole. None before the index was made."""
    try:
        reader = Reader.open(data_dir)
    except StoreError:
        return {}
    with reader:
        rows = reader.rows(
            "SELECT path, size, coalesce(complete, 0) FROM documents LEFT JOIN contents USING (content_id)"
        )
    return {os.fsdecode(path): (size, bool(complete)) for path, size, complete in rows}


def embedded(data_dir: Path) -> int:
    """How many texts went through the model since the index was made."""
    with Reader.open(data_dir) as reader:
        return int(reader.stamp(EMBEDDED_STAMP) or 0)


def files_on_disk(root: Path) -> set[str]:
    """The files below a root that Inkling reads, relative to it."""
    top = os.fsencode(root)
    found = set()
    for folder, _, names in os.walk(top):
        for name in names:
            if extractor_for(name) is not None:
                found.add(os.fsdecode(os.path.relpath(os.path.join(folder, name), top)))
    return found


def wait_until(condition: Callable[[], bool], timeout_s: float, what: str) -> float:
    """Poll a condition about the index from outside; returns how long it took, in seconds."""
    started = time.monotonic()
    while not condition():
        assert time.monotonic() - started < timeout_s, f"after {timeout_s} s: {what}"
        time.sleep(0.05)
    return time.monotonic() - started
