"""Files that could not be read, as a Qt list model."""

from __future__ import annotations

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, Qt

from ui import wording
from ui.card_delegate import CARD_ROLE, Card
from ui.clients import Failure

Index = QModelIndex | QPersistentModelIndex
_NOWHERE = QModelIndex()


class ProblemModel(QAbstractListModel):
    def __init__(self) -> None:
        super().__init__()
        self._failures: tuple[Failure, ...] = ()

    def set_failures(self, failures: tuple[Failure, ...]) -> None:
        if failures == self._failures:
            return
        self.beginResetModel()
        self._failures = failures
        self.endResetModel()

    def failure(self, index: Index) -> Failure | None:
        return self._failures[index.row()] if index.isValid() and index.row() < len(self._failures) else None

    def row_of(self, path: str) -> int:
        return next((row for row, failure in enumerate(self._failures) if failure.path == path), -1)

    def rowCount(self, parent: Index = _NOWHERE) -> int:
        return 0 if parent.isValid() else len(self._failures)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        failure = self.failure(index)
        if failure is None:
            return None
        name, folder = wording.shown_name(failure.path), wording.shown_folder(failure.path)
        if role == CARD_ROLE:
            return Card(name, folder, failure.message, badge_path=failure.path, text_colour="bad")
        if role == Qt.ItemDataRole.DisplayRole:
            return name
        if role == Qt.ItemDataRole.ToolTipRole:
            return f"{wording.shown_path(failure.path)}\n{failure.message}"
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{name}, {failure.message}, {folder}"
        return None
