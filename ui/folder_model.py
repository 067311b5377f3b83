"""Watched folders as a Qt list model."""

from __future__ import annotations

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, Qt

from ui import wording
from ui.card_delegate import CARD_ROLE, Card
from ui.clients import RootView

ROOT_ROLE = Qt.ItemDataRole.UserRole
Index = QModelIndex | QPersistentModelIndex
_NOWHERE = QModelIndex()


class FolderModel(QAbstractListModel):
    """Keeps rows in place when only their numbers change, so that selection and scrolling stay."""

    def __init__(self) -> None:
        super().__init__()
        self._roots: tuple[RootView, ...] = ()
        self._paused = False

    def set_roots(self, roots: tuple[RootView, ...], paused: bool) -> None:
        same_rows = [root.path for root in roots] == [root.path for root in self._roots]
        if same_rows and (roots, paused) == (self._roots, self._paused):
            return
        if not same_rows:
            self.beginResetModel()
        self._roots, self._paused = roots, paused
        if not same_rows:
            self.endResetModel()
        elif roots:
            self.dataChanged.emit(self.index(0, 0), self.index(len(roots) - 1, 0))

    def root(self, index: Index) -> RootView | None:
        return self._roots[index.row()] if index.isValid() and index.row() < len(self._roots) else None

    def rowCount(self, parent: Index = _NOWHERE) -> int:
        return 0 if parent.isValid() else len(self._roots)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        root = self.root(index)
        if root is None:
            return None
        if role == ROOT_ROLE:
            return root
        if role == CARD_ROLE:
            return self._card(root)
        if role == Qt.ItemDataRole.DisplayRole:
            return wording.shown_name(root.path)
        if role == Qt.ItemDataRole.ToolTipRole:
            return wording.shown_path(root.path)
        if role == Qt.ItemDataRole.AccessibleTextRole:
            card = self._card(root)
            return ", ".join(part for part in (card.title, card.tag, card.text, card.path) if part)
        return None

    def _card(self, root: RootView) -> Card:
        tag, kind = self._tag(root)
        counts = [wording.documents(root.documents)]
        if root.waiting:
            counts.append(wording.waiting(root.waiting))
        if root.failed:
            counts.append(wording.problems(root.failed))
        text = " · ".join(counts)
        if root.note:
            text = f"{text} · {root.note}"
        return Card(
            wording.shown_name(root.path), wording.shown_path(root.path), text, tag, kind,
            icon="offline" if root.state == "offline" else "folders",
        )  # fmt: skip

    def _tag(self, root: RootView) -> tuple[str, str]:
        if root.state == "offline":
            return self.tr("Offline"), "warn"
        if self._paused or root.paused:
            return self.tr("Paused"), "warn"
        if root.state == "scanning":
            return self.tr("Checking"), "accent"
        if root.waiting:
            return self.tr("Reading"), "accent"
        return self.tr("Up to date"), "good"
