"""Draws the window's states into PNG files, to be looked at: `python -m tests.ui.screenshots FOLDER`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QLocale
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from tests.ui import fakes
from ui import theme
from ui.clients import Failure, RootView
from ui.folders_view import FoldersView
from ui.main_window import MainWindow
from ui.result_delegate import ResultDelegate
from ui.shortcuts import ShortcutSheet

HOME = "/home/ada"
LETTER = (
    "Dear Mr. Whitcombe,\n\nthank you for coming out to the house last Thursday. As we discussed, water has been "
    "finding its way in above the back bedroom since the storms of early March.\n\n"
    "The [roof] has been [leaking] along the chimney flashing, and the ceiling below shows a brown ring that grows "
    "with every shower. Two tiles on the north side slipped during the storm and now lie in the gutter.\n\n"
    "Before the next heavy rain I would like the flashing replaced and the slipped tiles set back. Please let me "
    "have a written estimate, with the cost of scaffolding as a separate line, so that I can send it on to the "
    "insurer.\n\nThe policy covers storm damage, though not wear. Photographs of the [roof] are in the folder I shared "
    "with you; the ones from 12 March show the state before the second storm.\n\nKind regards,\nAda"
)


def _hits() -> list[fakes.Hit]:
    home = f"{HOME}/Documents"
    rows = [
        ("House/Letters/whitcombe roofing.docx", "Letter to Whitcombe Roofing", LETTER[125:392], 1, None, 2),
        ("House/Insurance/policy 2024.pdf", "Home insurance policy 2024",
         "Storm damage to the [roof] is covered where wind speeds passed 55 mph; gradual wear and poor "
         "maintenance are not.", 14, None, 0),
        ("House/diary.md", "House diary",
         "12 March. Bucket under the hatch again. The drip starts about an hour after the rain does, so it "
         "must run along a rafter first.", None, 212, 1),
        ("Mail/archive/Re_ scaffolding.eml", "Re: scaffolding",
         "We can put the tower up on Monday and the [roof] would be watertight by Wednesday, weather allowing.",
         None, None, 0),
        ("House/Manuals/loft insulation — guide for owners with a very long name that needs to be shortened.html",
         "Loft insulation: a guide for owners", "Damp insulation loses most of its value; find where water gets in "
         "before you lay new rolls.", None, 88, 0),
        ("写真/屋根の修理 🏠.txt", "屋根の修理 🏠", "北側の瓦が二枚ずれて、雨漏りが始まった。", None, 3, 0),
        ("Work/tender/annex b.pdf", "Annex B: schedule of works", "Strip and re-lay slates to the north slope; renew "
         "lead flashings to stack; make good.", 3, None, 0),
    ]  # fmt: skip
    made = []
    for number, (path, title, snippet, page, line, copies) in enumerate(rows, 1):
        text = fakes.marked(snippet)[0]
        passage = (0, len(text)) if number in (1, 3, 5, 6, 7) else None
        if number == 1:
            start = text.index("The roof")
            passage = (start, text.index("shower.") + 7)
        made.append(
            fakes.hit(number, f"{home}/{path}", snippet, title=title, page=page, line=line,
                      more=copies, copies=number % 2, passage=passage, offline=number == 7)
        )
    return made


def _results(window: MainWindow, clients: fakes.Fakes) -> None:
    clients.index.status_changed.emit(fakes.status(failed=3))
    window.search("water coming through the roof")
    clients.search.answer(*_hits(), took_ms=23.4)
    while not clients.search.excerpts:
        QTest.qWait(20)
    text, words = fakes.marked(LETTER)
    start = text.index("The roof")
    clients.search.answer_excerpt(
        text, passage=(start, text.index("shower.") + 7), highlights=words, cut_before=False, cut_after=True
    )


def _refining(window: MainWindow, clients: fakes.Fakes) -> None:
    clients.index.status_changed.emit(fakes.status(state="working", waiting=692, failed=3))
    clients.index.progress_changed.emit(fakes.progress())
    window.search("roof")
    clients.search.answer(*_hits()[:4], complete=False)


def _no_folders(window: MainWindow, clients: fakes.Fakes) -> None:
    clients.index.status_changed.emit(fakes.status(roots=(), documents=0))


def _ready(window: MainWindow, clients: fakes.Fakes) -> None:
    clients.index.status_changed.emit(fakes.status())


def _nothing(window: MainWindow, clients: fakes.Fakes) -> None:
    clients.index.status_changed.emit(fakes.status(failed=3))
    window.search("asdf")
    clients.search.answer(took_ms=12)


def _folders(window: MainWindow, clients: fakes.Fakes) -> None:
    roots = (
        RootView(f"{HOME}/Documents", documents=1893, waiting=692, failed=3),
        RootView(f"{HOME}/Notes", documents=1204),
        RootView("/media/ada/Archive disk", state="offline", documents=15_310,
                 note="The disk is not there; what was read from it stays searchable."),
        RootView("/srv/team/handbook", state="scanning", documents=412),
    )  # fmt: skip
    clients.index.status_changed.emit(
        fakes.status(state="working", roots=roots, documents=18_819, waiting=692, failed=3, size_bytes=611_000_000)
    )
    clients.index.progress_changed.emit(fakes.progress())
    window.show_view("folders")
    view = window.views["folders"]
    assert isinstance(view, FoldersView)
    view.list.setCurrentIndex(view.model.index(0, 0))


def _question(window: MainWindow, clients: fakes.Fakes) -> None:
    _folders(window, clients)
    view = window.views["folders"]
    assert isinstance(view, FoldersView)
    view._ask_remove()


def _problems(window: MainWindow, clients: fakes.Fakes) -> None:
    clients.index.status_changed.emit(fakes.status(failed=3))
    window.show_view("problems")
    clients.index.failures_changed.emit((
        Failure(f"{HOME}/Documents/Bank/statement 2021.pdf", "encrypted", "This PDF is protected by a password."),
        Failure(f"{HOME}/Documents/Scans/half a download.pdf", "broken",
                "This PDF is damaged: the file ends before its table of contents. Open it in a PDF viewer to see "
                "whether it can be saved anew."),
        Failure(f"{HOME}/Documents/private/pass\nword \udcff.txt", "permission", "You may not read this file."),
    ))  # fmt: skip


def _keys(window: MainWindow, clients: fakes.Fakes) -> None:
    _results(window, clients)
    ShortcutSheet(window).open()


STATES: dict[str, Callable[[MainWindow, fakes.Fakes], None]] = {
    "results": _results, "refining": _refining, "no-folders": _no_folders, "ready": _ready, "nothing": _nothing,
    "folders": _folders, "question": _question, "problems": _problems, "keys": _keys,
}  # fmt: skip


def draw(folder: Path, application: QApplication) -> None:
    ResultDelegate.home = HOME
    for appearance in ("light", "dark"):
        theme.set_appearance(appearance)
        theme.apply(application)
        for name, prepare in STATES.items():
            clients = fakes.Fakes()
            window = MainWindow(clients.clients)
            window.show()
            prepare(window, clients)
            QTest.qWait(250)
            shown = application.activeModalWidget()
            window.grab().save(str(folder / f"{name}-{appearance}.png"))
            if shown:
                shown.grab().save(str(folder / f"{name}-dialog-{appearance}.png"))
                shown.close()
            window.close()
            window.deleteLater()


def main() -> int:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    folder.mkdir(parents=True, exist_ok=True)
    application = QApplication([])
    QLocale.setDefault(QLocale("en_GB"))
    draw(folder, application)
    return 0


if __name__ == "__main__":
    sys.exit(main())
