"""What every view of the main window is: a page with a name, an icon, and a way to ask for other views."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame

from ui.clients import Clients


class View(QFrame):
    """Wires its widgets' wishes to the clients; knows no other view.

    `name` is for code and never translated; `title()` is what the user sees.
    """

    name = ""
    icon = ""

    view_wished = Signal(str)  # name of another view
    add_folder_wished = Signal()
    badge_changed = Signal(int)  # a small number beside the view's name; 0 hides it

    def __init__(self, clients: Clients) -> None:
        super().__init__()
        self.setObjectName("Page")
        self.clients = clients

    def title(self) -> str:
        raise TypeError(f"{type(self).__name__} has no title")

    def enter(self) -> None:
        """The view was brought to the front: put the focus where work begins."""

    def repaint_icons(self) -> None:
        """The colours have changed."""
