"""The column of views at the left edge."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFont, QPainter, QPaintEvent
from PySide6.QtWidgets import QButtonGroup, QFrame, QToolButton, QVBoxLayout

from ui import icons, theme, wording
from ui.theme import GRID


class RailButton(QToolButton):
    """An icon over a title, with a small count at its corner."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self.count = 0
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextUnderIcon)
        self.setIconSize(QSize(24, 24))
        self.setFixedWidth(21 * GRID)
        self.setCheckable(True)
        self.setText(title)
        self.setAccessibleName(title)

    def set_count(self, count: int) -> None:
        self.count = count
        self.setAccessibleDescription(wording.number(count) if count else "")
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if not self.count:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        font = QFont(self.font())
        font.setPixelSize(10)
        font.setWeight(QFont.Weight.Bold)
        painter.setFont(font)
        text = str(self.count) if self.count < 1000 else "999+"
        width = max(16, painter.fontMetrics().horizontalAdvance(text) + 8)
        box = QRectF(self.width() / 2 + 6, 5, width, 16)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.current().colour("warn"))
        painter.drawRoundedRect(box, 8, 8)
        painter.setPen(theme.current().colour("window"))
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)
        painter.end()


class Rail(QFrame):
    chosen = Signal(str)  # name of a view

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("Rail")
        self.setFixedWidth(23 * GRID)
        self._group = QButtonGroup(self)
        self._buttons: dict[str, RailButton] = {}
        self._icons: dict[str, str] = {}
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(GRID, 3 * GRID, GRID, 3 * GRID)
        self._column.setSpacing(GRID)
        self._column.addStretch(1)

    def add(self, name: str, icon: str, title: str, keys: str) -> None:
        button = RailButton(title)
        button.setToolTip(f"{title} ({keys})")
        button.clicked.connect(lambda: self.chosen.emit(name))
        self._group.addButton(button)
        self._buttons[name], self._icons[name] = button, icon
        self._column.insertWidget(self._column.count() - 1, button)
        self.repaint_icons()

    def select(self, name: str) -> None:
        self._buttons[name].setChecked(True)

    def set_badge(self, name: str, count: int) -> None:
        self._buttons[name].set_count(count)

    def repaint_icons(self) -> None:
        for name, button in self._buttons.items():
            button.setIcon(icons.icon(self._icons[name]))
