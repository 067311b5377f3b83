"""The disk against the store: what is new, changed, moved or gone. Events only say where to look; this decides.

Absence is not deletion. A document goes only when its root and the folders above it could be seen, on the volume where
they were, and it was not there; where anything of that fails, its row stays.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from indexer.extract import extractor_for
from indexer.store.records import Document, Failure
from indexer.store.writer import Writer
from indexer.watch.filesystem import entry_kind, mount_points
from indexer.watch.ignore import IgnoreRules
from indexer.watch.walk import Entry, Seen, absolute, walk
from indexer.words import Derivation

STEP_ENTRIES = 400  # looked at between two breaths of the loop
BATCH_ROWS = 500  # written in one transaction
NETWORK_GRACE_S = 60.0  # a network folder must miss many files this long before they are taken as deleted
MANY_FILES, MANY_SHARE = 20, 0.1
RETRIED_KINDS = frozenset(["permission", "locked", "io"])  # that may pass without the file changing

PRIORITY_URGENT = 8  # the user touched it just now
PRIORITY_SMALL, PRIORITY_MEDIUM, PRIORITY_BIG = 3, 2, 0
SMALL_FILE_BYTES = 256 * 1024

T = TypeVar("T")


@dataclass(slots=True)
class Scope:
    """A root that is online, as the scanner needs it. mounts: relative directories where other volumes were seen."""

    root_id: int
    path: bytes
    rules: IgnoreRules
    network: bool = False
    mounts: set[bytes] = field(default_factory=set)
    missing_many_since_s: float | None = None


@dataclass(slots=True)
class Outcome:
    """What a comparison came to."""

    queued: int = 0
    moved: int = 0
    deleted: int = 0
    held_back: int = 0  # absent, but not proven deleted
    retry_in_s: float | None = None  # look again then: a grace period runs
    unreadable: list[tuple[bytes, str]] = field(default_factory=list)  # absolute folder, why


@dataclass(frozen=True, slots=True)
class _Found:
    scope: Scope
    entry: Entry
    urgent: bool
    fresh: bool  # no document stood at this path


class Comparison:
    """One pass: any number of `tree` and `path`, then `finish`, which acts on all of them together, so that a move
    between two of them is seen as one. The generators yield so that the loop can breathe."""

    def __init__(
        self, writer: Writer, derivation: Derivation, on_directory: Callable[[bytes], None], big_file_bytes: int
    ) -> None:
        self._writer = writer
        self._derivation = derivation
        self._on_directory = on_directory
        self._big_file_bytes = big_file_bytes
        self._found: list[_Found] = []
        self._absent: list[tuple[Scope, Document]] = []
        self.outcome = Outcome()
        self.entries = 0

    def tree(self, scope: Scope, under: bytes, *, urgent: bool = False) -> Iterator[None]:
        """Compare all below one folder of a root."""
        seen = Seen()
        documents = self._writer.documents(scope.root_id, under)
        known = next(documents, None)
        for entry in walk(scope.path, under, scope.rules, seen, self._on_directory):
            while known is not None and known.path < entry.path:
                self._miss(scope, known, seen)
                known = next(documents, None)
            here = None
            if known is not None and known.path == entry.path:
                here, known = known, next(documents, None)
            self._look(scope, entry, here, urgent)
            self.entries += 1
            if self.entries % STEP_ENTRIES == 0:
                yield
        while known is not None:
            self._miss(scope, known, seen)
            known = next(documents, None)
        self._note_folders(scope, under, seen)
        yield

    def path(self, scope: Scope, path: bytes) -> Iterator[None]:
        """Compare one name of a root, whatever stands there now."""
        full = absolute(scope.path, path)
        try:
            status = os.lstat(full)
        except (FileNotFoundError, NotADirectoryError):
            self._miss_all(scope, path)
            yield
            return
        except OSError as error:
            self.outcome.unreadable.append((full, error.strerror or str(error)))
            return
        kind = entry_kind(status)
        if kind == "directory":
            if not scope.rules.ignores_deep(full, is_directory=True):
                yield from self.tree(scope, path, urgent=True)
            return
        known = self._writer.document(scope.root_id, path)
        wanted = kind in ("file", "placeholder") and extractor_for(path) is not None
        if wanted and not scope.rules.ignores_deep(full, is_directory=False):
            entry = Entry(path, status.st_size, status.st_mtime_ns, kind == "placeholder")
            self._look(scope, entry, known, urgent=True)
        elif known is not None:  # a link took its place, or it is ignored now
            self._absent.append((scope, known))
        for document in self._writer.documents(scope.root_id, path):  # a folder stood here before
            self._absent.append((scope, document))
        yield

    def finish(self) -> Iterator[None]:
        """Act: moves first, then deletions, then the queue."""
        moved = self._match_moves()
        for batch in _batches(moved):
            with self._writer.transaction():
                for document, found in batch:
                    self._writer.clear_failure(document.root_id, document.path)
                    self._writer.move_document(document.document_id, found.scope.root_id, found.entry.path)
            yield
        self.outcome.moved = len(moved)
        taken = {document.document_id for document, _ in moved}
        gone = self._proven([pair for pair in self._absent if pair[1].document_id not in taken])
        for dead in _batches(gone):
            with self._writer.transaction():
                self._writer.delete_documents([document.document_id for document in dead])
                for document in dead:
                    self._writer.clear_failure(document.root_id, document.path)
            yield
        self.outcome.deleted = len(gone)
        arrived = {(found.scope.root_id, found.entry.path) for _, found in moved}
        waiting = [f for f in self._found if (f.scope.root_id, f.entry.path) not in arrived]
        for new in _batches(waiting):
            self._enqueue(new)
            yield
        self.outcome.queued = len(waiting)

    # ---- looking ----

    def _look(self, scope: Scope, entry: Entry, known: Document | None, urgent: bool) -> None:
        if entry.placeholder:
            if known is None:  # found by its name; what an evicted file said earlier stays as it is
                self._writer.put_document(
                    scope.root_id, entry.path, size=entry.size_bytes, mtime_ns=entry.mtime_ns, content_id=None
                )
            return
        if known is not None and self._is_settled(scope, entry, known):
            return
        self._found.append(_Found(scope, entry, urgent, fresh=known is None))

    def _is_settled(self, scope: Scope, entry: Entry, known: Document) -> bool:
        if self._derivation.accepts(known, entry.size_bytes, entry.mtime_ns):
            return True
        if known.content_id is not None:
            return False
        failure = self._writer.failure(scope.root_id, entry.path)
        if failure is None or failure.kind in RETRIED_KINDS:
            return False
        return _same_file(failure, entry)

    def _miss(self, scope: Scope, document: Document, seen: Seen) -> None:
        if seen.hides(document.path):
            self.outcome.held_back += 1
        else:
            self._absent.append((scope, document))

    def _miss_all(self, scope: Scope, path: bytes) -> None:
        here = self._writer.document(scope.root_id, path)
        if here is not None:
            self._absent.append((scope, here))
        self._absent += [(scope, document) for document in self._writer.documents(scope.root_id, path)]
        self._writer.clear_failure(scope.root_id, path)  # a folder's own failure goes with it

    def _note_folders(self, scope: Scope, under: bytes, seen: Seen) -> None:
        """Folders that cannot be looked into are failures of their own; those that can be again are none any more."""
        for path, reason in seen.unreadable.items():
            if path:
                message = f"Inkling cannot look at this: {reason}."
                self._writer.record_failure(scope.root_id, path, "folder", message)
            self.outcome.unreadable.append((absolute(scope.path, path), reason))
        if under == b"":
            for failure in self._writer.failures(root_id=scope.root_id):
                if failure.kind == "folder" and failure.path not in seen.unreadable:
                    self._writer.clear_failure(scope.root_id, failure.path)
            scope.mounts |= seen.mounts

    # ---- acting ----

    def _match_moves(self) -> list[tuple[Document, _Found]]:
        """Absent documents that stand elsewhere: same size, same time to the nanosecond, same type, one of each.

        Times in whole seconds come from archives and copies, where many files share them: those are left to the hash.
        """
        absent: dict[tuple[int, int, bytes], list[Document]] = {}
        for _, document in self._absent:
            if document.complete and document.mtime_ns % 1_000_000_000:
                absent.setdefault(_fingerprint(document.path, document.size, document.mtime_ns), []).append(document)
        if not absent:
            return []
        fresh: dict[tuple[int, int, bytes], list[_Found]] = {}
        for found in self._found:
            if found.fresh:
                key = _fingerprint(found.entry.path, found.entry.size_bytes, found.entry.mtime_ns)
                if key in absent:
                    fresh.setdefault(key, []).append(found)
        single = [key for key, arrivals in fresh.items() if len(arrivals) == len(absent[key]) == 1]
        pairs = [(absent[key][0], fresh[key][0]) for key in single]
        return [pair for pair in pairs if self._derivation.accepts(pair[0], pair[0].size, pair[0].mtime_ns)]

    def _proven(self, absent: list[tuple[Scope, Document]]) -> list[Document]:
        """Those whose absence is a deletion: the root answers, and their volume is mounted."""
        by_root: dict[int, list[tuple[Scope, Document]]] = {}
        for scope, document in absent:
            by_root.setdefault(scope.root_id, []).append((scope, document))
        proven: list[Document] = []
        for pairs in by_root.values():
            scope = pairs[0][0]
            documents = {document.document_id: document for _, document in pairs}
            gone = [document for document in documents.values() if _may_be_deleted(scope, document.path)]
            missing = tuple(_missing_mounts(scope))
            gone = [document for document in gone if not document.path.startswith(missing)]
            if self._must_wait(scope, len(gone)):
                gone = []
            self.outcome.held_back += len(documents) - len(gone)
            proven += gone
        return proven

    def _must_wait(self, scope: Scope, gone: int) -> bool:
        """A network folder that loses much at once may only have lost its connection."""
        many = gone > max(MANY_FILES, MANY_SHARE * self._writer.document_count(scope.root_id))
        if not scope.network or not many:
            scope.missing_many_since_s = None
            return False
        now = time.monotonic()
        if scope.missing_many_since_s is None:
            scope.missing_many_since_s = now
        left_s = scope.missing_many_since_s + NETWORK_GRACE_S - now
        if left_s <= 0:
            scope.missing_many_since_s = None
            return False
        self.outcome.retry_in_s = left_s
        return True

    def _enqueue(self, batch: list[_Found]) -> None:
        by_kind: dict[tuple[int, int], list[bytes]] = {}
        for found in batch:
            by_kind.setdefault((found.scope.root_id, self._priority(found)), []).append(found.entry.path)
        with self._writer.transaction():
            for (root_id, priority), paths in by_kind.items():
                self._writer.enqueue(root_id, paths, priority=priority)

    def _priority(self, found: _Found) -> int:
        size = found.entry.size_bytes
        if size >= self._big_file_bytes:
            return PRIORITY_BIG
        base = PRIORITY_SMALL if size <= SMALL_FILE_BYTES else PRIORITY_MEDIUM
        return base + PRIORITY_URGENT if found.urgent else base


def _may_be_deleted(scope: Scope, path: bytes) -> bool:
    """Whether the nearest folder above that still stands can be looked at."""
    parent = path
    while parent:
        parent = parent.rpartition(b"/")[0]
        try:
            os.stat(absolute(scope.path, parent))
        except (FileNotFoundError, NotADirectoryError):
            if not parent:
                return False
        except OSError:
            return False
        else:
            return True
    return False


def _missing_mounts(scope: Scope) -> list[bytes]:
    """Folders on which something was mounted that is not any more, with a '/' at the end."""
    missing = [mount for mount in scope.mounts if not os.path.ismount(absolute(scope.path, mount))]
    bound = mount_points(scope.path) if missing else set()
    return [mount + b"/" for mount in missing if mount not in bound]


def _fingerprint(path: bytes, size: int, mtime_ns: int) -> tuple[int, int, bytes]:
    return size, mtime_ns, os.path.splitext(path)[1].lower()


def _same_file(failure: Failure, entry: Entry) -> bool:
    return (failure.size, failure.mtime_ns) == (entry.size_bytes, entry.mtime_ns)


def _batches(rows: list[T]) -> Iterator[list[T]]:
    for start in range(0, len(rows), BATCH_ROWS):
        yield rows[start : start + BATCH_ROWS]
