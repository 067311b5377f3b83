from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app import index_process
from app.index_bridge import IndexBridge
from indexer.options import IndexerOptions
from indexer.protocol import IndexChanged, Notice, Progress, StateChanged, encode_line
from indexer.store.writer import Writer
from ui.clients import IndexStatus

# A child that tells what the test wrote into a file, then echoes the commands it hears into another.
CHILD = """
import sys
print(open(sys.argv[1]).read(), end="", flush=True)
with open(sys.argv[2], "a") as heard:
    for line in sys.stdin:
        print(line, end="", file=heard, flush=True)
        if '"stop"' in line:
            break
"""


class Child:
    def __init__(self, folder: Path) -> None:
        self.script, self.tells, self.heard = folder / "child.py", folder / "tells", folder / "heard"
        self.script.write_text(CHILD)
        self.tells.write_text("")
        self.heard.write_text("")

    @property
    def command(self) -> list[str]:
        return [sys.executable, str(self.script), str(self.tells), str(self.heard)]


@pytest.fixture
def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Child:
    made = Child(tmp_path)
    monkeypatch.setattr(index_process, "child_command", lambda name: made.command)
    return made


@pytest.fixture
def bridge(qtbot: QtBot, tmp_path: Path, child: Child) -> Iterator[IndexBridge]:
    bugs: list[Exception] = []
    (tmp_path / "data").mkdir()
    made = IndexBridge(IndexerOptions(data_dir=tmp_path / "data"), bugs.append)
    yield made
    made.close()
    assert not bugs


def work(done: int) -> str:
    return encode_line(Progress("words", f"/a/{done}", done, 5000, 0, 0, 10.0, 1.0, 0))


def test_a_flood_of_progress_reaches_the_window_as_a_trickle(qtbot: QtBot, child: Child, bridge: IndexBridge) -> None:
    child.tells.write_text("".join(work(done) for done in range(5001)))
    seen: list[int] = []
    start = time.monotonic()
    bridge.progress_changed.connect(lambda progress: seen.append(progress.done))
    bridge.start()
    qtbot.waitUntil(lambda: 5000 in seen, timeout=30_000)
    assert len(seen) <= 2 + 10 * (time.monotonic() - start)


def test_wishes_reach_the_indexer(qtbot: QtBot, tmp_path: Path, child: Child, bridge: IndexBridge) -> None:
    bridge.start((str(tmp_path),))
    bridge.add_root("/b")
    bridge.remove_root("/c")
    bridge.set_paused(True)
    bridge.rescan()
    bridge.retry(("/d/e.pdf",))
    bridge.retry(())
    expected = ["add_root", "add_root", "remove_root", "pause", "rescan", "retry", "retry"]
    qtbot.waitUntil(lambda: child.heard.read_text().count("\n") >= len(expected), timeout=30_000)
    lines = child.heard.read_text().splitlines()
    assert [line.split('"')[3] for line in lines] == expected
    assert "/d/e.pdf" in lines[5]


def test_a_folder_is_shown_the_moment_it_is_added(qtbot: QtBot, bridge: IndexBridge) -> None:
    statuses: list[IndexStatus] = []
    bridge.status_changed.connect(statuses.append)
    bridge.add_root("/b")
    assert [root.path for root in statuses[-1].roots] == ["/b"]


def test_figures_come_from_the_index_file(qtbot: QtBot, tmp_path: Path, child: Child, bridge: IndexBridge) -> None:
    with Writer.open(tmp_path / "data") as writer:
        root = writer.add_root(b"/notes")
        writer.put_document(root.root_id, b"a.md", size=1, mtime_ns=0, content_id=None)
    child.tells.write_text(encode_line(StateChanged("idle")) + encode_line(IndexChanged(1, 0, 0)))
    statuses: list[IndexStatus] = []
    bridge.status_changed.connect(statuses.append)
    bridge.start()
    qtbot.waitUntil(lambda: any(each.documents == 1 and each.state == "idle" for each in statuses), timeout=30_000)
    last = statuses[-1]
    assert [(root.path, root.documents, root.state) for root in last.roots] == [("/notes", 1, "online")]
    assert last.size_bytes > 0


def test_notices_and_the_end_are_told(qtbot: QtBot, child: Child, bridge: IndexBridge) -> None:
    child.tells.write_text(encode_line(Notice("Search by meaning is off.")))
    statuses: list[IndexStatus] = []
    bridge.status_changed.connect(statuses.append)
    bridge.start()
    qtbot.waitUntil(lambda: any("meaning is off" in status.message for status in statuses), timeout=30_000)
