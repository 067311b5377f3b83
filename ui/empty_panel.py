"""Shows an EmptyText in the middle of the free room."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QLabel, QPushButton, QVBoxLayout, QWidget

from ui import icons
from ui.empty_states import EmptyText
from ui.theme import GRID, styled


class EmptyPanel(QWidget):
    action_wished = Signal(str)  # Action

    def __init__(self) -> None:
        super().__init__()
        self._shown: EmptyText | None = None
        self._icon = QLabel(alignment=Qt.AlignmentFlag.AlignCenter)
        self._title = styled(QLabel(alignment=Qt.AlignmentFlag.AlignCenter), "Heading")
        self._text = styled(QLabel(alignment=Qt.AlignmentFlag.AlignCenter), "Muted")
        for label in (self._title, self._text):
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setWordWrap(True)
        self._text.setFixedWidth(440)
        self._text.setMinimumHeight(12 * GRID)
        self._text.setAlignment(Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop)
        self._button = styled(QPushButton(), "Primary")
        self._button.clicked.connect(lambda: self._shown and self.action_wished.emit(self._shown.action))
        column = QVBoxLayout(self)
        column.setContentsMargins(8 * GRID, 8 * GRID, 8 * GRID, 16 * GRID)
        column.setSpacing(3 * GRID)
        column.addStretch(1)
        column.addWidget(self._icon)
        column.addWidget(self._title)
        column.addWidget(self._text, 0, Qt.AlignmentFlag.AlignHCenter)
        column.addWidget(self._button, 0, Qt.AlignmentFlag.AlignHCenter)
        column.addStretch(1)

    @property
    def shown(self) -> EmptyText | None:
        return self._shown

    def show_text(self, text: EmptyText | None) -> None:
        self._shown = text
        self._icon.setVisible(text is not None)
        self._title.setText(text.title if text else "")
        self._text.setText(text.text if text else "")
        self._button.setText(text.button if text else "")
        self._button.setVisible(bool(text and text.action))
        self.repaint_icons()

    def repaint_icons(self) -> None:
        if self._shown:
            self._icon.setPixmap(icons.pixmap(self._shown.icon, 48, "muted", self.devicePixelRatioF()))
