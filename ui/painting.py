"""Pieces that the delegates draw alike: the ground of a row, a tag, a shortened line."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QFont, QFontMetrics, QPainter, QTextLayout, QTextOption
from PySide6.QtWidgets import QStyle, QStyleOptionViewItem

from ui import theme
from ui.spans import Utf16
from ui.theme import GRID

DEMI = QFont.Weight.DemiBold


def font(base: QFont, points: int = 0, weight: QFont.Weight | None = None) -> QFont:
    """`base`, some points larger, in another weight."""
    made = QFont(base)
    if points and base.pointSizeF() > 0:
        made.setPointSizeF(base.pointSizeF() + points)
    if weight is not None:
        made.setWeight(weight)
    return made


def row_ground(painter: QPainter, option: QStyleOptionViewItem) -> None:
    """Selection and hover colour, a bar on the selected row, and a rule below."""
    colours = theme.current()
    selected = bool(option.state & QStyle.StateFlag.State_Selected)
    hovered = bool(option.state & QStyle.StateFlag.State_MouseOver)
    if selected or hovered:
        painter.fillRect(option.rect, colours.colour("selected" if selected else "hover"))
    if selected:  # a bar beside the colour: colour alone does not reach every eye
        painter.fillRect(QRect(option.rect.topLeft(), QSize(3, option.rect.height())), colours.colour("accent"))
    painter.setPen(colours.colour("border"))
    painter.drawLine(
        option.rect.left() + 4 * GRID, option.rect.bottom(), option.rect.right() - 4 * GRID, option.rect.bottom()
    )


def tag(painter: QPainter, right: int, top: int, height: int, text: str, base: QFont, kind: str) -> int:
    """A rounded label that ends at `right`, in colour `kind` on `kind`_soft; returns where its left neighbour ends."""
    colours = theme.current()
    painter.setFont(font(base, -1, DEMI))
    width = painter.fontMetrics().horizontalAdvance(text) + 3 * GRID
    box = QRectF(right - width, top, width, height)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colours.colour(f"{kind}_soft"))
    painter.drawRoundedRect(box, 4, 4)
    painter.setPen(colours.colour(kind))
    painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)
    return round(right - width - 2 * GRID)


def right_text(painter: QPainter, right: int, top: int, height: int, text: str) -> int:
    """Text that ends at `right` in the painter's font and pen; returns where its left neighbour ends."""
    width = painter.fontMetrics().horizontalAdvance(text)
    painter.drawText(QRect(right - width, top, width + 1, height), Qt.AlignmentFlag.AlignVCenter, text)
    return right - width - 3 * GRID


def elided(painter: QPainter, left: int, right: int, top: int, height: int, text: str, mode: Qt.TextElideMode) -> None:
    shown = painter.fontMetrics().elidedText(text, mode, right - left)
    painter.drawText(QRect(left, top, right - left, height), Qt.AlignmentFlag.AlignVCenter, shown)


def paragraph(
    painter: QPainter,
    area: QRect,
    text: str,
    base: QFont,
    lines: int,
    formats: list[QTextLayout.FormatRange] | None = None,
) -> None:
    """`text` wrapped into `area` in the painter's pen; the last of `lines` ends with an ellipsis where it must."""
    metrics = QFontMetrics(base)
    layout = QTextLayout(text, base)
    option = QTextOption()
    option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
    layout.setTextOption(option)
    layout.setFormats(formats or [])
    end, count = _break(layout, area.width(), metrics.height(), lines)
    if count == lines and end < Utf16(text).offset(len(text)):
        # Broken again with the tail cut off: a last line that stops in mid-air looks like an end. Wide characters
        # before the cut shorten the kept text a little too much, which costs a word and no more.
        layout.setText(text[: max(end - 2 - Utf16(text).offset(end) + end, 0)].rstrip() + "…")
        layout.setFormats(formats or [])
        _break(layout, area.width(), metrics.height(), lines)
    layout.draw(painter, QPointF(area.left(), area.top()), [], QRectF(area))


def _break(layout: QTextLayout, width: int, height: int, lines: int) -> tuple[int, int]:
    """Lays out at most `lines`; returns the UTF-16 end of the last one and how many there are."""
    layout.beginLayout()
    end = count = 0
    while count < lines:
        line = layout.createLine()
        if not line.isValid():
            break
        line.setLineWidth(width)
        line.setPosition(QPointF(0, count * height))
        end, count = line.textStart() + line.textLength(), count + 1
    layout.endLayout()
    return end, count
