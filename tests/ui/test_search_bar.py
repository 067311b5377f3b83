import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from ui.search_bar import SearchBar


@pytest.fixture
def bar(qtbot: QtBot) -> SearchBar:
    made = SearchBar(pause_ms=20)
    qtbot.addWidget(made)
    made.show()
    return made


def test_one_question_is_asked_when_the_typing_pauses(qtbot: QtBot, bar: SearchBar) -> None:
    asked: list[tuple[str, str]] = []
    bar.asked.connect(lambda text, mode: asked.append((text, mode)))
    qtbot.keyClicks(bar.box, "tide")
    qtbot.waitUntil(lambda: bool(asked))
    assert asked == [("tide", "hybrid")]


def test_changing_the_mode_asks_at_once(qtbot: QtBot, bar: SearchBar) -> None:
    with qtbot.waitSignal(bar.asked) as heard:
        bar.modes.turn()
    assert heard.args == ["", "words"]
    assert bar.modes.mode == "words"


def test_modes_go_round(bar: SearchBar) -> None:
    seen = []
    for _ in range(4):
        seen.append(bar.modes.mode)
        bar.modes.turn()
    assert seen == ["hybrid", "words", "meaning", "hybrid"]


@pytest.mark.parametrize(
    ("key", "signal", "args"),
    [
        (Qt.Key.Key_Down, "step_wished", [1]),
        (Qt.Key.Key_Up, "step_wished", [-1]),
        (Qt.Key.Key_PageDown, "page_wished", [1]),
        (Qt.Key.Key_PageUp, "page_wished", [-1]),
        (Qt.Key.Key_Return, "open_wished", []),
    ],
)
def test_keys_in_the_box_reach_the_results(
    qtbot: QtBot, bar: SearchBar, key: Qt.Key, signal: str, args: list[int]
) -> None:
    with qtbot.waitSignal(getattr(bar, signal)) as heard:
        qtbot.keyClick(bar.box, key)
    assert heard.args == args


def test_control_enter_reveals(qtbot: QtBot, bar: SearchBar) -> None:
    with qtbot.waitSignal(bar.reveal_wished):
        qtbot.keyClick(bar.box, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)


def test_enter_right_after_typing_asks_rather_than_opens_what_is_stale(qtbot: QtBot, bar: SearchBar) -> None:
    qtbot.keyClicks(bar.box, "x")
    with qtbot.assertNotEmitted(bar.open_wished), qtbot.waitSignal(bar.asked):
        qtbot.keyClick(bar.box, Qt.Key.Key_Return)


def test_escape_clears_at_once(qtbot: QtBot, bar: SearchBar) -> None:
    bar.box.setText("tide")
    with qtbot.waitSignal(bar.asked) as heard:
        qtbot.keyClick(bar.box, Qt.Key.Key_Escape)
    assert heard.args == ["", "hybrid"]
