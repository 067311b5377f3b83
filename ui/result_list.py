"""The list of hits. Announces what the user wants done with one; does nothing itself."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPoint, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QKeyEvent
from PySide6.QtWidgets import QAbstractItemView, QListView, QMenu

from ui import icons
from ui.clients import Hit
from ui.result_delegate import ResultDelegate
from ui.result_model import Index, ResultModel


class ResultList(QListView):
    current_changed = Signal(object)  # Hit, or None
    moved = Signal(object)  # Hit: the user went there
    open_wished = Signal(object)  # Hit
    reveal_wished = Signal(object)  # Hit
    copy_path_wished = Signal(object)  # Hit
    copy_passage_wished = Signal(object)  # Hit

    def __init__(self, model: ResultModel) -> None:
        super().__init__()
        self._model = model
        self._replacing = False
        self.setModel(model)
        self.setItemDelegate(ResultDelegate(self))
        self.setUniformItemSizes(True)
        self.setMouseTracking(True)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setDragEnabled(True)
        self.setDragDropMode(QAbstractItemView.DragDropMode.DragOnly)
        self.setMinimumWidth(280)
        self.setAccessibleName(self.tr("Results"))
        self.doubleClicked.connect(self._double_clicked)

    @property
    def current_hit(self) -> Hit | None:
        return self._model.hit(self.currentIndex())

    def show_hits(self, hits: tuple[Hit, ...], row: int) -> None:
        """Replace the hits and select `row`; the eye keeps its place when the selected hit stays."""
        before = self.current_hit
        offset = self.visualRect(self.currentIndex()).top() if before else 0
        self._replacing = True
        self._model.set_hits(hits)
        index = self._model.index(row, 0) if 0 <= row < len(hits) else QModelIndex()
        self.setCurrentIndex(index)
        self._replacing = False
        if before and index.isValid() and hits[row].key == before.key and row > 0:
            bar = self.verticalScrollBar()
            bar.setValue(bar.value() + self.visualRect(index).top() - offset)
        elif row == 0:
            self.scrollToTop()
        self.current_changed.emit(self.current_hit)

    def step(self, rows: int) -> None:
        """Select the hit `rows` further down, stopping at the ends."""
        count = self._model.rowCount()
        if count:
            row = min(max(self.currentIndex().row() + rows, 0), count - 1)
            self.setCurrentIndex(self._model.index(row, 0))

    def page_rows(self) -> int:
        return max(1, self.viewport().height() // max(1, self.sizeHintForRow(0)) - 1)

    def currentChanged(self, current: Index, previous: Index) -> None:
        super().currentChanged(current, previous)
        if self._replacing:
            return
        hit = self._model.hit(current)
        if hit:
            self.moved.emit(hit)
        self.current_changed.emit(hit)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        hit = self.current_hit
        if hit and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            control = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
            (self.reveal_wished if control else self.open_wished).emit(hit)
            return
        super().keyPressEvent(event)

    def _double_clicked(self, index: QModelIndex) -> None:
        hit = self._model.hit(index)
        if hit:
            self.open_wished.emit(hit)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        hit = self.current_hit
        if hit:
            keyboard = event.reason() == QContextMenuEvent.Reason.Keyboard
            place = self.visualRect(self.currentIndex()).center() if keyboard else event.pos()
            self.menu_for(hit).popup(self.viewport().mapToGlobal(QPoint(place)))

    def menu_for(self, hit: Hit) -> QMenu:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for icon, text, wish in (
            ("open", self.tr("Open file"), self.open_wished),
            ("reveal", self.tr("Show in folder"), self.reveal_wished),
            ("copy", self.tr("Copy path"), self.copy_path_wished),
            ("copy", self.tr("Copy passage"), self.copy_passage_wished),
        ):
            menu.addAction(icons.icon(icon), text, lambda wish=wish: wish.emit(hit))
        return menu
