import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from tests.ui.fakes import Fakes, hit, status
from ui.main_window import MainWindow
from ui.search_view import SearchView


def shown_ids(view: SearchView) -> list[int]:
    return [each.document_id for each in view.model.hits]


def test_typing_asks_and_the_answer_is_shown_with_the_first_hit_selected(
    qtbot: QtBot, fakes: Fakes, search_view: SearchView
) -> None:
    fakes.index.status_changed.emit(status())
    qtbot.keyClicks(search_view.bar.box, "tide")
    qtbot.waitUntil(lambda: len(fakes.search.requests) == 1)
    fakes.search.answer(hit(1), hit(2))
    assert shown_ids(search_view) == [1, 2]
    assert search_view.results.current_hit == hit(1)
    assert search_view.results.isVisible()


def test_late_answers_change_nothing(fakes: Fakes, search_view: SearchView) -> None:
    search_view.search("ti")
    search_view.search("tide")
    fakes.search.answer(hit(2), number=2)
    fakes.search.answer(hit(1), number=1)
    assert shown_ids(search_view) == [2]


def test_words_come_first_and_the_selection_survives_the_refined_answer(
    qtbot: QtBot, fakes: Fakes, search_view: SearchView
) -> None:
    search_view.search("tide")
    fakes.search.answer(hit(1), hit(2), hit(3), complete=False)
    qtbot.keyClick(search_view.bar.box, Qt.Key.Key_Down)
    assert search_view.results.current_hit == hit(2)
    fakes.search.answer(hit(9), hit(3), hit(2))
    assert search_view.results.current_hit == hit(2)


def test_an_empty_part_leaves_the_hits_before_in_sight(fakes: Fakes, search_view: SearchView) -> None:
    search_view.search("tide")
    fakes.search.answer(hit(1))
    search_view.search("tides")
    fakes.search.answer(complete=False)
    assert shown_ids(search_view) == [1]
    fakes.search.answer()
    assert shown_ids(search_view) == []


def test_clearing_empties_results_and_preview(qtbot: QtBot, fakes: Fakes, search_view: SearchView) -> None:
    fakes.index.status_changed.emit(status())
    search_view.search("tide")
    fakes.search.answer(hit(1))
    qtbot.keyClick(search_view.bar.box, Qt.Key.Key_Escape)
    assert not search_view.model.hits
    assert search_view.preview.hit is None
    assert search_view.empty.isVisible()


