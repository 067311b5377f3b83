"""The views of the main window, in the order of the rail. A new view is one file and one line here."""

from __future__ import annotations

from ui.folders_view import FoldersView
from ui.problems_view import ProblemsView
from ui.search_view import SearchView
from ui.view import View

VIEWS: tuple[type[View], ...] = (
    SearchView,
    FoldersView,
    ProblemsView,
)
