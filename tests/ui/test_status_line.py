import pytest
from PySide6.QtCore import QLocale
from pytestqt.qtbot import QtBot

from tests.ui.fakes import progress, status
from ui.status_line import StatusLine


@pytest.fixture
def line(qtbot: QtBot) -> StatusLine:
    before = QLocale()
    QLocale.setDefault(QLocale("en_GB"))
    made = StatusLine()
    qtbot.addWidget(made)
    made.show()
    yield made
    QLocale.setDefault(before)


def test_idle_is_quiet(line: StatusLine) -> None:
    line.show_status(status())
    assert line.activity.text() == "1,204 documents"
    for widget in (line.bar, line.pause, line.problems):
        assert not widget.isVisible()
    assert line.figures.text() == ""


def test_work_shows_the_file_the_share_the_rate_and_the_time_left(line: StatusLine) -> None:
    line.show_status(status(state="working"))
    line.show_progress(progress())
    assert line.activity.text() == "Reading /home/ada/Notes/meeting notes.docx"
    assert line.figures.text() == "312 of 1,004 (31.1 %) · 14 files/s · 50 seconds left"
    assert line.bar.isVisible() and line.bar.value() == 310
    assert line.pause.isVisible()


def test_meaning_counts_passages(line: StatusLine) -> None:
    line.show_progress(progress(activity="understanding", per_second=3.21, eta_s=None))
    assert line.figures.text() == "312 of 1,004 (31.1 %) · 3.2 passages/s"
    assert line.activity.text().startswith("Understanding")


def test_an_unknown_total_shows_no_bar(line: StatusLine) -> None:
    line.show_progress(progress(activity="checking", done=0, total=0, per_second=0.0, eta_s=None, path="/home"))
    assert not line.bar.isVisible()
    assert line.activity.text() == "Looking for changes in /home"


def test_pause_asks_for_the_opposite_of_what_is(qtbot: QtBot, line: StatusLine) -> None:
    line.show_status(status(state="working"))
    line.show_progress(progress())
    with qtbot.waitSignal(line.pause_wished) as heard:
        line.pause.click()
    assert heard.args == [True]
    line.show_status(status(paused=True, waiting=40))
    assert line.activity.text() == "Paused. 40 files are waiting."
    with qtbot.waitSignal(line.pause_wished) as heard:
        line.pause.click()
    assert heard.args == [False]


def test_problems_and_a_dead_indexer_are_told(qtbot: QtBot, line: StatusLine) -> None:
    line.show_status(status(failed=3))
    with qtbot.waitSignal(line.problems_wished):
        line.problems.click()
    line.show_status(status(state="stopped", message="The index is damaged."))
    assert line.activity.text() == "The index is damaged."


def test_the_end_of_work_is_quiet_again(line: StatusLine) -> None:
    line.show_status(status())
    line.show_progress(progress())
    line.show_progress(None)
    assert not line.bar.isVisible() and line.activity.text() == "1,204 documents"
