"""Colours, spacing and style sheet: one accent, two schemes, everything on a grid of 4 pixels."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TypeVar

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QColor, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication, QStyleFactory

from ui.clients import Appearance

Styled = TypeVar("Styled", bound=QObject)

GRID = 4  # pixels; every margin, gap and height is a multiple


@dataclass(frozen=True, slots=True)
class Colours:
    """One scheme. Pairs that carry text keep a contrast of at least 4.5 : 1 (tested)."""

    window: str
    base: str
    raised: str
    border: str
    hover: str
    text: str
    muted: str
    accent: str
    on_accent: str
    accent_soft: str
    selected: str
    word: str
    on_word: str
    passage: str
    good: str
    good_soft: str
    warn: str
    warn_soft: str
    bad: str
    dark: bool

    def colour(self, name: str) -> QColor:
        return QColor(getattr(self, name))


LIGHT = Colours(
    window="#f5f6f9", base="#ffffff", raised="#fbfcfd", border="#dcdfe6", hover="#f0f2f7",
    text="#1a1e27", muted="#59616f", accent="#2f55d4", on_accent="#ffffff", accent_soft="#dce5ff",
    selected="#eef2ff", word="#ffe59a", on_word="#3a2c00", passage="#e2eaff",
    good="#1b7a47", good_soft="#e2f4e9", warn="#7a4f00", warn_soft="#fff1d0", bad="#b3261e", dark=False,
)  # fmt: skip
DARK = Colours(
    window="#14171d", base="#1a1e26", raised="#1f242d", border="#2e3540", hover="#222833",
    text="#e6e9f0", muted="#9ba5b4", accent="#8ea6ff", on_accent="#0f1730", accent_soft="#2c3a68",
    selected="#222a40", word="#6b5512", on_word="#fff0c2", passage="#27345a",
    good="#6fcf97", good_soft="#1d3327", warn="#f2c469", warn_soft="#3a2f16", bad="#ff8f86", dark=True,
)  # fmt: skip

_SCHEMES = {"system": Qt.ColorScheme.Unknown, "light": Qt.ColorScheme.Light, "dark": Qt.ColorScheme.Dark}


_wanted: Appearance = "system"


def set_appearance(appearance: Appearance) -> None:
    """Follow the system, or hold one scheme; the caller then dresses the application with `apply`.

    Qt is told as well, so that title bars and file dialogs follow where the platform can.
    """
    global _wanted
    _wanted = appearance
    QGuiApplication.styleHints().setColorScheme(_SCHEMES[appearance])


def current() -> Colours:
    """The colours of the scheme in force. Paint code asks each time, so a switch needs no bookkeeping."""
    if _wanted == "system":
        return DARK if QGuiApplication.styleHints().colorScheme() == Qt.ColorScheme.Dark else LIGHT
    return DARK if _wanted == "dark" else LIGHT


def apply(application: QApplication) -> None:
    """Dress the application in the scheme in force."""
    colours = current()
    if application.style().name() != "fusion":
        application.setStyle(QStyleFactory.create("Fusion"))
    application.setPalette(_palette(colours))
    application.setStyleSheet(_sheet(colours))


def styled(widget: Styled, part: str) -> Styled:
    """`widget`, given a part (an object name) in the style sheet below."""
    widget.setObjectName(part)
    return widget


def _palette(colours: Colours) -> QPalette:
    palette = QPalette()
    role = QPalette.ColorRole
    for target, name in {
        role.Window: "window", role.WindowText: "text", role.Base: "base", role.AlternateBase: "raised",
        role.Text: "text", role.Button: "raised", role.ButtonText: "text", role.BrightText: "bad",
        role.Highlight: "accent", role.HighlightedText: "on_accent", role.Link: "accent",
        role.LinkVisited: "accent", role.ToolTipBase: "raised", role.ToolTipText: "text",
        role.PlaceholderText: "muted", role.Mid: "border", role.Midlight: "hover", role.Accent: "accent",
    }.items():  # fmt: skip
        palette.setColor(target, colours.colour(name))
    for target in (role.WindowText, role.Text, role.ButtonText):
        palette.setColor(QPalette.ColorGroup.Disabled, target, colours.colour("muted"))
    return palette


def _sheet(colours: Colours) -> str:
    sheet = _SHEET
    # Longest names first: "accent" must not eat the head of "accent_soft".
    for name in sorted((field.name for field in fields(Colours)), key=len, reverse=True):
        sheet = sheet.replace(f"@{name}", str(getattr(colours, name)))
    return sheet


_SHEET = """
QToolTip { background: @raised; color: @text; border: 1px solid @border; padding: 4px 8px; }
QMenuBar { background: @window; border: none; padding: 0 8px; }
QMenuBar::item { background: transparent; padding: 4px 8px; border-radius: 4px; }
QMenuBar::item:selected { background: @hover; }
QMenu { background: @base; border: 1px solid @border; padding: 4px; }
QMenu::item { padding: 6px 24px 6px 12px; border-radius: 4px; }
QMenu::item:selected { background: @accent_soft; color: @text; }
QMenu::item:disabled { color: @muted; }
QMenu::separator { height: 1px; background: @border; margin: 4px 8px; }

