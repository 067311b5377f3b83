"""The hits of one answer as a Qt list model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from urllib.parse import quote

from PySide6.QtCore import QAbstractListModel, QMimeData, QModelIndex, QPersistentModelIndex, Qt, QUrl

from ui import wording
from ui.clients import Hit

HIT_ROLE = Qt.ItemDataRole.UserRole
Index = QModelIndex | QPersistentModelIndex
_NOWHERE = QModelIndex()


class ResultModel(QAbstractListModel):
    """Read-only; replaced as a whole, because answers are small and the view draws visible rows only."""

    def __init__(self) -> None:
        super().__init__()
        self._hits: tuple[Hit, ...] = ()

    @property
    def hits(self) -> tuple[Hit, ...]:
        return self._hits

    def set_hits(self, hits: Sequence[Hit]) -> None:
        if tuple(hits) == self._hits:
            return
        self.beginResetModel()
        self._hits = tuple(hits)
        self.endResetModel()

    def hit(self, index: Index) -> Hit | None:
        return self._hits[index.row()] if index.isValid() and index.row() < len(self._hits) else None

    def rowCount(self, parent: Index = _NOWHERE) -> int:
        return 0 if parent.isValid() else len(self._hits)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        hit = self.hit(index)
        if hit is None:
            return None
        if role == HIT_ROLE:
            return hit
        if role == Qt.ItemDataRole.DisplayRole:
            return hit.title
        if role == Qt.ItemDataRole.ToolTipRole:
            return wording.shown_path(hit.path)
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return self._spoken(hit)
        return None

    def _spoken(self, hit: Hit) -> str:
        """What a screen reader says of a hit: the name first, for the listener who moves fast."""
        offline = self.tr("offline") if hit.offline else ""
        weak = self.tr("weak match") if hit.weak else ""
        place, path = wording.place(hit.page, hit.line), wording.shown_path(hit.path)
        parts = (hit.title, place, offline, weak, hit.snippet, path)
        return ", ".join(part for part in parts if part)

    def flags(self, index: Index) -> Qt.ItemFlag:
        flags = super().flags(index)
        return flags | Qt.ItemFlag.ItemIsDragEnabled if index.isValid() else flags

    def mimeTypes(self) -> list[str]:
        return ["text/uri-list"]

    def mimeData(self, indexes: Sequence[QModelIndex]) -> QMimeData:
        """The files themselves, so that a hit can be dragged into a mail or a file manager."""
        mime = QMimeData()
        mime.setUrls([file_url(hit.path) for hit in map(self.hit, indexes) if hit])
        return mime


def file_url(path: str) -> QUrl:
    """A file URL by bytes, so that names that are no text survive."""
    if os.name == "nt":
        return QUrl.fromLocalFile(path)
    return QUrl.fromEncoded(b"file://" + quote(os.fsencode(path)).encode())
