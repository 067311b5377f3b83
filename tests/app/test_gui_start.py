"""The window starts from what an install really brings, in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

START = """
import sys
from pathlib import Path
from PySide6.QtCore import QTimer
from app import gui
application = gui.build_application("system")
QTimer.singleShot(1500, application.quit)
sys.exit(gui.run(Path(sys.argv[1])))
"""


@pytest.mark.parametrize("language", ["C.UTF-8", "de_DE.UTF-8"])
def test_the_window_opens_and_closes_where_there_are_no_translations(
    language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = tmp_path / "resources"
    empty.mkdir()
    moved = "gui.resource_folder = lambda: Path(sys.argv[2])\n"
    code = START.replace("application = ", moved + "application = ")
    monkeypatch.setenv("LANG", language)
    command = [sys.executable, "-c", code, str(tmp_path / "data"), str(empty)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
