from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QRect
from PySide6.QtGui import QImage, QPainter
from PySide6.QtWidgets import QStyleOptionViewItem
from pytestqt.qtbot import QtBot

from tests.ui.fakes import hit
from ui.result_delegate import ResultDelegate, snippet_line
from ui.result_model import ResultModel


def test_a_mark_far_into_the_snippet_is_brought_into_sight() -> None:
    line, words, _ = snippet_line(hit(snippet="so it goes " * 30 + "until the [tide] turns"))
    assert line.startswith("… ")
    assert [line[a:b] for a, b in words] == ["tide"]
    assert words[0][0] < 60


def test_the_passage_moves_with_its_text() -> None:
    lead = "once upon a time " * 20
    line, words, passage = snippet_line(hit(snippet=lead + "the [sea] rose.", passage=(len(lead), len(lead) + 13)))
    assert passage is not None
    assert line[passage[0] : passage[1]] == "the sea rose."
    assert [line[a:b] for a, b in words] == ["sea"]


@given(st.text(max_size=300), st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300)), max_size=4))
def test_any_text_and_any_spans_stay_inside_the_line(text: str, spans: list[tuple[int, int]]) -> None:
    made = hit(snippet="")
    inside = tuple((min(a, b, len(text)), min(max(a, b), len(text))) for a, b in spans)
    line, words, _ = snippet_line(type(made)(1, "/a", "t", text, 0, 1, highlights=inside))
    assert "\n" not in line
    assert all(0 <= a <= b <= len(line) for a, b in words)


def test_every_kind_of_hit_can_be_drawn(qtbot: QtBot) -> None:
    model, delegate = ResultModel(), ResultDelegate()
    model.set_hits([
        hit(1, page=3, copies=2, offline=True, passage=(0, 9)),
        hit(2, "/x/\udcff\n.verylongextension", "", title=""),
        hit(3, "/x/no_extension", "🏠 [🏠🏠] " * 40, title="🏠" * 200, line=1_000_000),
    ])
    image = QImage(300, 120, QImage.Format.Format_ARGB32)
    option = QStyleOptionViewItem()
    option.rect = QRect(0, 0, 300, 120)
    for row in range(3):
        image.fill(0)
        painter = QPainter(image)
        delegate.paint(painter, option, model.index(row, 0))
        painter.end()
        assert any(image.pixel(x, y) for x in range(0, 300, 3) for y in range(0, 120, 3))


def test_rows_are_equally_high(qtbot: QtBot) -> None:
    model, delegate = ResultModel(), ResultDelegate()
    model.set_hits([hit(1), hit(2, snippet="long " * 300, copies=3)])
    heights = {delegate.sizeHint(QStyleOptionViewItem(), model.index(row, 0)).height() for row in range(2)}
    assert len(heights) == 1
