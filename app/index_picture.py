"""What the window shows of the index, put together from the indexer's events and the index file's own figures.

No Qt signals and no threads here: `hear` events, `see` figures, ask for the views.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from indexer import protocol
from ui.clients import Activity, Failure, IndexState, IndexStatus, Progress, RootState, RootView

_ACTIVITIES: dict[str, Activity] = {"scanning": "checking", "words": "reading", "meaning": "understanding"}


@dataclass(frozen=True, slots=True)
class Figures:
    """Read from the index file in one snapshot. roots: path, documents, waiting files, offline, reason."""

    roots: tuple[tuple[str, int, int, bool, str], ...] = ()
    documents: int = 0
    waiting: int = 0
    passages_waiting: int = 0
    failures: tuple[Failure, ...] = ()
    model: str = ""
    size_bytes: int = 0


@dataclass
class IndexPicture:
    """Owned by one thread."""

    figures: Figures = field(default_factory=Figures)
    phase: protocol.Phase = "starting"
    reason: str = ""
    fatal: str = ""
    stopped: bool = False
    _progress: protocol.Progress | None = None
    _states: dict[str, protocol.RootChanged] = field(default_factory=dict)
    _wanted: dict[str, None] = field(default_factory=dict)  # folders just added, not yet in the index file
    _unwanted: set[str] = field(default_factory=set)  # folders just removed, still in it

    def hear(self, event: protocol.Event) -> None:
        """Take in an event of the indexer."""
        match event:
            case protocol.StateChanged():
                self.phase, self.reason = event.phase, event.reason
                if event.phase not in _ACTIVITIES:
                    self._progress = None
            case protocol.Progress():
                self.phase, self._progress = event.phase, event
            case protocol.RootChanged():
                self._states[event.path] = event
                self._wanted.pop(event.path, None)
            case protocol.RootRemoved():
                self._states.pop(event.path, None)
                self._wanted.pop(event.path, None)
                self._unwanted.discard(event.path)
            case protocol.Notice():
                self.reason = event.message
            case protocol.Fatal():
                self.fatal = event.message
            case _:
                pass  # figures are read from the index file itself

    def ended(self, message: str) -> None:
        """The indexer has ended and will not be started again."""
        self.stopped, self._progress = True, None
        self.fatal = self.fatal or message

    def add(self, path: str) -> None:
        """The user added a folder: it is shown at once."""
        self._wanted[path] = None
        self._unwanted.discard(path)

    def remove(self, path: str) -> None:
        """The user removed a folder: it is hidden at once."""
        self._unwanted.add(path)
        self._wanted.pop(path, None)

    def see(self, figures: Figures) -> None:
        """Take in what the index file says."""
        self.figures = figures
        for path, *_ in figures.roots:
            self._wanted.pop(path, None)

    def progress(self) -> Progress | None:
        """The work at hand; None while there is none."""
        heard = self._progress
        if heard is None or self.stopped or heard.phase not in _ACTIVITIES:
            return None
        meaning = heard.phase == "meaning"
        return Progress(
            activity=_ACTIVITIES[heard.phase],
            path=heard.current,
            done=heard.chunks_done if meaning else heard.files_done,
            total=heard.chunks_total if meaning else heard.files_total,
            per_second=heard.per_second,
            eta_s=heard.eta_s,
        )

    def status(self) -> IndexStatus:
        """The index as a whole."""
        figures = self.figures
        return IndexStatus(
            state=self._state(),
            roots=self._roots(),
            documents=figures.documents,
            waiting=figures.waiting,
            passages_waiting=figures.passages_waiting,
            failed=len(figures.failures),
            paused=self.phase == "paused",
            model=Path(figures.model).name,
            size_bytes=figures.size_bytes,
            message=self.fatal or self.reason,
        )

    def _state(self) -> IndexState:
        if self.stopped:
            return "stopped"
        if self.phase in _ACTIVITIES:
            return "working"
        return "starting" if self.phase == "starting" else "idle"

    def _roots(self) -> tuple[RootView, ...]:
        views = []
        for path, documents, waiting, offline, reason in self.figures.roots:
            if path in self._unwanted:
                continue
            state, note = self._root_state(path, offline, reason)
            failed = sum(1 for failure in self.figures.failures if _inside(failure.path, path))
            views.append(RootView(path, state, documents, waiting, failed, note=note))
        return (*views, *(RootView(path, "scanning") for path in self._wanted))

    def _root_state(self, path: str, offline: bool, reason: str) -> tuple[RootState, str]:
        heard = self._states.get(path)
        if heard is not None:
            offline, reason = heard.state == "offline", heard.message
        if offline:
            return "offline", reason
        current = self._progress.current if self._progress else ""
        scanning = self.phase == "scanning" and (not current or _inside(current, path))
        return ("scanning" if scanning else "online"), reason


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
