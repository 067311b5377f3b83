"""The watched folders: which are there, when each is compared with the disk, and what events say in between."""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator

from indexer.extract import extractor_for
from indexer.options import IndexerOptions
from indexer.protocol import Event, Notice, RootChanged, RootRemoved, RootState
from indexer.store.records import Root
from indexer.store.writer import Writer
from indexer.watch.aggregator import Aggregator
from indexer.watch.filesystem import filesystem_type, folder_identity, is_network, mount_points
from indexer.watch.hints import Hint
from indexer.watch.ignore import IGNORE_FILES, IgnoreRules
from indexer.watch.scanner import Comparison, Outcome, Scope
from indexer.watch.volumes import SAMPLE_FILES, root_trouble
from indexer.watch.walk import absolute, exact_path, relative
from indexer.watch.watcher import Watcher, open_watcher
from indexer.words import Derivation

NEVER = float("inf")
EVENTS_ARE_EXACT = sys.platform == "linux"  # elsewhere an event may spell a name otherwise than the disk does
POLL_SHARE = 30  # a comparison may take at most this fraction (1 in 30) of the time where folders are polled

EXHAUSTED = (
    "The system allows no more watched folders, so changes in some are only seen when Inkling looks, about once a "
    "minute. An administrator can raise the limit: sysctl fs.inotify.max_user_watches=524288."
)
NETWORK_FOLDER = "A network folder gives no word of changes: it is compared from time to time."


