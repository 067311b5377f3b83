"""One window a data folder: the second asks the first to come forward."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from app.single_instance import SingleInstance

HOLD = """
import sys
from pathlib import Path
from app.single_instance import SingleInstance
print(SingleInstance(Path(sys.argv[1])).acquire(lambda: None), flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("depth", [1, 30], ids=["short path", "path too long for a socket"])
def test_the_second_is_refused_and_reaches_the_first(depth: int, tmp_path: Path) -> None:
    folder = tmp_path.joinpath(*["deep"] * depth)
    raised = threading.Event()
    first, second = SingleInstance(folder), SingleInstance(folder)
    assert first.acquire(raised.set)
    assert not second.acquire(raised.set)
    assert second.ask_to_raise()
    assert raised.wait(5)
    first.close()
    assert second.acquire(raised.set)
    second.close()


def test_two_data_folders_have_two_windows(tmp_path: Path) -> None:
    one, two = SingleInstance(tmp_path / "one"), SingleInstance(tmp_path / "two")
    assert one.acquire(lambda: None) and two.acquire(lambda: None)
    one.close()
    two.close()


def test_a_killed_window_leaves_the_place_free(tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == "True\n"
        mine = SingleInstance(tmp_path)
        assert not mine.acquire(lambda: None)
        child.kill()
    assert mine.acquire(lambda: None)
    mine.close()


def test_asking_where_nobody_listens_says_no(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert not SingleInstance(tmp_path).ask_to_raise()
    assert "does not answer" in caplog.text
