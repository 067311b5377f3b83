"""Logs and crash traces land in the log folder, in files of bounded size."""

import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app import logs


@pytest.fixture(autouse=True)
def root_logger_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    for handler in [each for each in root.handlers if each not in handlers]:
        root.removeHandler(handler)
        handler.close()
    root.setLevel(level)


def test_records_go_to_the_file_of_the_process(tmp_path: Path) -> None:
    path = logs.start(tmp_path / "logs", "window")
    logging.getLogger("app.test").info("read %d files", 3)
    assert path.name == "window.log"
    assert "INFO app.test" in path.read_text(encoding="utf-8")
    assert "read 3 files" in path.read_text(encoding="utf-8")


def test_a_name_that_is_not_text_does_not_break_the_log(tmp_path: Path) -> None:
    path = logs.start(tmp_path, "window")
    logging.getLogger("app.test").info("cannot read %s", b"\xff.txt".decode("utf-8", "surrogateescape"))
    assert "\\udcff.txt" in path.read_text(encoding="utf-8")


def test_the_files_stay_small(tmp_path: Path) -> None:
    logs.start(tmp_path, "window")
    for _ in range(60):
        logging.getLogger("app.test").info("x" * 100_000)
    files = list(tmp_path.iterdir())
    assert len(files) == 1 + logs.OLD_FILES
    assert all(file.stat().st_size <= logs.MAX_BYTES for file in files)


CRASH = "import sys; from pathlib import Path; from app import crash, logs; folder = Path(sys.argv[1]); "
CRASH += "logs.start(folder, 'window'); crash.start(folder, 'window'); "


@pytest.mark.parametrize(
    ("fault", "file", "words"),
    [
        ("import faulthandler; faulthandler._sigabrt()", "window.crash.txt", "Fatal Python error"),
        ("raise KeyError('lost')", "window.log", "KeyError: 'lost'"),
        (
            "import threading; t = threading.Thread(target=lambda: 1 / 0, name='worker'); t.start(); t.join()",
            "window.log",
            "uncaught error in thread worker",
        ),
    ],
)
def test_a_fault_leaves_its_trace(fault: str, file: str, words: str, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", CRASH + fault, str(tmp_path)], stderr=subprocess.DEVNULL)
    assert words in (tmp_path / file).read_text(encoding="utf-8")