#Rail { background: @window; border-right: 1px solid @border; }
#Rail QToolButton { border: 2px solid transparent; border-radius: 8px; padding: 8px 4px 6px 4px; color: @muted;
    background: transparent; }
#Rail QToolButton:hover { background: @hover; color: @text; }
#Rail QToolButton:checked { background: @accent_soft; color: @accent; font-weight: 600; }
#Rail QToolButton:focus { border-color: @accent; }

#Page { background: @base; }
#Strip { background: @window; border-bottom: 1px solid @border; }
#SearchBox { background: @base; border: 1px solid @border; border-radius: 8px; padding: 8px 8px 8px 4px;
    font-size: 12pt; selection-background-color: @accent; selection-color: @on_accent; }
#SearchBox:focus { border: 2px solid @accent; padding: 7px 7px 7px 3px; }

#Segments { background: @hover; border: 1px solid @border; border-radius: 8px; }
#Segments QToolButton { border: 1px solid transparent; border-radius: 6px; padding: 4px 12px; color: @muted;
    background: transparent; }
#Segments QToolButton:hover { color: @text; }
#Segments QToolButton:checked { background: @base; color: @accent; border-color: @border; font-weight: 600; }
#Segments QToolButton:focus { border-color: @accent; }

QListView, QPlainTextEdit { background: @base; border: none; outline: none; }
#Preview QPlainTextEdit { background: @base; selection-background-color: @accent; selection-color: @on_accent; }
QSplitter::handle { background: @border; }
QSplitter::handle:hover { background: @accent; }

QPushButton { background: @base; border: 1px solid @border; border-radius: 6px; padding: 6px 12px; color: @text; }
QPushButton:hover { background: @hover; }
QPushButton:pressed { background: @accent_soft; }
QPushButton:focus { border-color: @accent; }
QPushButton:disabled { color: @muted; background: @window; }
QPushButton#Primary { background: @accent; border-color: @accent; color: @on_accent; font-weight: 600; }
QPushButton#Primary:focus { border-color: @text; }
QPushButton#Link { border: 1px solid transparent; background: transparent; color: @accent; padding: 2px 6px; }
QPushButton#Link:hover { text-decoration: underline; }
QPushButton#Link:focus { border-color: @accent; }
QToolButton#Plain { border: 1px solid transparent; border-radius: 6px; padding: 4px; background: transparent; }
QToolButton#Plain:hover { background: @hover; }
QToolButton#Plain:focus { border-color: @accent; }

QLabel#qt_msgbox_label { font-weight: 600; }
QLabel#qt_msgbox_informativelabel { min-width: 340px; }
#Heading { font-size: 15pt; font-weight: 600; }
#Title { font-size: 12pt; font-weight: 600; }
#Muted { color: @muted; }
#Notice { background: @warn_soft; color: @warn; border-radius: 6px; padding: 6px 10px; }
#Tag { background: @accent_soft; color: @accent; border-radius: 4px; padding: 2px 8px; font-weight: 600; }
#OfflineTag { background: @warn_soft; color: @warn; border-radius: 4px; padding: 2px 8px; font-weight: 600; }

#StatusLine { background: @window; border-top: 1px solid @border; }
QProgressBar { background: @border; border: none; border-radius: 2px; max-height: 4px; min-height: 4px; }
QProgressBar::chunk { background: @accent; border-radius: 2px; }

QScrollBar:vertical { background: transparent; width: 12px; margin: 0; }
QScrollBar:horizontal { background: transparent; height: 12px; margin: 0; }
QScrollBar::handle { background: @border; border-radius: 4px; margin: 2px; min-height: 24px; min-width: 24px; }
QScrollBar::handle:hover { background: @muted; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
QScrollBar::add-page, QScrollBar::sub-page { background: transparent; }
"""
