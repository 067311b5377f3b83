"""Runs the real window in a process of its own, plays a user, and prints what was seen as one JSON object.

    python -m tests.app.window_driver DATA_DIR FOLDER [--query Q] [--seconds S] [--shots DIR] [--leave-open]

The window indexes FOLDER with the real indexer; a search is typed while that goes on and again at the end. A timer
in the GUI thread fires every 5 ms: how late it comes is how long the window stood still. A process that does nothing
else measures the same beside it, because a busy machine is late for everybody.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Qt, QTimer
from PySide6.QtWidgets import QApplication

from app import gui
from ui.clients import IndexStatus, Progress, SearchResponse
from ui.main_window import MainWindow
from ui.search_view import SearchView

BEAT_MS = 5
CONTROL = """
import sys, time
late, last = [], time.perf_counter()
sys.stdin.close()
end = last + float(sys.argv[1])
while last < end:
    time.sleep(0.005)
    now = time.perf_counter()
    late.append((now - last) * 1000)
    last = now
    if len(late) % 20 == 0:
        print(*(f"{each:.2f}" for each in late[-20:]), flush=True)
"""


class Heart(QObject):
    """Counts how long the GUI thread was away, in milliseconds between two beats."""

    def __init__(self) -> None:
        super().__init__()
        self.gaps_ms: list[float] = []
        self._last = time.perf_counter()
        self._timer = QTimer(self)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.setInterval(BEAT_MS)
        self._timer.timeout.connect(self._beat)
        self._timer.start()

    def _beat(self) -> None:
        now = time.perf_counter()
        self.gaps_ms.append((now - self._last) * 1000)
        self._last = now


class User(QObject):
    """Types, looks, and closes the window once the index is idle and the last answer is there."""

    def __init__(self, window: MainWindow, options: argparse.Namespace, seen: dict[str, Any]) -> None:
        super().__init__()
        self.window, self.options, self.seen = window, options, seen
        view = window.views["search"]
        assert isinstance(view, SearchView)
        self.view = view
        self.heart: Heart | None = None
        self.last_asked = False
        self.pending_text = ""
        seen.update(answers=[], statuses=[], progress_events=0, shots=[])
        window.clients.index.status_changed.connect(self.on_status)
        window.clients.index.progress_changed.connect(self.on_progress)
        window.clients.search.answered.connect(self.on_answer)
        self.typing = QTimer(self, interval=60)
        self.typing.timeout.connect(self.type_letter)
        QTimer.singleShot(0, self.first_show)
        QTimer.singleShot(2500, self.type_query)
        QTimer.singleShot(round(options.seconds * 1000), self.too_late)

    def first_show(self) -> None:
        self.heart = Heart()

    def type_query(self) -> None:
        self.view.bar.box.clear()
        self.pending_text = self.options.query
        self.typing.start()

    def type_letter(self) -> None:
        self.view.bar.box.insert(self.pending_text[:1])
        self.pending_text = self.pending_text[1:]
        if not self.pending_text:
            self.typing.stop()

    def on_status(self, status: IndexStatus) -> None:
        self.seen["statuses"].append((status.state, status.documents, status.waiting, status.failed))
        self.seen["message"] = status.message
        if status.state == "working" and status.documents and "real-folders" not in self.seen["shots"]:
            self.shoot("real-folders", "folders")
        if status.state == "idle" and status.documents and not self.last_asked and not self.options.leave_open:
            self.last_asked = True
            QTimer.singleShot(1000, self.type_query)
            QTimer.singleShot(4000, self.finish)

    def on_progress(self, progress: Progress | None) -> None:
        self.seen["progress_events"] += progress is not None

    def on_answer(self, answer: SearchResponse) -> None:
        self.seen["answers"].append((answer.complete, len(answer.hits), round(answer.took_ms), answer.error))

    def shoot(self, name: str, view: str) -> None:
        """Drawing the whole window into a picture takes its time, so a run with pictures measures no heartbeat."""
        self.seen["shots"].append(name)
        if self.options.shots:
            self.window.show_view(view)
            self.window.grab().save(str(self.options.shots / f"{name}.png"))
            self.window.show_view("search")

    def finish(self) -> None:
        self.seen["hits"] = [hit.path for hit in self.view.model.hits]
        self.seen["preview"] = self.view.preview._body.toPlainText()[:2000]
        self.shoot("real-results", "search")
        self.shoot("real-problems", "problems")
        self.window.close()

    def too_late(self) -> None:
        self.seen["too_late"] = True
        self.window.close()


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("data_dir", type=Path)
    parser.add_argument("folder")
    parser.add_argument("--query", default="where is the key")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--shots", type=Path)
    parser.add_argument("--leave-open", action="store_true")
    return parser.parse_args(argv)


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return round(ordered[min(len(ordered) - 1, int(len(ordered) * share))], 2) if ordered else 0.0


def figures(gaps_ms: list[float]) -> dict[str, float]:
    return {"beats": len(gaps_ms), "p50": percentile(gaps_ms, 0.5), "p99": percentile(gaps_ms, 0.99),
            "max": percentile(gaps_ms, 1.0)}  # fmt: skip


def main(argv: list[str]) -> int:
    options = parse(argv)
    seen: dict[str, Any] = {}
    users: list[User] = []
    start = gui.GuiClients.start

    def start_and_play(clients: gui.GuiClients, folders: tuple[str, ...]) -> None:
        window = next(w for w in QApplication.topLevelWidgets() if isinstance(w, MainWindow))
        seen["shown_after_ms"] = round((time.perf_counter() - began) * 1000)
        seen["loaded_at_show"] = sorted({"numpy", "apsw", "tokenizers", "engine"} & set(sys.modules))
        users.append(User(window, options, seen))
        start(clients, folders)

    gui.GuiClients.start = start_and_play  # type: ignore[method-assign]
    control = subprocess.Popen(
        [sys.executable, "-c", CONTROL, str(options.seconds)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    began = time.perf_counter()
    code = gui.run(options.data_dir, folders=[options.folder])
    control.terminate()
    told, _ = control.communicate()
    heart = users[0].heart if users else None
    seen["heart"] = figures(heart.gaps_ms if heart else [])
    seen["control"] = figures([float(each) for each in told.split()])
    seen["code"] = code
    print(json.dumps(seen))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
