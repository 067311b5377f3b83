import re
from dataclasses import fields

import pytest
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication

from ui import theme
from ui.theme import DARK, LIGHT, Colours

PAIRS = [  # what is written on what
    ("text", "window"), ("text", "base"), ("text", "selected"), ("text", "hover"), ("text", "passage"),
    ("text", "accent_soft"), ("muted", "window"), ("muted", "base"), ("muted", "selected"), ("muted", "hover"),
    ("on_accent", "accent"), ("accent", "base"), ("accent", "window"), ("accent", "accent_soft"),
    ("on_word", "word"), ("good", "good_soft"), ("warn", "warn_soft"), ("bad", "base"), ("bad", "selected"),
]  # fmt: skip


def luminance(colour: QColor) -> float:
    """WCAG 2.1, relative luminance."""
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour.getRgbF()[:3]]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize(("above", "below"), PAIRS)
def test_text_can_be_read_on_its_ground(colours: Colours, above: str, below: str) -> None:
    bright, dim = sorted((luminance(colours.colour(above)), luminance(colours.colour(below))), reverse=True)
    assert (bright + 0.05) / (dim + 0.05) >= 4.5


@pytest.mark.parametrize("appearance", ["light", "dark"])
def test_the_chosen_appearance_dresses_the_application(qapp: QApplication, appearance: str) -> None:
    theme.set_appearance(appearance)  # type: ignore[arg-type]
    try:
        theme.apply(qapp)
        assert theme.current().dark == (appearance == "dark")
        assert qapp.palette().window().color() == theme.current().colour("window")
        assert not re.search(r"@\w", qapp.styleSheet()), "every name in the sheet is a colour"
    finally:
        theme.set_appearance("system")
        theme.apply(qapp)


def test_every_colour_is_one() -> None:
    for colours in (LIGHT, DARK):
        for field in fields(Colours):
            value = getattr(colours, field.name)
            assert isinstance(value, bool) or QColor(value).isValid(), field.name