def test_enter_opens_and_control_enter_reveals(qtbot: QtBot, fakes: Fakes, search_view: SearchView) -> None:
    search_view.search("tide")
    fakes.search.answer(hit(1))
    qtbot.keyClick(search_view.bar.box, Qt.Key.Key_Return)
    qtbot.keyClick(search_view.bar.box, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert fakes.desktop.calls == [("open", hit(1).path), ("reveal", hit(1).path)]


def test_keys_in_the_list_do_the_same(qtbot: QtBot, fakes: Fakes, search_view: SearchView) -> None:
    search_view.search("tide")
    fakes.search.answer(hit(1), hit(2))
    qtbot.keyClick(search_view.results, Qt.Key.Key_Down)
    qtbot.keyClick(search_view.results, Qt.Key.Key_Return)
    assert fakes.desktop.calls == [("open", hit(2).path)]


def test_path_and_passage_are_copied(fakes: Fakes, search_view: SearchView) -> None:
    search_view.search("tide")
    made = hit(1, passage=(4, 8))
    fakes.search.answer(made)
    clipboard = QGuiApplication.clipboard()
    search_view.results.copy_path_wished.emit(made)
    assert clipboard.text() == made.path
    search_view.results.copy_passage_wished.emit(made)
    assert clipboard.text() == "tide"


def test_the_text_around_the_hit_is_asked_for_once_the_selection_rests(
    qtbot: QtBot, fakes: Fakes, search_view: SearchView
) -> None:
    search_view.search("tide")
    fakes.search.answer(*(hit(n) for n in range(1, 30)))
    for _ in range(20):
        qtbot.keyClick(search_view.bar.box, Qt.Key.Key_Down)
    qtbot.waitUntil(lambda: bool(fakes.search.excerpts))
    assert [request.document_id for request in fakes.search.excerpts] == [21]
    fakes.search.answer_excerpt("Long ago the tide came in.", highlights=((13, 17),))
    assert "Long ago" in search_view.preview._body.toPlainText()


def test_a_late_excerpt_of_another_hit_is_dropped(qtbot: QtBot, fakes: Fakes, search_view: SearchView) -> None:
    search_view.search("tide")
    fakes.search.answer(hit(1), hit(2))
    qtbot.waitUntil(lambda: len(fakes.search.excerpts) == 1)
    search_view.results.step(1)
    qtbot.waitUntil(lambda: len(fakes.search.excerpts) == 2)
    fakes.search.answer_excerpt("the second")
    fakes.search.excerpts.pop()
    fakes.search.answer_excerpt("the first")
    assert search_view.preview._body.toPlainText() == "the second"


def test_the_question_repeats_itself_while_files_come_in(qtbot: QtBot, fakes: Fakes, search_view: SearchView) -> None:
    search_view._repeat.setInterval(10)
    fakes.index.status_changed.emit(status(documents=1))
    search_view.search("tide")
    fakes.search.answer()
    fakes.index.status_changed.emit(status(documents=2))
    qtbot.waitUntil(lambda: len(fakes.search.requests) == 2)
    assert fakes.search.requests[1].text == "tide"


def test_the_question_repeats_itself_while_passages_are_understood(
    qtbot: QtBot, fakes: Fakes, search_view: SearchView
) -> None:
    search_view._repeat.setInterval(10)
    fakes.index.status_changed.emit(status(passages_waiting=50))
    search_view.search("tide")
    fakes.search.answer()
    fakes.index.status_changed.emit(status(passages_waiting=20))
    qtbot.waitUntil(lambda: len(fakes.search.requests) == 2)


def test_nothing_found_offers_the_next_step(qtbot: QtBot, fakes: Fakes, search_view: SearchView) -> None:
    fakes.index.status_changed.emit(status())
    search_view.search("asdf", "words")
    fakes.search.answer()
    assert search_view.empty.isVisible()
    search_view.empty.action_wished.emit("search_both")
    assert fakes.search.requests[-1].mode == "hybrid"


def test_an_error_is_shown_in_place_of_hits(fakes: Fakes, search_view: SearchView) -> None:
    fakes.index.status_changed.emit(status())
    search_view.search("tide")
    fakes.search.answer(error="The index is damaged.")
    assert search_view.empty.shown is not None and search_view.empty.shown.text == "The index is damaged."


def test_the_place_on_the_screen_stays_when_hits_come_in_above(
    qtbot: QtBot, fakes: Fakes, search_view: SearchView
) -> None:
    search_view.search("tide")
    fakes.search.answer(*(hit(n) for n in range(1, 101)))
    for _ in range(50):
        search_view.results.step(1)
    results = search_view.results
    before = results.visualRect(results.currentIndex()).top()
    search_view._ask_again()
    fakes.search.answer(*(hit(n) for n in range(200, 220)), *(hit(n) for n in range(1, 101)))
    assert results.current_hit == hit(51)
    assert results.visualRect(results.currentIndex()).top() == before


@pytest.mark.parametrize("count", [200])
def test_two_hundred_hits_are_shown_without_a_stutter(
    qtbot: QtBot, fakes: Fakes, window: MainWindow, search_view: SearchView, count: int
) -> None:
    import time

    search_view.search("tide")
    hits = [hit(n, snippet="so it goes " * 20 + "[tide] " * 5) for n in range(count)]
    fakes.search.answer(*hits)
    window.repaint()
    search_view._ask_again()
    start = time.perf_counter()
    fakes.search.answer(*reversed(hits))
    window.repaint()
    assert time.perf_counter() - start < 0.2  # a tenth of it on an idle machine; only an accident of growth fails
