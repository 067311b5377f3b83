"""Clients without threads or processes: they record what was wished for, and answer when the test says so."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from ui.clients import (
    Appearance,
    Clients,
    Excerpt,
    ExcerptRequest,
    Hit,
    IndexStatus,
    Progress,
    RootView,
    SearchRequest,
    SearchResponse,
)


class FakeSearch(QObject):
    answered = Signal(object)
    excerpt_ready = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[SearchRequest] = []
        self.excerpts: list[ExcerptRequest] = []

    def search(self, request: SearchRequest) -> None:
        self.requests.append(request)

    def read_excerpt(self, request: ExcerptRequest) -> None:
        self.excerpts.append(request)

    def answer(self, *hits: Hit, complete: bool = True, number: int | None = None, **more: object) -> None:
        """Answer the newest request, or request `number`."""
        number = self.requests[-1].number if number is None else number
        self.answered.emit(SearchResponse(number, tuple(hits), complete=complete, **more))

    def answer_excerpt(self, text: str, **more: object) -> None:
        self.excerpt_ready.emit(Excerpt(self.excerpts[-1].number, text, **more))


class FakeIndex(QObject):
    status_changed = Signal(object)
    progress_changed = Signal(object)
    failures_changed = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[object, ...]] = []

    def add_root(self, path: str) -> None:
        self.calls.append(("add", path))

    def remove_root(self, path: str) -> None:
        self.calls.append(("remove", path))

    def set_paused(self, paused: bool) -> None:
        self.calls.append(("pause", paused))

    def rescan(self) -> None:
        self.calls.append(("rescan",))

    def retry(self, paths: tuple[str, ...]) -> None:
        self.calls.append(("retry", *paths))

    def read_failures(self) -> None:
        self.calls.append(("failures",))


class FakeDesktop(QObject):
    failed = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, str]] = []

    def open_file(self, path: str) -> None:
        self.calls.append(("open", path))

    def reveal_file(self, path: str) -> None:
        self.calls.append(("reveal", path))


class FakeSettings:
    def __init__(self) -> None:
        self.appearance: Appearance = "system"

    def set_appearance(self, appearance: Appearance) -> None:
        self.appearance = appearance


class Fakes:
    """All four, typed as what they are."""

    def __init__(self) -> None:
        self.search = FakeSearch()
        self.index = FakeIndex()
        self.desktop = FakeDesktop()
        self.settings = FakeSettings()

    @property
    def clients(self) -> Clients:
        return Clients(self.search, self.index, self.desktop, self.settings)


def marked(text: str) -> tuple[str, tuple[tuple[int, int], ...]]:
    """'a [word] here' -> ('a word here', ((2, 6),))."""
    plain, spans, start = "", [], 0
    for char in text:
        if char == "[":
            start = len(plain)
        elif char == "]":
            spans.append((start, len(plain)))
        else:
            plain += char
    return plain, tuple(spans)


def hit(number: int = 1, path: str = "", snippet: str = "The [tide] came in at noon.", **more: object) -> Hit:
    text, words = marked(snippet)
    path = path or f"/home/ada/Notes/note {number}.md"
    values: dict[str, object] = {
        "document_id": number, "path": path, "title": f"Note {number}", "snippet": text, "highlights": words,
        "start_char": 100 * number, "end_char": 100 * number + len(text),
    }  # fmt: skip
    return Hit(**{**values, **more})


def status(**more: object) -> IndexStatus:
    values: dict[str, object] = {
        "state": "idle", "roots": (RootView("/home/ada/Notes", documents=1204),), "documents": 1204,
        "model": "all-MiniLM-L6-v2", "size_bytes": 48_300_000,
    }  # fmt: skip
    return IndexStatus(**{**values, **more})


def progress(**more: object) -> Progress:
    values: dict[str, object] = {
        "path": "/home/ada/Notes/meeting notes.docx", "done": 312, "total": 1004, "per_second": 14.2, "eta_s": 48.0,
    }  # fmt: skip
    return Progress(**{**values, **more})
