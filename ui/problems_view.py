"""The view of files that could not be read: why, and a way to try again."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHBoxLayout,
    QLabel,
    QListView,
    QMenu,
    QPushButton,
    QStackedWidget,
    QVBoxLayout,
)

from ui import icons, wording
from ui.card_delegate import CardDelegate
from ui.clients import Clients, Failure, IndexStatus
from ui.empty_panel import EmptyPanel
from ui.empty_states import EmptyText
from ui.problem_model import ProblemModel
from ui.theme import GRID, styled
from ui.view import View


class ProblemsView(View):
    name = "problems"
    icon = "problems"

    def __init__(self, clients: Clients) -> None:
        super().__init__(clients)
        self._failed = 0
        self._entered = False
        self.model = ProblemModel()
        self.list = QListView()
        self.list.setModel(self.model)
        self.list.setItemDelegate(CardDelegate(self.list, text_lines=2))
        self.list.setUniformItemSizes(True)
        self.list.setMouseTracking(True)
        self.list.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.list.setAccessibleName(self.tr("Files that could not be read"))
        self.list.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.list.customContextMenuRequested.connect(self._context_menu)
        self.list.doubleClicked.connect(lambda _: self._open())
        self.empty = EmptyPanel()
        self.empty.show_text(
            EmptyText("done", self.tr("No problems"), self.tr("Every file in your folders could be read."))
        )
        self._lay_out()
        self.list.selectionModel().currentChanged.connect(self._show_buttons)
        clients.index.failures_changed.connect(self.show_failures)
        clients.index.status_changed.connect(self._status_changed)
        self.show_failures(())

    def title(self) -> str:
        return self.tr("Problems")

    def enter(self) -> None:
        self._entered = True
        self.clients.index.read_failures()
        self.list.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def repaint_icons(self) -> None:
        self.retry_button.setIcon(icons.icon("retry"))
        self.retry_all_button.setIcon(icons.icon("retry"))
        self.open_button.setIcon(icons.icon("open"))
        self.reveal_button.setIcon(icons.icon("reveal"))
        self.empty.repaint_icons()
        self.list.viewport().update()

    def _lay_out(self) -> None:
        strip = styled(QFrame(), "Strip")
        self.summary = styled(QLabel(), "Muted")
        names = QVBoxLayout()
        names.setSpacing(GRID)
        names.addWidget(styled(QLabel(self.tr("Problems")), "Heading"))
        names.addWidget(self.summary)
        self.open_button = QPushButton(self.tr("Open"))
        self.reveal_button = QPushButton(self.tr("Show in folder"))
        self.retry_button = QPushButton(self.tr("Try again"))
        self.retry_all_button = QPushButton(self.tr("Try all again"))
        self.open_button.clicked.connect(self._open)
        self.reveal_button.clicked.connect(self._reveal)
        self.retry_button.clicked.connect(self._retry)
        self.retry_all_button.clicked.connect(lambda: self.clients.index.retry(()))
        row = QHBoxLayout(strip)
        row.setContentsMargins(6 * GRID, 4 * GRID, 6 * GRID, 4 * GRID)
        row.setSpacing(2 * GRID)
        row.addLayout(names, 1)
        for button in (self.open_button, self.reveal_button, self.retry_button, self.retry_all_button):
            row.addWidget(button)
        self._stack = QStackedWidget()
        self._stack.addWidget(self.empty)
        self._stack.addWidget(self.list)
        page = QVBoxLayout(self)
        page.setContentsMargins(0, 0, 0, 0)
        page.setSpacing(0)
        page.addWidget(strip)
        page.addWidget(self._stack, 1)

    @property
    def current(self) -> Failure | None:
        return self.model.failure(self.list.currentIndex())

    def show_failures(self, failures: tuple[Failure, ...]) -> None:
        before, row = self.current, self.list.currentIndex().row()
        self.model.set_failures(failures)
        if failures:
            found = self.model.row_of(before.path) if before else 0
            row = found if found >= 0 else min(max(row, 0), len(failures) - 1)
            self.list.setCurrentIndex(self.model.index(row, 0))
        self._stack.setCurrentIndex(1 if failures else 0)
        self.summary.setText(
            self.tr("%Ln files could not be read. They are tried again when they change.", "", len(failures))
            if failures
            else ""
        )
        self._show_buttons()
        self.repaint_icons()

    def _status_changed(self, status: IndexStatus) -> None:
        if status.failed != self._failed:
            self._failed = status.failed
            self.badge_changed.emit(status.failed)
            if self._entered:
                self.clients.index.read_failures()

    def _show_buttons(self) -> None:
        for button in (self.open_button, self.reveal_button, self.retry_button):
            button.setEnabled(self.current is not None)
        self.retry_all_button.setEnabled(self.model.rowCount() > 0)

    def _open(self) -> None:
        if self.current:
            self.clients.desktop.open_file(self.current.path)

    def _reveal(self) -> None:
        if self.current:
            self.clients.desktop.reveal_file(self.current.path)

    def _retry(self) -> None:
        if self.current:
            self.clients.index.retry((self.current.path,))

    def _copy(self) -> None:
        if self.current:
            text = f"{wording.shown_path(self.current.path)}: {self.current.message}"
            QGuiApplication.clipboard().setText(text)

    def _context_menu(self, place: QPoint) -> None:
        if self.current is None:
            return
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction(icons.icon("retry"), self.tr("Try again"), self._retry)
        menu.addAction(icons.icon("open"), self.tr("Open file"), self._open)
        menu.addAction(icons.icon("reveal"), self.tr("Show in folder"), self._reveal)
        menu.addAction(icons.icon("copy"), self.tr("Copy path and reason"), self._copy)
        menu.popup(self.list.viewport().mapToGlobal(place))
