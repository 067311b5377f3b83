"""The view that manages watched folders."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHBoxLayout,
    QLabel,
    QListView,
    QMenu,
    QMessageBox,
    QPushButton,
    QStackedWidget,
    QVBoxLayout,
)

from ui import icons, wording
from ui.card_delegate import CardDelegate
from ui.clients import Clients, IndexStatus, RootView
from ui.empty_panel import EmptyPanel
from ui.empty_states import empty_text
from ui.folder_model import FolderModel
from ui.theme import GRID, styled
from ui.view import View


class FoldersView(View):
    name = "folders"
    icon = "folders"

    def __init__(self, clients: Clients) -> None:
        super().__init__(clients)
        self._status = IndexStatus()
        self.model = FolderModel()
        self.list = QListView()
        self.list.setModel(self.model)
        self.list.setItemDelegate(CardDelegate(self.list, text_lines=1))
        self.list.setUniformItemSizes(True)
        self.list.setMouseTracking(True)
        self.list.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.list.setAccessibleName(self.tr("Watched folders"))
        self.list.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.list.customContextMenuRequested.connect(self._context_menu)
        self.empty = EmptyPanel()
        self.empty.action_wished.connect(lambda _: self.add_folder_wished.emit())
        self._lay_out()
        self.list.selectionModel().currentChanged.connect(self._show_buttons)
        self.model.modelReset.connect(self._keep_selection)
        clients.index.status_changed.connect(self.show_status)
        QShortcut(QKeySequence.StandardKey.Delete, self.list, self._ask_remove,
                  context=Qt.ShortcutContext.WidgetShortcut)  # fmt: skip
        self.show_status(self._status)

    def title(self) -> str:
        return self.tr("Folders")

    def enter(self) -> None:
        (self.list if self.model.rowCount() else self.add_button).setFocus(Qt.FocusReason.ShortcutFocusReason)

    def repaint_icons(self) -> None:
        self.add_button.setIcon(icons.icon("add", "on_accent"))
        self.pause_button.setIcon(icons.icon("play" if self._status.paused else "pause"))
        self.rescan_button.setIcon(icons.icon("retry"))
        self.remove_button.setIcon(icons.icon("remove"))
        self.empty.repaint_icons()
        self.list.viewport().update()

    def _lay_out(self) -> None:
        self.heading = styled(QLabel(self.tr("Folders")), "Heading")
        self.summary = styled(QLabel(), "Muted")
        self.notice = styled(QLabel(wordWrap=True), "Notice")
        self.add_button = styled(QPushButton(self.tr("Add folder…")), "Primary")
        self.pause_button = QPushButton(self.tr("Pause"))
        self.rescan_button = QPushButton(self.tr("Check now"))
        self.rescan_button.setToolTip(self.tr("Compare all folders with what Inkling knows of them"))
        self.remove_button = QPushButton(self.tr("Remove…"))
        self.add_button.clicked.connect(self.add_folder_wished)
        self.pause_button.clicked.connect(lambda: self.clients.index.set_paused(not self._status.paused))
        self.rescan_button.clicked.connect(self.clients.index.rescan)
        self.remove_button.clicked.connect(self._ask_remove)
        strip = styled(QFrame(), "Strip")
        names = QVBoxLayout()
        names.setSpacing(GRID)
        names.addWidget(self.heading)
        names.addWidget(self.summary)
        row = QHBoxLayout()
        row.setSpacing(2 * GRID)
        row.addLayout(names, 1)
        for button in (self.remove_button, self.rescan_button, self.pause_button, self.add_button):
            row.addWidget(button)
        inside = QVBoxLayout(strip)
        inside.setContentsMargins(6 * GRID, 4 * GRID, 6 * GRID, 4 * GRID)
        inside.setSpacing(3 * GRID)
        inside.addLayout(row)
        inside.addWidget(self.notice)
        self._stack = QStackedWidget()
        self._stack.addWidget(self.empty)
        self._stack.addWidget(self.list)
        page = QVBoxLayout(self)
        page.setContentsMargins(0, 0, 0, 0)
        page.setSpacing(0)
        page.addWidget(strip)
        page.addWidget(self._stack, 1)

    def show_status(self, status: IndexStatus) -> None:
        self._status = status
        self.model.set_roots(status.roots, status.paused)
        parts = [wording.documents(status.documents)]
        if status.size_bytes:
            parts.append(self.tr("index of {0}").format(wording.size(status.size_bytes)))
        if status.model:
            parts.append(self.tr("model {0}").format(status.model))
        self.summary.setText(" · ".join(parts))
        self.notice.setText(status.message)
        self.notice.setVisible(bool(status.message))
        self._stack.setCurrentIndex(1 if status.roots else 0)
        if not status.roots:
            self.empty.show_text(empty_text(status, "", "hybrid", None))
        self.pause_button.setText(self.tr("Resume") if status.paused else self.tr("Pause"))
        self._show_buttons()
        self.repaint_icons()

    def _show_buttons(self) -> None:
        self.remove_button.setEnabled(self.current is not None)
        self.pause_button.setEnabled(bool(self._status.roots))
        self.rescan_button.setEnabled(bool(self._status.roots))

    def _keep_selection(self) -> None:
        """Rows have changed: something stays selected, so that the keyboard has a place to be."""
        if self.model.rowCount():
            self.list.setCurrentIndex(self.model.index(0, 0))
        self._show_buttons()

    @property
    def current(self) -> RootView | None:
        return self.model.root(self.list.currentIndex())

    def _context_menu(self, place: QPoint) -> None:
        root = self.current
        if root is None:
            return
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction(icons.icon("reveal"), self.tr("Show folder"), lambda: self.clients.desktop.open_file(root.path))
        menu.addAction(icons.icon("remove"), self.tr("Remove…"), self._ask_remove)
        menu.popup(self.list.viewport().mapToGlobal(place))

    def _ask_remove(self) -> None:
        root = self.current
        if root is None:
            return
        question = self.removal_question(root)
        question.accepted.connect(lambda: self.clients.index.remove_root(root.path))
        question.open()  # not exec: search and progress go on behind it

    def removal_question(self, root: RootView) -> QMessageBox:
        box = QMessageBox(self)
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        box.setIconPixmap(icons.pixmap("remove", 32, "muted", self.devicePixelRatioF()))
        box.setTextFormat(Qt.TextFormat.PlainText)
        box.setWindowTitle(self.tr("Remove folder"))
        box.setText(self.tr("Stop searching “{0}”?").format(wording.shown_name(root.path)))
        box.setInformativeText(
            self.tr("Inkling forgets what it has read there ({0}). The files themselves are not touched.").format(
                wording.documents(root.documents)
            )
        )
        box.addButton(self.tr("Remove from Inkling"), QMessageBox.ButtonRole.AcceptRole)
        keep = box.addButton(self.tr("Keep"), QMessageBox.ButtonRole.RejectRole)
        box.setDefaultButton(keep)
        box.setEscapeButton(keep)
        return box
