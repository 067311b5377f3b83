"""The keys that work in the window, and the sheet that shows them (F1)."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QGridLayout, QLabel, QVBoxLayout, QWidget

from ui.theme import GRID, styled

translate = QCoreApplication.translate


def rows() -> list[tuple[str, str]]:
    """(keys, what they do), in the order of use. Keys are portable names."""
    return [
        ("Ctrl+F", translate("keys", "Go to the search box")),
        ("Up", translate("keys", "Move among the results, also while typing (Up, Down, Page Up, Page Down)")),
        ("Return", translate("keys", "Open the chosen file")),
        ("Ctrl+Return", translate("keys", "Show the chosen file in its folder")),
        ("Esc", translate("keys", "Clear the search box")),
        ("Ctrl+M", translate("keys", "Both, words or meaning")),
        ("F3", translate("keys", "Next marked word in the preview (Shift+F3: previous)")),
        ("Ctrl+Shift+C", translate("keys", "Copy the path")),
        ("Ctrl+Alt+C", translate("keys", "Copy the passage")),
        ("Ctrl+1", translate("keys", "Search (Ctrl+2: folders, Ctrl+3: problems)")),
        ("F6", translate("keys", "Next view (Shift+F6: previous)")),
        ("Ctrl+O", translate("keys", "Add a folder")),
        ("Ctrl+Q", translate("keys", "Quit")),
        ("F1", translate("keys", "This list")),
    ]


class ShortcutSheet(QDialog):
    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(self.tr("Keyboard shortcuts"))
        grid = QGridLayout()
        grid.setHorizontalSpacing(6 * GRID)
        grid.setVerticalSpacing(2 * GRID)
        for place, (keys, text) in enumerate(rows()):
            native = QKeySequence(keys).toString(QKeySequence.SequenceFormat.NativeText)
            grid.addWidget(styled(QLabel(native), "Tag"), place, 0, Qt.AlignmentFlag.AlignLeft)
            grid.addWidget(QLabel(text), place, 1)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.reject)
        column = QVBoxLayout(self)
        column.setContentsMargins(6 * GRID, 5 * GRID, 6 * GRID, 4 * GRID)
        column.setSpacing(5 * GRID)
        column.addLayout(grid)
        column.addWidget(buttons)
