"""The main window: rail, views, status line, menus, and folders dropped anywhere on it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QMimeData, Qt, QTimer
from PySide6.QtGui import QAction, QActionGroup, QDragEnterEvent, QDropEvent, QGuiApplication, QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QApplication,
    QFileDialog,
    QHBoxLayout,
    QMainWindow,
    QMenu,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from ui import icons, theme
from ui.clients import Appearance, Clients
from ui.rail import Rail
from ui.search_view import SearchView
from ui.shortcuts import ShortcutSheet
from ui.status_line import StatusLine
from ui.view import View
from ui.views import VIEWS

_MESSAGE_MS = 8000


class MainWindow(QMainWindow):
    def __init__(self, clients: Clients) -> None:
        super().__init__()
        self.clients = clients
        self.setWindowTitle("Inkling")
        self.setWindowIcon(icons.icon("inkling"))
        self.setAcceptDrops(True)
        self.resize(1120, 720)
        self.setMinimumSize(760, 480)
        self.rail = Rail()
        self.stack = QStackedWidget()
        self.status_line = StatusLine()
        self.views: dict[str, View] = {}
        self._message = QTimer(self, singleShot=True, interval=_MESSAGE_MS)
        self._lay_out()
        for kind in VIEWS:
            self._add_view(kind(clients))
        self._build_menus()
        self._connect()
        self.show_view(VIEWS[0].name)

    # Building

    def _lay_out(self) -> None:
        row = QHBoxLayout()
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self.rail)
        row.addWidget(self.stack, 1)
        middle = QWidget()
        column = QVBoxLayout(middle)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(row, 1)
        column.addWidget(self.status_line)
        self.setCentralWidget(middle)

    def _add_view(self, view: View) -> None:
        self.views[view.name] = view
        keys = f"Ctrl+{len(self.views)}"
        self.stack.addWidget(view)
        self.rail.add(view.name, view.icon, view.title(), keys)
        view.view_wished.connect(self.show_view)
        view.add_folder_wished.connect(self.ask_for_folder)
        view.badge_changed.connect(lambda count: self.rail.set_badge(view.name, count))

    def _build_menus(self) -> None:
        file_menu = self.menuBar().addMenu(self.tr("&File"))
        self._action(file_menu, self.tr("&Add folder…"), "Ctrl+O", self.ask_for_folder)
        file_menu.addSeparator()
        quit_action = self._action(file_menu, self.tr("&Quit"), "Ctrl+Q", QApplication.quit)
        quit_action.setMenuRole(QAction.MenuRole.QuitRole)
        view_menu = self.menuBar().addMenu(self.tr("&View"))
        for place, view in enumerate(self.views.values(), 1):
            self._action(view_menu, view.title(), f"Ctrl+{place}", partial(self.show_view, view.name))
        view_menu.addSeparator()
        self._build_appearance(view_menu.addMenu(self.tr("&Appearance")))
        help_menu = self.menuBar().addMenu(self.tr("&Help"))
        self._action(help_menu, self.tr("&Keyboard shortcuts"), "F1", lambda: ShortcutSheet(self).open())
        for keys, action in (
            ("Ctrl+F", self.focus_search),
            ("Ctrl+L", self.focus_search),
            ("F6", lambda: self.turn_view(1)),
            ("Shift+F6", lambda: self.turn_view(-1)),
        ):
            QShortcut(QKeySequence(keys), self, action)

    def _action(self, menu: QMenu, text: str, keys: str, wish: Callable[[], object]) -> QAction:
        action = menu.addAction(text)
        action.setShortcut(QKeySequence(keys))
        action.triggered.connect(lambda _=False: wish())
        return action

    def _build_appearance(self, menu: QMenu) -> None:
        group = QActionGroup(self)
        choices: tuple[tuple[Appearance, str], ...] = (
            ("system", self.tr("Like the &system")),
            ("light", self.tr("&Light")),
            ("dark", self.tr("&Dark")),
        )
        for name, text in choices:
            action = group.addAction(menu.addAction(text))
            action.setCheckable(True)
            action.setChecked(self.clients.settings.appearance == name)
            action.triggered.connect(partial(self._set_appearance, name))

    def _connect(self) -> None:
        index = self.clients.index
        index.status_changed.connect(self.status_line.show_status)
        index.progress_changed.connect(self.status_line.show_progress)
        self.clients.desktop.failed.connect(self.show_message)
        self.status_line.pause_wished.connect(index.set_paused)
        self.status_line.problems_wished.connect(lambda: self.show_view("problems"))
        self.rail.chosen.connect(self.show_view)
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._dress)
        self._message.timeout.connect(lambda: self.statusBar().hide())
        self.statusBar().hide()

    # Acting

    def show_view(self, name: str) -> None:
        self.stack.setCurrentWidget(self.views[name])
        self.rail.select(name)
        self.views[name].enter()

    def turn_view(self, step: int) -> None:
        names = list(self.views)
        here = self.stack.currentIndex()
        self.show_view(names[(here + step) % len(names)])

    def focus_search(self) -> None:
        self.show_view(SearchView.name)

    def search(self, text: str) -> None:
        """Bring the search view to the front with `text` asked."""
        view = self.views[SearchView.name]
        self.show_view(SearchView.name)
        if isinstance(view, SearchView):
            view.search(text)

    def come_forward(self) -> None:
        """Another start of Inkling asked for this window."""
        self.setWindowState((self.windowState() & ~Qt.WindowState.WindowMinimized) | Qt.WindowState.WindowActive)
        self.show()
        self.raise_()
        self.activateWindow()

    def show_message(self, sentence: str) -> None:
        """A sentence that goes away by itself."""
        self.statusBar().show()
        self.statusBar().showMessage(sentence, _MESSAGE_MS)
        self._message.start()

    def ask_for_folder(self) -> None:
        dialog = QFileDialog(self, self.tr("Choose a folder to search"))
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly)
        dialog.fileSelected.connect(self._add_folder)
        dialog.open()  # not exec: search and progress go on behind it

    def _add_folder(self, path: str) -> None:
        if path:
            self.clients.index.add_root(path)
            self.show_view("folders")

    def _set_appearance(self, appearance: Appearance, _checked: bool = True) -> None:
        self.clients.settings.set_appearance(appearance)
        theme.set_appearance(appearance)
        self._dress()

    def _dress(self) -> None:
        application = QApplication.instance()
        if isinstance(application, QApplication):
            theme.apply(application)
        self.rail.repaint_icons()
        for view in self.views.values():
            view.repaint_icons()

    # Folders dropped on the window

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if _dropped_paths(event.mimeData()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        paths = _dropped_paths(event.mimeData())
        for path in paths:
            self.clients.index.add_root(path)
        if paths:
            event.acceptProposedAction()
            self.show_view("folders")


def _dropped_paths(mime: QMimeData) -> list[str]:
    """Local paths among what was dropped. Whether one is a folder is for the indexer to say: asking blocks."""
    return [url.toLocalFile() for url in mime.urls() if url.isLocalFile()]
