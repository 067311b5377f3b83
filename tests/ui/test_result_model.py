from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtTest import QAbstractItemModelTester
from pytestqt.qtbot import QtBot

from tests.ui.fakes import hit
from ui.result_model import HIT_ROLE, ResultModel, file_url


def test_the_model_keeps_qts_rules(qtbot: QtBot) -> None:
    model = ResultModel()
    QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    model.set_hits([hit(1), hit(2)])
    model.set_hits([hit(3)])
    assert model.rowCount() == 1 and model.rowCount(model.index(0, 0)) == 0


def test_rows_give_hits_and_words_for_those_who_listen(qtbot: QtBot) -> None:
    model = ResultModel()
    model.set_hits([hit(1, page=4, offline=True)])
    index = model.index(0, 0)
    assert model.data(index, HIT_ROLE) == hit(1, page=4, offline=True)
    spoken = str(model.data(index, Qt.ItemDataRole.AccessibleTextRole))
    assert spoken.startswith("Note 1, Page 4, offline, The tide came in")
    assert model.data(QModelIndex()) is None


def test_the_same_answer_again_resets_nothing(qtbot: QtBot) -> None:
    model = ResultModel()
    model.set_hits([hit(1)])
    with qtbot.assertNotEmitted(model.modelReset):
        model.set_hits([hit(1)])


def test_dragged_hits_are_files_whatever_their_names(qtbot: QtBot) -> None:
    model = ResultModel()
    path = "/home/ada/50% #1?\n\udcff 🏠.txt"
    model.set_hits([hit(1, path)])
    urls = model.mimeData([model.index(0, 0)]).urls()
    assert bytes(urls[0].toEncoded().data()).decode() == "file:///home/ada/50%25%20%231%3F%0A%FF%20%F0%9F%8F%A0.txt"
    assert model.flags(model.index(0, 0)) & Qt.ItemFlag.ItemIsDragEnabled
    assert file_url("/a b").isLocalFile()
