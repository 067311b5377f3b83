"""Draws a row of the folder and problem lists: sign, title, tag, path, and a sentence."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetrics, QPainter
from PySide6.QtWidgets import QStyledItemDelegate, QStyleOptionViewItem

from ui import file_badge, icons, painting, theme
from ui.theme import GRID

CARD_ROLE = Qt.ItemDataRole.UserRole + 1


@dataclass(frozen=True, slots=True)
class Card:
    """What a row says. `tag_kind` names a pair of theme colours; `badge_path` draws the sign of that file's type."""

    title: str
    path: str
    text: str
    tag: str = ""
    tag_kind: str = "accent"
    badge_path: str = ""
    icon: str = ""
    text_colour: str = "muted"


class CardDelegate(QStyledItemDelegate):
    def __init__(self, parent: QObject, text_lines: int) -> None:
        super().__init__(parent)
        self._text_lines = text_lines

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        line = QFontMetrics(option.font).height()
        small = QFontMetrics(painting.font(option.font, -1)).height()
        return QSize(64 * GRID, 3 * GRID + line + small + GRID + self._text_lines * line + 4 * GRID)

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        card = index.data(CARD_ROLE)
        if not isinstance(card, Card):
            return
        colours = theme.current()
        painter.save()
        painting.row_ground(painter, option)
        area = option.rect.adjusted(6 * GRID, 3 * GRID, -6 * GRID, -2 * GRID)
        self._sign(painter, QRectF(area.x(), area.y(), file_badge.SIZE, file_badge.SIZE), card)
        area.setLeft(area.left() + file_badge.SIZE + 3 * GRID)
        height, right = QFontMetrics(option.font).height(), area.right()
        if card.tag:
            right = painting.tag(painter, right, area.top(), height, card.tag, option.font, card.tag_kind)
        painter.setFont(painting.font(option.font, 0, painting.DEMI))
        painter.setPen(colours.colour("text"))
        painting.elided(painter, area.left(), right, area.top(), height, card.title, Qt.TextElideMode.ElideMiddle)
        area.setTop(area.top() + height)
        painter.setFont(painting.font(option.font, -1))
        painter.setPen(colours.colour("muted"))
        height = painter.fontMetrics().height()
        painting.elided(painter, area.left(), area.right(), area.top(), height, card.path, Qt.TextElideMode.ElideMiddle)
        area.setTop(area.top() + height + GRID)
        painter.setPen(colours.colour(card.text_colour))
        painting.paragraph(painter, area, card.text, option.font, self._text_lines)
        painter.restore()

    def _sign(self, painter: QPainter, box: QRectF, card: Card) -> None:
        if card.badge_path:
            file_badge.paint(painter, box, card.badge_path)
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.current().colour("accent_soft"))
        painter.drawRoundedRect(box, 8, 8)
        ratio = painter.device().devicePixelRatio()
        painter.drawPixmap(box.adjusted(8, 8, -8, -8).toRect(), icons.pixmap(card.icon, 24, "accent", ratio))
