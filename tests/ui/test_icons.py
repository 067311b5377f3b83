import pytest
from PySide6.QtWidgets import QApplication

from resources import path
from ui import icons


@pytest.mark.parametrize("name", icons.NAMES)
def test_every_icon_draws_something(qapp: QApplication, name: str) -> None:
    image = icons.pixmap(name, 24, "text", 2.0).toImage()
    assert image.width() == 48
    assert any(image.pixelColor(x, y).alpha() for x in range(48) for y in range(48))


def test_every_svg_in_the_folder_is_listed() -> None:
    assert {file.stem for file in path("icons").glob("*.svg")} == set(icons.NAMES)
