"""Line icons from resources/icons, drawn in the colours of the scheme in force, sharp at every pixel ratio."""

from __future__ import annotations

from functools import cache

from PySide6.QtCore import QByteArray, QRectF, QSize, Qt
from PySide6.QtGui import QIcon, QImage, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from resources import path
from ui import theme

_SIZES = (16, 20, 24, 32, 48, 64)  # pixels, covers 16 to 32 points at ratios 1 to 2
# All are read when the first is asked for, before the window shows: later a slow disk would be felt.
NAMES = (
    "add", "clear", "copy", "done", "folders", "inkling", "next", "offline", "open", "pause", "play",
    "previous", "problems", "remove", "retry", "reveal", "search",
)  # fmt: skip


@cache
def _sources() -> dict[str, str]:
    return {name: path("icons", f"{name}.svg").read_text(encoding="utf-8") for name in NAMES}


def icon(name: str, colour: str = "muted", active: str = "accent") -> QIcon:
    """Icon `name` in a theme colour; `active` is its colour while checked or selected."""
    return _icon(name, getattr(theme.current(), colour), getattr(theme.current(), active))


def pixmap(name: str, size: int, colour: str = "muted", ratio: float = 1.0) -> QPixmap:
    return _pixmap(name, size, getattr(theme.current(), colour), ratio)


@cache
def _icon(name: str, colour: str, active: str) -> QIcon:
    made = QIcon()
    for size in _SIZES:
        made.addPixmap(_pixmap(name, size, colour, 1.0), QIcon.Mode.Normal, QIcon.State.Off)
        made.addPixmap(_pixmap(name, size, active, 1.0), QIcon.Mode.Normal, QIcon.State.On)
    return made


@cache
def _pixmap(name: str, size: int, colour: str, ratio: float) -> QPixmap:
    pixels = QSize(round(size * ratio), round(size * ratio))
    image = QImage(pixels, QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    source = _sources()[name].replace("currentColor", colour)
    QSvgRenderer(QByteArray(source.encode())).render(painter, QRectF(0, 0, pixels.width(), pixels.height()))
    painter.end()
    image.setDevicePixelRatio(ratio)
    return QPixmap.fromImage(image)
