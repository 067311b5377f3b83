import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QAbstractItemModelTester
from PySide6.QtWidgets import QMessageBox
from pytestqt.qtbot import QtBot

from tests.ui.fakes import Fakes, status
from ui.card_delegate import CARD_ROLE, Card
from ui.clients import RootView
from ui.folder_model import FolderModel
from ui.folders_view import FoldersView
from ui.main_window import MainWindow

ROOTS = (RootView("/home/ada/Notes", documents=5, waiting=2), RootView("/media/disk", state="offline", note="Away."))


@pytest.fixture
def view(window: MainWindow) -> FoldersView:
    window.show_view("folders")
    made = window.views["folders"]
    assert isinstance(made, FoldersView)
    return made


def card(model: FolderModel, row: int) -> Card:
    made = model.data(model.index(row, 0), CARD_ROLE)
    assert isinstance(made, Card)
    return made


def test_the_model_keeps_qts_rules_and_rows_stay_while_numbers_change(qtbot: QtBot) -> None:
    model = FolderModel()
    QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    model.set_roots(ROOTS, False)
    with qtbot.assertNotEmitted(model.modelReset), qtbot.waitSignal(model.dataChanged):
        model.set_roots((RootView("/home/ada/Notes", documents=6), ROOTS[1]), False)
    with qtbot.waitSignal(model.modelReset):
        model.set_roots(ROOTS[:1], False)


@pytest.mark.parametrize(
    ("root", "paused", "tag"),
    [
        (RootView("/a", documents=3), False, "Up to date"),
        (RootView("/a", waiting=3), False, "Reading"),
        (RootView("/a", state="scanning"), False, "Checking"),
        (RootView("/a", state="offline", waiting=3), True, "Offline"),
        (RootView("/a", waiting=3), True, "Paused"),
    ],
)
def test_each_folder_says_how_it_stands(qtbot: QtBot, root: RootView, paused: bool, tag: str) -> None:
    model = FolderModel()
    model.set_roots((root,), paused)
    assert card(model, 0).tag == tag


def test_counts_and_note_are_said(qtbot: QtBot) -> None:
    model = FolderModel()
    model.set_roots(ROOTS, False)
    assert "5" in card(model, 0).text and "2" in card(model, 0).text
    assert card(model, 1).text.endswith("Away.")


def test_removing_asks_first_and_keeping_is_the_default(qtbot: QtBot, fakes: Fakes, view: FoldersView) -> None:
    fakes.index.status_changed.emit(status(roots=ROOTS))
    qtbot.keyClick(view.list, Qt.Key.Key_Delete)
    question = view.findChild(QMessageBox)
    assert question is not None and "not touched" in question.informativeText()
    assert question.defaultButton().text() == "Keep"
    question.reject()
    assert not [call for call in fakes.index.calls if call[0] == "remove"]


def test_a_yes_removes_the_chosen_folder(fakes: Fakes, view: FoldersView) -> None:
    fakes.index.status_changed.emit(status(roots=ROOTS))
    view.list.setCurrentIndex(view.model.index(1, 0))
    view.remove_button.click()
    question = view.findChild(QMessageBox)
    assert question is not None
    yes = next(b for b in question.buttons() if question.buttonRole(b) == QMessageBox.ButtonRole.AcceptRole)
    yes.click()
    assert fakes.index.calls == [("remove", "/media/disk")]


def test_pause_and_resume(fakes: Fakes, view: FoldersView) -> None:
    fakes.index.status_changed.emit(status())
    view.pause_button.click()
    fakes.index.status_changed.emit(status(paused=True))
    view.pause_button.click()
    assert fakes.index.calls == [("pause", True), ("pause", False)]


def test_without_folders_the_way_to_add_one_is_in_the_middle(fakes: Fakes, view: FoldersView) -> None:
    fakes.index.status_changed.emit(status(roots=()))
    assert view.empty.isVisible()
    assert not view.remove_button.isEnabled() and not view.pause_button.isEnabled()


def test_trouble_of_the_indexer_is_shown(fakes: Fakes, view: FoldersView) -> None:
    fakes.index.status_changed.emit(status(message="The disk is full."))
    assert view.notice.isVisible() and view.notice.text() == "The disk is full."
