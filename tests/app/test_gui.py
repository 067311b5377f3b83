"""The real window with the real indexer and search, each test in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from app.single_instance import SingleInstance
from tests.benchmarks.heartbeat import make_files
from tests.conftest import ROOT

DRIVER = [sys.executable, "-m", "tests.app.window_driver"]
WAIT_S = 120.0


def drive(data_dir: Path, folder: Path, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*DRIVER, str(data_dir), str(folder), "--seconds", str(WAIT_S), *options],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "QT_QPA_PLATFORM": "offscreen"},
    )  # fmt: skip


def outcome(process: subprocess.Popen[str]) -> dict[str, Any]:
    told, trouble = process.communicate(timeout=WAIT_S + 30)
    assert process.returncode == 0, trouble
    seen = json.loads(told.splitlines()[-1])
    assert isinstance(seen, dict)
    return seen


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a window saw that indexed a hundred files, was searched meanwhile, and was closed."""
    base = tmp_path_factory.mktemp("window")
    make_files(base / "files", 100, seed=3)
    (base / "files" / "letter.txt").write_text(
        "Dear Jo,\n\nlast night we saw the rings of Saturn from the garden, and four moons of Jupiter.\n", "utf-8"
    )
    return outcome(drive(base / "data", base / "files", "--query", "astronomy, watching planets"))


def test_the_window_shows_before_anything_heavy_is_loaded(seen: dict[str, Any]) -> None:
    assert seen["loaded_at_show"] == []


def test_files_are_indexed_with_progress_until_idle(seen: dict[str, Any]) -> None:
    assert not seen.get("too_late")
    assert seen["statuses"][-1] == ["idle", 101, 0, 0]
    assert seen["progress_events"] >= 1


def test_typing_finds_by_meaning_what_shares_no_word_with_the_question(seen: dict[str, Any]) -> None:
    assert any(Path(hit).name == "letter.txt" for hit in seen["hits"][:3])
    assert all(error == "" for *_, error in seen["answers"])
    assert seen["answers"][-1][0], "the last answer is complete"
    assert seen["preview"]


def test_the_window_never_stands_still_for_long(seen: dict[str, Any]) -> None:
    """Coarser than the promise, which tests/benchmarks/heartbeat.py measures where nothing else runs."""
    heart, control = seen["heart"], seen["control"]
    assert heart["beats"] > 500
    assert heart["p99"] <= 32 + 2 * control["p99"], seen
    assert heart["max"] <= 400 + 2 * control["max"], seen


def test_a_second_start_brings_the_first_window_forward_and_leaves(tmp_path: Path) -> None:
    raised: list[bool] = []
    first = SingleInstance(tmp_path)
    assert first.acquire(lambda: raised.append(True))
    try:
        code = subprocess.run(
            [sys.executable, "-m", "app", "--data-dir", str(tmp_path)], cwd=ROOT, timeout=WAIT_S,
            env={**os.environ, "QT_QPA_PLATFORM": "offscreen"}, check=False,
        ).returncode  # fmt: skip
    finally:
        first.close()
    assert code == 0 and raised == [True]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows closes windows by messages, not signals")
def test_a_signal_closes_window_and_indexer_in_order(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.txt").write_text("A note.", "utf-8")
    process = drive(tmp_path / "data", tmp_path / "files", "--leave-open")
    parent = psutil.Process(process.pid)
    deadline = time.monotonic() + WAIT_S
    while not (children := indexers(parent)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert children, "the indexer was never started"
    process.send_signal(signal.SIGTERM)
    outcome(process)
    gone, alive = psutil.wait_procs(children, timeout=10)
    assert gone and not alive


def indexers(parent: psutil.Process) -> list[psutil.Process]:
    return [child for child in parent.children(recursive=True) if "indexer" in child.cmdline()]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems always have a display")
def test_without_a_display_a_sentence_says_so(tmp_path: Path) -> None:
    hidden = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    done = subprocess.run(
        [sys.executable, "-m", "app", "--data-dir", str(tmp_path)], cwd=ROOT, timeout=WAIT_S, capture_output=True,
        text=True, env={name: value for name, value in os.environ.items() if name not in hidden}, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "no display" in done.stderr and "Traceback" not in done.stderr
