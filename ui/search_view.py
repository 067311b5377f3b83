"""The main view: search bar, hits, and the chosen passage in its document."""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QGuiApplication, QKeySequence, QShortcut
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QSplitter, QStackedWidget, QVBoxLayout, QWidget

from ui import wording
from ui.clients import Clients, Excerpt, ExcerptRequest, Hit, IndexStatus, Mode, SearchResponse
from ui.empty_panel import EmptyPanel
from ui.empty_states import empty_text
from ui.preview import Preview
from ui.result_list import ResultList
from ui.result_model import ResultModel
from ui.search_bar import SearchBar
from ui.search_session import SearchSession
from ui.theme import GRID, styled
from ui.view import View

_SETTLE_MS = 40  # holding an arrow key must not ask for the text of every hit it passes
_REPEAT_MS = 2000  # while files come in, the question is asked anew at most this often


class SearchView(View):
    name = "search"
    icon = "search"

    def __init__(self, clients: Clients) -> None:
        super().__init__(clients)
        self.session = SearchSession()
        self._status = IndexStatus()
        self._excerpt_number = 0
        self.model = ResultModel()
        self.bar = SearchBar()
        self.results = ResultList(self.model)
        self.preview = Preview()
        self.empty = EmptyPanel()
        self._settle = QTimer(self, singleShot=True, interval=_SETTLE_MS)
        self._settle.timeout.connect(self._read_excerpt)
        self._repeat = QTimer(self, singleShot=True, interval=_REPEAT_MS)
        self._repeat.timeout.connect(self._ask_again)
        self._lay_out()
        self._connect()
        self._show_state()

    def title(self) -> str:
        return self.tr("Search")

    def enter(self) -> None:
        self.bar.focus()

    def repaint_icons(self) -> None:
        for part in (self.bar, self.preview, self.empty):
            part.repaint_icons()
        self.results.viewport().update()

    def search(self, text: str, mode: Mode = "hybrid") -> None:
        """Ask as if the user had typed `text`."""
        self.bar.modes.set_mode(mode)
        self.bar.box.setText(text)
        self.bar.ask_now()

    # Building

    def _lay_out(self) -> None:
        strip = styled(QFrame(), "Strip")
        top = QVBoxLayout(strip)
        top.setContentsMargins(0, 0, 0, 0)
        top.addWidget(self.bar)
        self._summary = styled(QLabel(), "Muted")
        self._note = styled(QLabel(), "Muted")
        line = QHBoxLayout()
        line.setContentsMargins(5 * GRID, 2 * GRID, 4 * GRID, 2 * GRID)
        line.addWidget(self._summary, 1)
        line.addWidget(self._note)
        left = QWidget()
        column = QVBoxLayout(left)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(line)
        column.addWidget(self.results, 1)
        self.splitter = QSplitter(Qt.Orientation.Horizontal)
        self.splitter.setHandleWidth(1)
        self.splitter.setChildrenCollapsible(False)
        self.splitter.addWidget(left)
        self.splitter.addWidget(self.preview)
        self.splitter.setSizes([480, 560])
        self.splitter.setStretchFactor(1, 1)
        self._stack = QStackedWidget()
        self._stack.addWidget(self.empty)
        self._stack.addWidget(self.splitter)
        page = QVBoxLayout(self)
        page.setContentsMargins(0, 0, 0, 0)
        page.setSpacing(0)
        page.addWidget(strip)
        page.addWidget(self._stack, 1)

    def _connect(self) -> None:
        self.bar.asked.connect(self._asked)
        self.bar.step_wished.connect(self.results.step)
        self.bar.page_wished.connect(lambda pages: self.results.step(pages * self.results.page_rows()))
        self.bar.open_wished.connect(lambda: self._open(self.results.current_hit))
        self.bar.reveal_wished.connect(lambda: self._reveal(self.results.current_hit))
        self.results.current_changed.connect(self._current_changed)
        self.results.moved.connect(lambda hit: self.session.choose(hit.key))
        for widget in (self.results, self.preview):
            widget.open_wished.connect(self._open)
            widget.reveal_wished.connect(self._reveal)
            widget.copy_path_wished.connect(self._copy_path)
            widget.copy_passage_wished.connect(self._copy_passage)
        self.empty.action_wished.connect(self._act)
        self.clients.search.answered.connect(self._answered)
        self.clients.search.excerpt_ready.connect(self._excerpt_ready)
        self.clients.index.status_changed.connect(self._status_changed)
        for keys, action in (
            ("Ctrl+Shift+C", lambda: self._copy_path(self.results.current_hit)),
            ("Ctrl+Alt+C", lambda: self._copy_passage(self.results.current_hit)),
            ("Ctrl+M", self.bar.modes.turn),
            ("F3", lambda: self.preview.step_mark(1)),
            ("Shift+F3", lambda: self.preview.step_mark(-1)),
        ):
            QShortcut(QKeySequence(keys), self, action, context=Qt.ShortcutContext.WidgetWithChildrenShortcut)

    # Asking and answering

    def _asked(self, text: str, mode: Mode) -> None:
        request = self.session.ask(text, mode)
        if request:
            self.clients.search.search(request)
        elif not self.session.text:
            self.results.show_hits((), -1)
        self._show_state()

    def _ask_again(self) -> None:
        request = self.session.repeat()
        if request:
            self.clients.search.search(request)
        elif self.session.waiting:
            self._repeat.start()  # what has changed may not be in the answer that is on its way

    def _answered(self, response: SearchResponse) -> None:
        if not self.session.accept(response):
            return
        # An empty first part says nothing yet: the hits of the question before stay in sight a moment longer.
        if response.hits or response.complete:
            self.results.show_hits(response.hits, self.session.row_to_select(response.hits))
        self._show_state()

    def _status_changed(self, status: IndexStatus) -> None:
        before, self._status = self._status, status
        changed = _searchable(before) != _searchable(status)
        if changed and self.session.text and not self._repeat.isActive():
            self._repeat.start()
        self._show_state()

    def _show_state(self) -> None:
        session = self.session
        text = empty_text(self._status, session.text, session.mode, session.response)
        keep = text is None and (bool(self.model.hits) or session.waiting)
        if text is None and not self.model.hits:
            self.empty.show_text(None)
        elif text is not None and text != self.empty.shown:
            self.empty.show_text(text)
        self._stack.setCurrentIndex(1 if keep and self.model.hits else 0)
        self._summary.setText(self._summary_text())
        self._note.setText(self._note_text())

    def _summary_text(self) -> str:
        weak = sum(hit.weak for hit in self.model.hits)
        count = len(self.model.hits) - weak
        response = self.session.response
        if not self.model.hits or response is None:
            return ""
        results = self.tr("%Ln results", "", count) if count else self.tr("No good match")
        if weak:
            results = self.tr("{0} · {1} weak").format(results, wording.number(weak))
        if response.complete and response.took_ms:
            return self.tr("{0} · {1} ms").format(results, wording.number(round(response.took_ms)))
        return results

    def _note_text(self) -> str:
        response = self.session.response
        if response is None:
            return ""
        return response.note if response.complete else self.tr("Refining by meaning…")

    # The chosen hit

    def _current_changed(self, hit: Hit | None) -> None:
        shown = self.preview.hit
        self.preview.show_hit(hit)
        if hit is None:
            self._settle.stop()
        elif shown is None or shown.key != hit.key or shown.highlights != hit.highlights:
            self._settle.start()

    def _read_excerpt(self) -> None:
        hit = self.preview.hit
        if hit:
            self._excerpt_number += 1
            self.clients.search.read_excerpt(
                ExcerptRequest(self._excerpt_number, hit.document_id, hit.start_char, hit.end_char, self.session.text)
            )

    def _excerpt_ready(self, excerpt: Excerpt) -> None:
        if excerpt.number == self._excerpt_number and self.preview.hit and not excerpt.error:
            self.preview.show_excerpt(excerpt)

    def _open(self, hit: Hit | None) -> None:
        if hit:
            self.clients.desktop.open_file(hit.path)

    def _reveal(self, hit: Hit | None) -> None:
        if hit:
            self.clients.desktop.reveal_file(hit.path)

    def _copy_path(self, hit: Hit | None) -> None:
        if hit:
            QGuiApplication.clipboard().setText(wording.shown_path(hit.path))

    def _copy_passage(self, hit: Hit | None) -> None:
        if hit:
            start, end = hit.passage or (0, len(hit.snippet))
            QGuiApplication.clipboard().setText(hit.snippet[start:end])

    def _act(self, action: str) -> None:
        if action == "add_folder":
            self.add_folder_wished.emit()
        elif action == "search_both":
            self.bar.modes.set_mode("hybrid")
        elif action == "show_problems":
            self.view_wished.emit("problems")
        elif action == "show_folders":
            self.view_wished.emit("folders")


def _searchable(status: IndexStatus) -> tuple[int, int, int]:
    """What decides whether the same question may have another answer."""
    return (status.documents, status.waiting, status.passages_waiting)
