import pytest
from PySide6.QtCore import QMimeData, QPoint, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QFileDialog,
    QLineEdit,
    QTextEdit,
    QWidget,
)
from pytestqt.qtbot import QtBot

from tests.ui.fakes import Fakes, hit, progress, status
from ui import theme
from ui.main_window import MainWindow
from ui.shortcuts import ShortcutSheet
from ui.views import VIEWS


@pytest.mark.parametrize("kind", VIEWS)
def test_every_view_has_a_name_a_title_an_icon_and_a_key(window: MainWindow, kind: type) -> None:
    view = window.views[kind.name]
    assert view.title() and view.icon
    window.show_view(kind.name)
    assert window.stack.currentWidget() is view
    assert window.rail._buttons[kind.name].isChecked()


def test_keys_turn_the_views(qtbot: QtBot, window: MainWindow) -> None:
    qtbot.keyClick(window, Qt.Key.Key_2, Qt.KeyboardModifier.ControlModifier)
    assert window.stack.currentWidget() is window.views["folders"]
    qtbot.keyClick(window, Qt.Key.Key_F6)
    assert window.stack.currentWidget() is window.views["problems"]
    qtbot.keyClick(window, Qt.Key.Key_F6)
    assert window.stack.currentWidget() is window.views["search"]
    qtbot.keyClick(window, Qt.Key.Key_F6, Qt.KeyboardModifier.ShiftModifier)
    assert window.stack.currentWidget() is window.views["problems"]


@pytest.mark.parametrize("key", [Qt.Key.Key_F, Qt.Key.Key_L])
def test_the_search_box_is_one_key_away(qtbot: QtBot, window: MainWindow, key: Qt.Key) -> None:
    window.show_view("folders")
    qtbot.keyClick(window, key, Qt.KeyboardModifier.ControlModifier)
    assert isinstance(window.focusWidget(), QLineEdit)


def test_f1_shows_the_keys(qtbot: QtBot, window: MainWindow) -> None:
    qtbot.keyClick(window, Qt.Key.Key_F1)
    assert window.findChild(ShortcutSheet) is not None


def test_the_box_has_the_focus_from_the_start(window: MainWindow) -> None:
    assert isinstance(window.focusWidget(), QLineEdit)


def test_every_widget_that_takes_the_focus_has_a_name_for_screen_readers(
    window: MainWindow, fakes: Fakes
) -> None:
    fakes.index.status_changed.emit(status(failed=1))
    fakes.index.progress_changed.emit(progress())
    nameless = []
    for widget in window.findChildren(QWidget):
        takes_focus = isinstance(widget, QAbstractButton | QAbstractItemView | QLineEdit | QTextEdit)
        text = widget.text() if isinstance(widget, QAbstractButton) else ""
        internal = (widget.objectName() or "").startswith("qt_") or widget.parent() in window.findChildren(QLineEdit)
        if takes_focus and not widget.isHidden() and not internal and not (widget.accessibleName() or text):
            nameless.append(widget)
    assert not nameless


def drop(window: MainWindow, *urls: QUrl) -> None:
    mime = QMimeData()
    mime.setUrls(urls)
    event = QDropEvent(
        QPoint(10, 10), Qt.DropAction.CopyAction, mime, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    )
    window.dropEvent(event)


def test_dropped_folders_are_added(window: MainWindow, fakes: Fakes) -> None:
    drop(window, QUrl.fromLocalFile("/home/ada/Notes"), QUrl("https://example.org/"))
    assert fakes.index.calls == [("add", "/home/ada/Notes")]
    assert window.stack.currentWidget() is window.views["folders"]


def test_adding_asks_for_a_folder(window: MainWindow, fakes: Fakes) -> None:
    window.views["folders"].add_folder_wished.emit()
    dialog = window.findChild(QFileDialog)
    assert dialog is not None and dialog.fileMode() == QFileDialog.FileMode.Directory
    dialog.fileSelected.emit("/home/ada/Books")
    dialog.reject()
    assert fakes.index.calls == [("add", "/home/ada/Books")]


def test_the_appearance_is_kept_and_worn_at_once(window: MainWindow, fakes: Fakes) -> None:
    for appearance in ("dark", "light"):
        action = next(a for a in window.findChildren(type(window.menuBar().actions()[0]))
                      if a.text().replace("&", "").lower() == appearance)  # fmt: skip
        action.trigger()
        assert fakes.settings.appearance == appearance
        assert theme.current().dark == (appearance == "dark")
        assert window.palette().window().color() == theme.current().colour("window")


def test_trouble_of_the_desktop_is_said_in_a_line_that_goes_away(window: MainWindow, fakes: Fakes) -> None:
    fakes.desktop.failed.emit("No program opened a.xyz.")
    assert window.statusBar().isVisible()
    assert window.statusBar().currentMessage() == "No program opened a.xyz."


def test_a_question_from_outside_is_asked_in_the_search_view(window: MainWindow, fakes: Fakes) -> None:
    window.show_view("folders")
    window.search("tide")
    fakes.search.answer(hit(1))
    assert window.stack.currentWidget() is window.views["search"]
    assert fakes.search.requests[-1].text == "tide"


def test_pausing_from_the_status_line_reaches_the_indexer(window: MainWindow, fakes: Fakes) -> None:
    window.status_line.pause_wished.emit(True)
    assert fakes.index.calls == [("pause", True)]