class RootKeeper:
    """Owns scopes, watches and comparisons. All methods are for the indexer's loop; `wake` is called from the watcher's
    thread when there is something to look at."""

    def __init__(
        self,
        writer: Writer,
        options: IndexerOptions,
        derivation: Derivation,
        own_folders: Iterable[bytes],
        emit: Callable[[Event], None],
        wake: Callable[[], None],
    ) -> None:
        self._writer, self._options, self._derivation = writer, options, derivation
        self._own = list(own_folders)
        self._emit, self._wake = emit, wake
        self._aggregator = Aggregator(
            options.quiet_ms / 1000, options.longest_quiet_ms / 1000, options.busy_file_pause_s
        )
        self._watcher: Watcher | None = open_watcher(self._hear, self._interesting) if options.watch else None
        self._scopes: dict[int, Scope] = {}
        self._due = {root.root_id: 0.0 for root in writer.roots()}  # monotonic time of the next full comparison
        self._comparison: Iterator[None] | None = None
        self._told_exhausted = False
        self.scanning = ""  # the root that is being compared as a whole
        self._changed = False

    def close(self) -> None:
        """End the watcher's thread."""
        if self._watcher is not None:
            self._watcher.close()

    # ---- the loop's view ----

    def step(self) -> bool:
        """Go on with a comparison, or start the next one that is due; False where there is none."""
        if self._comparison is None:
            self._comparison = self._next_comparison()
        if self._comparison is None:
            return False
        try:
            next(self._comparison)
        except StopIteration:
            self._comparison = None
            self.scanning = ""
        return True

    def take_changed(self) -> bool:
        """Whether comparisons moved or removed documents since this was asked last."""
        changed, self._changed = self._changed, False
        return changed

    def wait_s(self) -> float | None:
        """Seconds until `step` has something to do; None: not before an event."""
        now = time.monotonic()
        waits = [due - now for due in self._due.values() if due != NEVER]
        quiet_s = self._aggregator.next_due_s()
        if quiet_s is not None:
            waits.append(quiet_s)
        return max(0.0, min(waits)) if waits else None

    def is_settled(self) -> bool:
        """Whether every root has been compared and no event waits."""
        compared = all(due > time.monotonic() for due in self._due.values())
        return compared and self._comparison is None and self._aggregator.next_due_s() is None

    # ---- commands ----

    def add(self, path: bytes) -> None:
        """Index a folder from now on; one within a root, or none at all, is answered with a sentence."""
        if any(relative(own, os.path.realpath(path)) is not None for own in self._own):
            self._emit(Notice(f"{os.fsdecode(path)} holds Inkling's own files, which are not indexed."))
            return
        for root in self._writer.roots():
            inside = _inside(root.path, path)
            if inside == b"":
                self._due[root.root_id] = 0.0
                return
            if inside is not None:
                self._emit(Notice(f"{os.fsdecode(path)} is indexed already, as a part of {os.fsdecode(root.path)}."))
                return
        if not os.path.isdir(path):
            self._emit(Notice(f"{os.fsdecode(path)} is not a folder that can be indexed."))
            return
        for root in self._writer.roots():
            if _inside(path, root.path):  # the new one holds it: its files keep their vectors, found by content
                self.remove(root.path)
        root = self._writer.add_root(path, identity=folder_identity(path))
        self._due[root.root_id] = 0.0

    def remove(self, path: bytes) -> Root | None:
        """Forget a root and its documents; returns it, None where it was none."""
        roots = self._writer.roots()
        same = [root for root in roots if root.path == path] or [
            root for root in roots if _inside(root.path, path) == b""
        ]
        root = same[0] if same else None
        if root is None:
            self._emit(RootRemoved(os.fsdecode(path), known=False))
            return None
        self._comparison = None  # it may hold rows of this root; what else it found is found again
        self._scopes.pop(root.root_id, None)
        self._due.pop(root.root_id, None)
        if self._watcher is not None:
            self._watcher.remove_root(root.path)
        self._writer.remove_root(root.root_id)
        for other in self._scopes:
            self._due[other] = 0.0
        self._emit(RootRemoved(os.fsdecode(root.path)))
        return root

    def rescan(self, path: bytes) -> None:
        """Compare the root that holds a path, or all of them when it is empty."""
        for root in self._writer.roots():
            if not path or relative(root.path, path) is not None:
                self._due[root.root_id] = 0.0

    # ---- events, on the watcher's thread ----

    def _hear(self, hint: Hint) -> None:
        self._aggregator.add(hint)
        self._wake()

    def _interesting(self, path: bytes, is_directory: bool) -> bool:
        if is_directory:
            return path not in self._own
        name = os.path.basename(path)
        # A name without a suffix may be a folder that is gone: some systems do not say what it was.
        return extractor_for(path) is not None or name in IGNORE_FILES or b"." not in name

    # ---- comparing ----

    def _next_comparison(self) -> Iterator[None] | None:
        now = time.monotonic()
        hints, overflowed = self._aggregator.due()
        if overflowed:
            self._due = dict.fromkeys(self._due, 0.0)
        for root in self._writer.roots():
            if self._due.get(root.root_id, NEVER) <= now:
                for hint in hints:
                    self._aggregator.add(hint)  # for after the scan
                return self._scan(root)
        return self._look_at(hints) if hints else None

    def _scan(self, root: Root) -> Iterator[None]:
        started = time.monotonic()
        scope = self._open(root)
        if scope is None:
            self._due[root.root_id] = started + self._options.poll_s if self._options.watch else NEVER
            return
        self.scanning = os.fsdecode(root.path)
        scope.mounts |= mount_points(root.path)
        comparison = self._new_comparison()
        yield from comparison.tree(scope, b"")
        yield from comparison.finish()
        mounts = sorted(os.fsdecode(mount) for mount in scope.mounts)
        self._writer.set_root_settings(root.root_id, json.dumps({"mounts": mounts}))
        self._writer.set_root_scanned(root.root_id, time.time())
        self._settle(comparison.outcome)
        self._due[root.root_id] = self._next_scan(scope, time.monotonic() - started, comparison.outcome.retry_in_s)
        self._tell(scope)

    def _look_at(self, hints: list[Hint]) -> Iterator[None]:
        comparison = self._new_comparison()
        for hint in hints:
            scope, path = self._place(hint.path)
            if scope is None or path is None:
                continue
            if path == b"" or not os.path.isdir(scope.path):
                self._due[scope.root_id] = 0.0  # the root itself changed: a full look, which minds its absence
                continue
            if os.path.basename(path) in IGNORE_FILES:
                directory = os.path.dirname(hint.path)
                scope.rules.forget(directory)
                yield from comparison.tree(scope, relative(scope.path, directory) or b"", urgent=True)
            yield from comparison.path(scope, path if EVENTS_ARE_EXACT else exact_path(scope.path, path))
        yield from comparison.finish()
        self._settle(comparison.outcome)

    def _new_comparison(self) -> Comparison:
        on_directory = self._watcher.add_directory if self._watcher is not None else _unwatched
        return Comparison(self._writer, self._derivation, on_directory, self._options.big_file_bytes)

    def _settle(self, outcome: Outcome) -> None:
        self._changed = self._changed or bool(outcome.deleted or outcome.moved)
        if self._watcher is not None and self._watcher.exhausted and not self._told_exhausted:
            self._told_exhausted = True
            self._emit(Notice(EXHAUSTED))

    def _next_scan(self, scope: Scope, took_s: float, retry_in_s: float | None) -> float:
        now = time.monotonic()
        if not self._options.watch:
            return NEVER
        if retry_in_s is not None:
            return now + retry_in_s
        polled = scope.network or (self._watcher is not None and self._watcher.exhausted)
        return now + (max(self._options.poll_s, POLL_SHARE * took_s) if polled else self._options.rescan_s)

    def _open(self, root: Root) -> Scope | None:
        """The root as it stands now; None where it is offline, which is noted and told."""
        trouble = root_trouble(root.path, root.identity, self._known_files(root))
        if trouble:
            self._close_root(root, trouble)
            return None
        if root.status != "online":
            self._writer.set_root_status(root.root_id, "online")
        identity = folder_identity(root.path)
        if identity != root.identity:
            self._writer.set_root_identity(root.root_id, identity)
        rules = IgnoreRules(root.path, self._own)
        scope = self._scopes.get(root.root_id)
        if scope is None:
            mounts = {os.fsencode(mount) for mount in json.loads(root.settings).get("mounts", [])}
            scope = Scope(root.root_id, root.path, rules, is_network(filesystem_type(root.path)), mounts)
            self._scopes[root.root_id] = scope
        scope.rules = rules
        if self._watcher is not None:
            self._watcher.add_root(root.path)
        return scope

    def _close_root(self, root: Root, trouble: str) -> None:
        """Offline: its rows stay and are found; it is looked for from time to time."""
        if (root.status, root.reason) != ("offline", trouble):
            self._writer.set_root_status(root.root_id, "offline", trouble)
            self._emit(RootChanged(os.fsdecode(root.path), "offline", trouble))
        self._scopes.pop(root.root_id, None)
        if self._watcher is not None:
            self._watcher.remove_root(root.path)  # its folders may come back as others

    def _known_files(self, root: Root) -> Iterator[bytes]:
        for document in itertools.islice(self._writer.documents(root.root_id), SAMPLE_FILES):
            yield absolute(root.path, document.path)

    def _tell(self, scope: Scope) -> None:
        state: RootState = "watching"
        message = ""
        if scope.network:
            state, message = "polling", NETWORK_FOLDER
        elif self._watcher is not None and self._watcher.exhausted:
            state, message = "polling", EXHAUSTED
        self._emit(RootChanged(os.fsdecode(scope.path), state, message))

    def _place(self, path: bytes) -> tuple[Scope | None, bytes | None]:
        for scope in self._scopes.values():
            inside = relative(scope.path, path)
            if inside is not None:
                return scope, inside
        return None, None


def _inside(root: bytes, path: bytes) -> bytes | None:
    """`relative`, whatever links lead to the two: one folder is not indexed twice under two names."""
    return relative(os.path.realpath(root), os.path.realpath(path))


def _unwatched(directory: bytes) -> None:
    """The scan-once indexer hears no events."""
