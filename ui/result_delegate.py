"""Draws one hit: type, title, place, folder, and two lines of snippet with words and passage marked."""

from __future__ import annotations

import os

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QColor, QFont, QFontMetrics, QPainter, QTextCharFormat, QTextLayout
from PySide6.QtWidgets import QStyledItemDelegate, QStyleOptionViewItem

from ui import file_badge, painting, theme, wording
from ui.clients import Hit, Span
from ui.result_model import HIT_ROLE
from ui.spans import Utf16, one_line
from ui.theme import GRID

_LEAD = 48  # characters of context before the first mark; more would push the mark out of the two lines
_SNIPPET_LINES = 2


def snippet_line(hit: Hit) -> tuple[str, list[Span], Span | None]:
    """The snippet as one line that starts near its first mark: text, word spans, passage."""
    text, marks = one_line(hit.snippet, hit.highlights)
    passages = one_line(hit.snippet, [hit.passage])[1] if hit.passage else []
    first = min((span[0] for span in [*marks[:1], *passages]), default=0)
    if first <= _LEAD or len(text) < 3 * _LEAD:
        return text, marks, passages[0] if passages else None
    cut = text.find(" ", first - _LEAD, first) + 1 or first
    shift = cut - 2  # two characters of ellipsis and blank take the place of what is left out
    moved = [(max(a - shift, 2), b - shift) for a, b in [*marks, *passages]]
    return "… " + text[cut:], moved[: len(marks)], moved[-1] if passages else None


class ResultDelegate(QStyledItemDelegate):
    """Rows are equally high, so the view can place thousands without asking for each."""

    home = ""  # shown as ~; set once by whoever builds the window

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        line = QFontMetrics(option.font).height()
        small = QFontMetrics(painting.font(option.font, -1)).height()
        return QSize(64 * GRID, 3 * GRID + line + small + GRID + _SNIPPET_LINES * line + 4 * GRID)

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        hit = index.data(HIT_ROLE)
        if not isinstance(hit, Hit):
            return
        painter.save()
        painting.row_ground(painter, option)
        area = option.rect.adjusted(4 * GRID, 3 * GRID, -4 * GRID, -2 * GRID)
        file_badge.paint(painter, QRectF(area.x(), area.y(), file_badge.SIZE, file_badge.SIZE), hit.path)
        area.setLeft(area.left() + file_badge.SIZE + 3 * GRID)
        area.setTop(self._title_line(painter, area, hit, option.font))
        area.setTop(self._folder_line(painter, area, hit, option.font) + GRID)
        text, words, passage = snippet_line(hit)
        painter.setPen(theme.current().colour("muted" if passage else "text"))
        painting.paragraph(painter, area, text, option.font, _SNIPPET_LINES, _formats(text, words, passage))
        painter.restore()

    def _title_line(self, painter: QPainter, area: QRect, hit: Hit, font: QFont) -> int:
        colours = theme.current()
        height, right = QFontMetrics(font).height(), area.right()
        if hit.offline:
            right = painting.tag(painter, right, area.top(), height, self.tr("Offline"), font, "warn")
        weak = self.tr("Weak match") if hit.weak else ""
        place = " · ".join(part for part in (weak, wording.place(hit.page, hit.line)) if part)
        if place:
            painter.setFont(painting.font(font, -1))
            painter.setPen(colours.colour("muted"))
            right = painting.right_text(painter, right, area.top(), height, place)
        painter.setFont(painting.font(font, 0, painting.DEMI))
        painter.setPen(colours.colour("muted" if hit.weak else "text"))
        title = one_line(hit.title, ())[0]
        painting.elided(painter, area.left(), right, area.top(), height, title, Qt.TextElideMode.ElideRight)
        return area.top() + height

    def _folder_line(self, painter: QPainter, area: QRect, hit: Hit, font: QFont) -> int:
        painter.setFont(painting.font(font, -1))
        painter.setPen(theme.current().colour("muted"))
        height, right = painter.fontMetrics().height(), area.right()
        folded = wording.folded(hit.more, hit.copies)
        if folded:
            right = painting.right_text(painter, right, area.top(), height, folded)
        text = os.path.join(wording.shown_folder(hit.path, self.home), wording.shown_name(hit.path))
        painting.elided(painter, area.left(), right, area.top(), height, text, Qt.TextElideMode.ElideMiddle)
        return area.top() + height


def _formats(text: str, words: list[Span], passage: Span | None) -> list[QTextLayout.FormatRange]:
    """Passage in full text colour among muted text, words on their own ground."""
    units, colours = Utf16(text), theme.current()
    formats = []
    if passage:
        formats.append(_range(units.span(passage), colours.colour("text")))
    for span in words:
        formats.append(_range(units.span(span), colours.colour("on_word"), colours.colour("word")))
    return formats


def _range(span: Span, colour: QColor, ground: QColor | None = None) -> QTextLayout.FormatRange:
    made = QTextLayout.FormatRange()
    made.start, made.length = span[0], span[1] - span[0]
    style = QTextCharFormat()
    style.setForeground(QBrush(colour))
    if ground is not None:
        style.setBackground(QBrush(ground))
    made.format = style
    return made
