"""What the window knows of the rest of Inkling: plain values, and the protocols of those who bring them.

A client answers through Qt signals that arrive in the GUI thread; every method returns at once. The window
never waits for one, and never learns whether a thread, a process or a test stands behind it.

Character offsets count Unicode code points, as Python does; `ui.spans` turns them into Qt's UTF-16 positions.
Paths are strings as `os.fsdecode` gives them: names that are not valid UTF-8 carry surrogates, and are handed
back unchanged. Only `ui.wording.shown_path` makes them fit to be seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from PySide6.QtCore import SignalInstance

Mode = Literal["hybrid", "words", "meaning"]
RootState = Literal["online", "offline", "scanning"]
IndexState = Literal["starting", "idle", "working", "stopped"]
Activity = Literal["checking", "reading", "understanding"]
Appearance = Literal["system", "light", "dark"]
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One question. `number` rises with every request, so that a late answer can be told from the newest.

    `again` marks a question repeated because the index has changed: only its full answer is wanted, since a first
    part would make the hits on the screen flicker.
    """

    number: int
    text: str
    mode: Mode = "hybrid"
    limit: int = 200
    again: bool = False


@dataclass(frozen=True, slots=True)
class Hit:
    """One found passage.

    `highlights` (words) and `passage` (what matched by meaning) are spans of `snippet`;
    `start_char`, `end_char` are the passage's place in the text of its document.
    """

    document_id: int
    path: str
    title: str
    snippet: str
    start_char: int
    end_char: int
    highlights: tuple[Span, ...] = ()
    passage: Span | None = None
    page: int | None = None
    line: int | None = None
    score: float = 0.0
    offline: bool = False
    more: int = 0  # further passages of the same document that matched
    copies: int = 0  # further files that say the same, folded into this hit
    weak: bool = False  # probably no answer; shown behind the others, and said so

    @property
    def key(self) -> tuple[int, int]:
        """What makes two hits of two answers the same hit."""
        return (self.document_id, self.start_char)


@dataclass(frozen=True, slots=True)
class SearchResponse:
    """Hits for request `number`, best first. `complete` is False while a better answer is on its way.

    `error` is a sentence to show in place of hits, `note` one to show beside them.
    """

    number: int
    hits: tuple[Hit, ...]
    complete: bool = True
    took_ms: float = 0.0
    error: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class ExcerptRequest:
    """Asks for the text of a document around a hit; `query` decides which words are marked."""

    number: int
    document_id: int
    start_char: int
    end_char: int
    query: str = ""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Text of a document around a hit. All spans are relative to `text`."""

    number: int
    text: str
    passage: Span | None = None
    highlights: tuple[Span, ...] = ()
    cut_before: bool = False
    cut_after: bool = False
    error: str = ""


@dataclass(frozen=True, slots=True)
class RootView:
    """A watched folder. `waiting` counts files not yet read or not yet understood."""

    path: str
    state: RootState = "online"
    documents: int = 0
    waiting: int = 0
    failed: int = 0
    paused: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """The index as a whole. `message` is a sentence about trouble (or empty).

    `waiting` counts files to be read, `passages_waiting` passages that can be found by words but not yet by meaning.
    """

    state: IndexState = "starting"
    roots: tuple[RootView, ...] = ()
    documents: int = 0
    waiting: int = 0
    passages_waiting: int = 0
    failed: int = 0
    paused: bool = False
    model: str = ""
    size_bytes: int = 0
    message: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """What is being done now. `total` is 0 while it is unknown, `eta_s` None while it cannot be told.

    `done`, `total` and `per_second` count files while their words are read, passages while their meaning is.
    """

    activity: Activity = "reading"
    path: str = ""
    done: int = 0
    total: int = 0
    per_second: float = 0.0
    eta_s: float | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """A file that could not be read, and the sentence that says why."""

    path: str
    kind: str
    message: str
    when_ms: int = 0


class SearchClient(Protocol):
    answered: SignalInstance  # SearchResponse
    excerpt_ready: SignalInstance  # Excerpt

    def search(self, request: SearchRequest) -> None: ...
    def read_excerpt(self, request: ExcerptRequest) -> None: ...


class IndexClient(Protocol):
    status_changed: SignalInstance  # IndexStatus
    progress_changed: SignalInstance  # Progress, or None when nothing is being done
    failures_changed: SignalInstance  # tuple[Failure, ...]

    def add_root(self, path: str) -> None: ...
    def remove_root(self, path: str) -> None: ...
    def set_paused(self, paused: bool) -> None: ...
    def rescan(self) -> None: ...
    def retry(self, paths: tuple[str, ...]) -> None: ...
    def read_failures(self) -> None: ...


class DesktopClient(Protocol):
    failed: SignalInstance  # str: a sentence

    def open_file(self, path: str) -> None: ...
    def reveal_file(self, path: str) -> None: ...


class SettingsClient(Protocol):
    @property
    def appearance(self) -> Appearance: ...
    def set_appearance(self, appearance: Appearance) -> None: ...


@dataclass(frozen=True, slots=True)
class Clients:
    """Everything a view may talk to."""

    search: SearchClient
    index: IndexClient
    desktop: DesktopClient
    settings: SettingsClient
