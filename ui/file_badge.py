"""The small sign in front of a file that says its type: a tinted square with a short word."""

from __future__ import annotations

import os

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFont, QPainter
from PySide6.QtWidgets import QWidget

from ui import theme

SIZE = 40  # pixels

# A hue in degrees for each family of types; what is not listed is grey.
_HUES = {
    "pdf": 4, "docx": 217, "doc": 217, "odt": 217, "rtf": 217, "xlsx": 145, "xls": 145, "ods": 145, "csv": 145,
    "pptx": 24, "ppt": 24, "odp": 24, "md": 262, "markdown": 262, "html": 190, "htm": 190, "epub": 300,
    "eml": 45, "mbox": 45, "msg": 45, "zip": 35, "py": 205, "json": 90, "xml": 90,
}  # fmt: skip


def label(path: str) -> str:
    """At most four letters: the extension, or TXT for a file without one."""
    extension = os.path.splitext(path)[1][1:].upper()
    if not extension.isascii() or not extension.isalnum():
        return "TXT"
    return {"MARKDOWN": "MD", "HTM": "HTML"}.get(extension, extension[:4])


def colours(path: str, dark: bool) -> tuple[QColor, QColor]:
    """Ground and letters."""
    hue = _HUES.get(os.path.splitext(path)[1][1:].lower())
    saturation = 0.0 if hue is None else 0.55
    ground = QColor.fromHslF((hue or 0) / 360, saturation * 0.75, 0.20 if dark else 0.93)
    letters = QColor.fromHslF((hue or 0) / 360, saturation, 0.78 if dark else 0.32)
    return ground, letters


def paint(painter: QPainter, rect: QRectF, path: str) -> None:
    ground, letters = colours(path, theme.current().dark)
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(ground)
    painter.drawRoundedRect(rect, 8, 8)
    font = QFont(painter.font())
    font.setPixelSize(11 if len(label(path)) > 3 else 12)
    font.setWeight(QFont.Weight.Bold)
    painter.setFont(font)
    painter.setPen(letters)
    painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, label(path))
    painter.restore()


class FileBadge(QWidget):
    """The sign as a widget of its own, for headers."""

    def __init__(self) -> None:
        super().__init__()
        self._path = ""
        self.setFixedSize(SIZE, SIZE)

    def set_path(self, path: str) -> None:
        self._path = path
        self.update()

    def paintEvent(self, event: object) -> None:
        painter = QPainter(self)
        paint(painter, QRectF(self.rect()), self._path)
        painter.end()
