import pytest
from PySide6.QtGui import QTextCursor
from pytestqt.qtbot import QtBot

from tests.ui.fakes import hit
from ui.clients import Excerpt
from ui.preview import Preview


@pytest.fixture
def preview(qtbot: QtBot) -> Preview:
    made = Preview()
    qtbot.addWidget(made)
    made.resize(600, 400)
    made.show()
    return made


def marked_texts(preview: Preview) -> list[str]:
    return [selection.cursor.selectedText() for selection in preview._body.extraSelections()]


def test_passage_and_words_are_marked_where_they_stand_also_after_emoji(preview: Preview) -> None:
    preview.show_hit(hit())
    text = "🏠🏠 before. The tide came in. After 🏠."
    start = text.index("The")
    word = text.index("tide")
    preview.show_excerpt(Excerpt(1, text, (start, start + 17), ((word, word + 4),), cut_before=True, cut_after=True))
    assert marked_texts(preview) == ["The tide came in.", "tide"]


def test_the_passage_of_a_long_text_is_scrolled_into_sight(preview: Preview) -> None:
    preview.show_hit(hit())
    text = "line\n" * 400 + "the passage\n" + "line\n" * 400
    start = text.index("the passage")
    preview.show_excerpt(Excerpt(1, text, (start, start + 11)))
    body = preview._body
    selections = body.extraSelections()
    cursor = QTextCursor(selections[0].cursor)
    cursor.setPosition(cursor.selectionStart())
    assert 0 <= body.cursorRect(cursor).top() <= body.viewport().height() // 2


def test_the_snippet_stands_in_until_the_text_arrives(qtbot: QtBot, preview: Preview) -> None:
    preview.show_hit(hit(snippet="The [tide] came in."))
    qtbot.waitUntil(lambda: preview._body.toPlainText() == "The tide came in.")
    assert "tide" in marked_texts(preview)


def test_stepping_goes_from_mark_to_mark_and_round_the_end(preview: Preview) -> None:
    preview.show_hit(hit())
    preview.show_excerpt(Excerpt(1, "a tide, a tide, a tide", highlights=((2, 6), (10, 14), (18, 22))))
    body = preview._body
    assert body.textCursor().position() == 2
    seen = []
    for step in (1, 1, 1, -1):
        preview.step_mark(step)
        seen.append(body.textCursor().position())
    assert seen == [10, 18, 2, 18]


@pytest.mark.parametrize("offline", [True, False])
def test_the_header_says_where_the_passage_is(preview: Preview, offline: bool) -> None:
    preview.show_hit(hit(page=12, offline=offline))
    assert preview._place.text() == "Page 12"
    assert preview._offline.isVisible() == offline
    preview.show_hit(None)
    assert not preview._header.isVisible()


@pytest.mark.parametrize("text", ["", "\0\0", "a\r\nb", "\u2028\u2029", "\ud800"])
def test_odd_texts_are_shown_without_a_fault(preview: Preview, text: str) -> None:
    preview.show_hit(hit())
    preview.show_excerpt(Excerpt(1, text, (0, len(text)), ((0, 1),), cut_before=True))
