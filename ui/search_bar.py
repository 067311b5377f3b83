"""The box one types into, and the switch between words and meaning. Waits for a pause in the typing."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Signal
from PySide6.QtGui import QAction, QKeyEvent
from PySide6.QtWidgets import QButtonGroup, QFrame, QHBoxLayout, QLineEdit, QToolButton, QWidget

from ui import icons
from ui.clients import Mode
from ui.theme import GRID

PAUSE_MS = 120  # a fluent typist's gap between keys is shorter: one search a word, not one a letter

_STEPS = {
    Qt.Key.Key_Down: ("row", 1), Qt.Key.Key_Up: ("row", -1),
    Qt.Key.Key_PageDown: ("page", 1), Qt.Key.Key_PageUp: ("page", -1),
}  # fmt: skip


class ModeSwitch(QFrame):
    """Three segments, one is on."""

    changed = Signal(str)  # Mode

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("Segments")
        self.setAccessibleName(self.tr("What to search by"))
        self._group = QButtonGroup(self)
        self._modes: list[Mode] = []
        row = QHBoxLayout(self)
        row.setContentsMargins(2, 2, 2, 2)
        row.setSpacing(2)
        self._add(row, "hybrid", self.tr("Both"), self.tr("By words and by meaning, best of both first"))
        self._add(row, "words", self.tr("Words"), self.tr("Only passages with the words themselves"))
        self._add(row, "meaning", self.tr("Meaning"), self.tr("Only by what a passage says, in whatever words"))
        self._group.button(0).setChecked(True)
        self._group.idToggled.connect(self._toggled)

    def _add(self, row: QHBoxLayout, mode: Mode, text: str, tip: str) -> None:
        button = QToolButton()
        button.setText(text)
        button.setToolTip(tip)
        button.setAccessibleDescription(tip)
        button.setCheckable(True)
        self._group.addButton(button, len(self._modes))
        self._modes.append(mode)
        row.addWidget(button)

    def _toggled(self, place: int, on: bool) -> None:
        if on:
            self.changed.emit(self._modes[place])

    @property
    def mode(self) -> Mode:
        return self._modes[self._group.checkedId()]

    def set_mode(self, mode: Mode) -> None:
        self._group.button(self._modes.index(mode)).setChecked(True)

    def turn(self) -> None:
        """The next mode, round and round."""
        self._group.button((self._group.checkedId() + 1) % len(self._modes)).setChecked(True)


class SearchBar(QWidget):
    """Announces the question once the typing pauses; keys that belong to the results go there."""

    asked = Signal(str, str)  # text, Mode
    step_wished = Signal(int)  # rows
    page_wished = Signal(int)  # pages
    open_wished = Signal()
    reveal_wished = Signal()

    def __init__(self, pause_ms: int = PAUSE_MS) -> None:
        super().__init__()
        self.box = QLineEdit()
        self.box.setObjectName("SearchBox")
        self.box.setPlaceholderText(self.tr("Search your files: a few words, or a question"))
        self.box.setAccessibleName(self.tr("Search"))
        self.box.setAccessibleDescription(self.tr("Results appear while you type; arrow keys move among them"))
        self._glass = self.box.addAction(icons.icon("search"), QLineEdit.ActionPosition.LeadingPosition)
        self._clear = QAction(icons.icon("clear"), self.tr("Clear"), self.box)
        self._clear.triggered.connect(self.clear)
        self.box.addAction(self._clear, QLineEdit.ActionPosition.TrailingPosition)
        self._clear.setVisible(False)
        self.modes = ModeSwitch()
        self._pause = QTimer(self, singleShot=True, interval=pause_ms)
        self._pause.timeout.connect(self.ask_now)
        self.box.textChanged.connect(self._typed)
        self.box.installEventFilter(self)
        self.modes.changed.connect(self.ask_now)
        row = QHBoxLayout(self)
        row.setContentsMargins(4 * GRID, 3 * GRID, 4 * GRID, 3 * GRID)
        row.setSpacing(3 * GRID)
        row.addWidget(self.box, 1)
        row.addWidget(self.modes)

    @property
    def text(self) -> str:
        return self.box.text()

    def ask_now(self) -> None:
        self._pause.stop()
        self.asked.emit(self.box.text(), self.modes.mode)

    def clear(self) -> None:
        self.box.clear()
        self.ask_now()

    def focus(self) -> None:
        self.box.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.box.selectAll()

    def repaint_icons(self) -> None:
        self._glass.setIcon(icons.icon("search"))
        self._clear.setIcon(icons.icon("clear"))

    def _typed(self, text: str) -> None:
        self._clear.setVisible(bool(text))
        self._pause.start()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.box and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            return self._key(event)
        return False

    def _key(self, event: QKeyEvent) -> bool:
        key = event.key()
        if key in _STEPS and not event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            unit, count = _STEPS[Qt.Key(key)]
            (self.step_wished if unit == "row" else self.page_wished).emit(count)
            return True
        if key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._enter(bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier))
            return True
        if key == Qt.Key.Key_Escape:
            self.clear()
            return True
        return False

    def _enter(self, control: bool) -> None:
        """Enter acts on what is shown; while a question is still waiting for its pause, it asks instead."""
        if self._pause.isActive():
            self.ask_now()
        else:
            (self.reveal_wished if control else self.open_wished).emit()
