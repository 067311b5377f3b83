import pytest
from PySide6.QtTest import QAbstractItemModelTester
from pytestqt.qtbot import QtBot

from tests.ui.fakes import Fakes, status
from ui.clients import Failure
from ui.main_window import MainWindow
from ui.problem_model import ProblemModel
from ui.problems_view import ProblemsView

FAILURES = tuple(Failure(f"/a/{name}.pdf", "broken", f"{name} is damaged.") for name in ("one", "two", "three"))


@pytest.fixture
def view(window: MainWindow) -> ProblemsView:
    window.show_view("problems")
    made = window.views["problems"]
    assert isinstance(made, ProblemsView)
    return made


def test_the_model_keeps_qts_rules(qtbot: QtBot) -> None:
    model = ProblemModel()
    QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    model.set_failures(FAILURES)
    model.set_failures(())


def test_each_problem_is_listed_with_its_reason(fakes: Fakes, view: ProblemsView) -> None:
    fakes.index.failures_changed.emit(FAILURES)
    assert view.list.isVisible()
    assert view.current == FAILURES[0]


def test_one_file_or_all_are_tried_again(fakes: Fakes, view: ProblemsView) -> None:
    fakes.index.failures_changed.emit(FAILURES)
    view.list.setCurrentIndex(view.model.index(1, 0))
    fakes.index.calls.clear()
    view.retry_button.click()
    view.retry_all_button.click()
    assert fakes.index.calls == [("retry", "/a/two.pdf"), ("retry",)]


def test_the_chosen_problem_stays_chosen_when_others_go(fakes: Fakes, view: ProblemsView) -> None:
    fakes.index.failures_changed.emit(FAILURES)
    view.list.setCurrentIndex(view.model.index(2, 0))
    fakes.index.failures_changed.emit(FAILURES[1:])
    assert view.current == FAILURES[2]
    fakes.index.failures_changed.emit(FAILURES[1:2])
    assert view.current == FAILURES[1]


def test_no_problems_is_said_plainly(fakes: Fakes, view: ProblemsView) -> None:
    fakes.index.failures_changed.emit(())
    assert view.empty.isVisible()
    assert not view.retry_all_button.isEnabled()


def test_the_rail_carries_the_count(fakes: Fakes, window: MainWindow) -> None:
    fakes.index.status_changed.emit(status(failed=7))
    assert window.rail._buttons["problems"].count == 7
    fakes.index.status_changed.emit(status(failed=0))
    assert window.rail._buttons["problems"].count == 0


def test_the_list_is_read_when_the_view_is_entered_and_when_the_count_changes(
    fakes: Fakes, view: ProblemsView
) -> None:
    assert fakes.index.calls == [("failures",)]
    fakes.index.status_changed.emit(status(failed=1))
    assert fakes.index.calls == [("failures",)] * 2


def test_a_problem_file_can_be_opened_and_shown(fakes: Fakes, view: ProblemsView) -> None:
    fakes.index.failures_changed.emit(FAILURES)
    view.open_button.click()
    view.reveal_button.click()
    assert fakes.desktop.calls == [("open", "/a/one.pdf"), ("reveal", "/a/one.pdf")]
