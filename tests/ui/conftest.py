"""What the window's tests share: a dressed application and a window on fakes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from tests.ui.fakes import Fakes
from ui import theme
from ui.main_window import MainWindow
from ui.search_view import SearchView


@pytest.fixture
def fakes(qapp: object) -> Fakes:
    return Fakes()


@pytest.fixture
def window(qtbot: QtBot, fakes: Fakes) -> Iterator[MainWindow]:
    made = MainWindow(fakes.clients)
    qtbot.addWidget(made)
    made.show()
    qtbot.waitExposed(made)
    yield made
    theme.set_appearance("system")


@pytest.fixture
def search_view(window: MainWindow) -> SearchView:
    view = window.views["search"]
    assert isinstance(view, SearchView)
    return view
