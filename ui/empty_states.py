"""What is said where results would be: always what is the matter, and the next step. No widgets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from PySide6.QtCore import QCoreApplication

from ui import wording
from ui.clients import IndexStatus, Mode, SearchResponse

translate = QCoreApplication.translate
Action = Literal["", "add_folder", "search_both", "show_problems", "show_folders"]


@dataclass(frozen=True, slots=True)
class EmptyText:
    icon: str
    title: str
    text: str
    action: Action = ""
    button: str = ""


def empty_text(status: IndexStatus, query: str, mode: Mode, response: SearchResponse | None) -> EmptyText | None:
    """The text to show, or None when there are hits (or an answer is still on its way)."""
    if response and response.error:
        return EmptyText("problems", translate("empty", "This search did not work"), response.error)
    if response and response.hits:
        return None
    if not status.roots:
        return _no_folders(status)
    if not query:
        return _ready(status)
    return _nothing_found(status, query, mode) if response and response.complete else None


def _no_folders(status: IndexStatus) -> EmptyText:
    if status.state == "starting":
        return EmptyText("search", translate("empty", "Opening the index"), "")
    return EmptyText(
        "folders",
        translate("empty", "Choose a folder to search"),
        translate(
            "empty",
            "Inkling reads the files in it, on this computer only, and never changes them. "
            "You can also drop a folder here.",
        ),
        "add_folder",
        translate("empty", "Add folder…"),
    )


def _ready(status: IndexStatus) -> EmptyText:
    text = translate("empty", "Type a few words, or ask in a sentence. Put a phrase in \"quotes\" to find it exactly.")
    if status.state == "working" and status.waiting:
        text = translate(
            "empty", "%Ln files are still to be read; what has been read can be searched now.", "", status.waiting
        )
    elif not status.documents:
        text = translate("empty", "No readable files were found in your folders so far.")
        return EmptyText("folders", translate("empty", "Nothing to search yet"), text, "show_folders",
                         translate("empty", "Show folders"))  # fmt: skip
    title = translate("empty", "Search %Ln documents", "", status.documents)
    return EmptyText("search", title, text)


def _nothing_found(status: IndexStatus, query: str, mode: Mode) -> EmptyText:
    shown = query if len(query) <= 60 else query[:59] + "…"
    title = translate("empty", "No good match for “{0}”").format(shown)
    if status.state == "working" and status.waiting:
        text = translate(
            "empty",
            "%Ln files are still to be read. This search repeats itself as they come in.",
            "",
            status.waiting,
        )
        return EmptyText("search", title, text)
    if status.state == "working" and status.passages_waiting and mode != "words":
        text = translate(
            "empty",
            "%Ln passages are still to be understood; until then they are found by their words only. "
            "This search repeats itself meanwhile.",
            "",
            status.passages_waiting,
        )
        return EmptyText("search", title, text)
    if mode != "hybrid":
        only = translate("empty", "You searched by words only.") if mode == "words" else translate(
            "empty", "You searched by meaning only."
        )
        return EmptyText("search", title, only, "search_both", translate("empty", "Search by both"))
    if status.failed:
        text = translate("empty", "%Ln files could not be read; it may be in one of them.", "", status.failed)
        return EmptyText("search", title, text, "show_problems", translate("empty", "Show problems"))
    text = translate("empty", "Try fewer or other words. Searched: {0}.").format(wording.documents(status.documents))
    return EmptyText("search", title, text)
