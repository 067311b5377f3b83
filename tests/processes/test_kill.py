"""Killed at random moments, the index ends up as if nothing had happened."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from app.index_process import child_environment
from tests.indexer.files import sentences, text_file, write_mixed
from tests.processes.harness import index_once, picture
from tests.processes.test_lifecycle import ROOT

TARGETS = ["parent", "indexer", "worker"]
VECTOR_CHUNKS = 60  # of one file, so that the log costs little


def test_a_few_kills_leave_no_trace(data_dir: Path, root: Path, model: Path, tmp_path: Path) -> None:
    kill_often(
        data_dir, root, model, tmp_path, ["worker", "indexer", "worker", "parent"], files=60, log_bytes=1 << 20, seed=1
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3])
def test_thirty_kills_leave_no_trace(data_dir: Path, root: Path, model: Path, tmp_path: Path, seed: int) -> None:
    kill_often(data_dir, root, model, tmp_path, TARGETS * 10, files=600, log_bytes=6 << 20, seed=seed)


def kill_often(
    data_dir: Path,
    root: Path,
    model: Path,
    tmp_path: Path,
    targets: list[str],
    *,
    files: int,
    log_bytes: int,
    seed: int,
) -> None:
    """Index while killing the parent, the indexer or the extraction process; then compare with a build in peace."""
    chance = random.Random(seed)
    paths = write_mixed(root, files)
    write_log(root / "big.log", log_bytes)
    (root / "broken.pdf").write_bytes(b"%PDF-1.4 nothing follows")
    (data_dir / "settings.toml").write_text(f"vector_chunks_per_file = {VECTOR_CHUNKS}\n", encoding="utf-8")
    chance.shuffle(targets)
    parent: subprocess.Popen[bytes] | None = None
    for number, target in enumerate(targets):
        for path in chance.sample(paths, 8):  # so that there is always something to do
            path.write_bytes(text_file(number * 1000 + int(path.stat().st_size)))
        if parent is None or parent.poll() is not None:
            parent = start(data_dir, root, model)
        while not strike(parent, target, chance):
            parent = start(data_dir, root, model)
    if parent is not None:
        parent.kill()
        parent.wait()
    wait_for_lock(data_dir)
    index_once(data_dir, model, root, vector_chunks_per_file=VECTOR_CHUNKS)
    index_once(tmp_path / "peace", model, root, vector_chunks_per_file=VECTOR_CHUNKS)
    rows, peace = picture(data_dir), picture(tmp_path / "peace")
    assert [row for row in rows if "failed" in row] == [row for row in peace if "failed" in row]
    assert rows == peace
    assert not any(rows[-1]["strays"].values())


def start(data_dir: Path, root: Path, model: Path) -> subprocess.Popen[bytes]:
    """`inkling index ROOT --watch` as a user would start it."""
    command = [sys.executable, "-m", "app", "--data-dir", str(data_dir), "index", str(root), "--watch"]
    arguments = ["--model", str(model), "--precision", "fp32", "--workers", "1"]
    quiet = subprocess.DEVNULL
    return subprocess.Popen([*command, *arguments], cwd=ROOT, env=child_environment(1), stdout=quiet, stderr=quiet)


def strike(parent: subprocess.Popen[bytes], wanted: str, chance: random.Random) -> bool:
    """Wait a moment, then kill one of the three; False where the parent had given up on its indexer before."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        try:
            indexers = psutil.Process(parent.pid).children()
            below = psutil.Process(parent.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            indexers, below = [], []
        workers = [process for process in below if process not in indexers]
        pids = {"parent": [parent.pid], "indexer": [p.pid for p in indexers], "worker": [p.pid for p in workers]}[
            wanted
        ]
        if pids and indexers:
            time.sleep(chance.uniform(0.0, 1.2))
            try:
                os.kill(chance.choice(pids), signal.SIGKILL)
            except ProcessLookupError:
                continue
            if wanted == "parent":
                parent.wait()
                psutil.wait_procs(below, timeout=20)
            return True
        if parent.poll() is not None:
            return False
        time.sleep(0.02)
    raise AssertionError(f"no {wanted} to kill")


def wait_for_lock(data_dir: Path) -> None:
    """Until no process holds the data folder any more."""
    from indexer.lock import AlreadyIndexingError, DataFolderLock

    until = time.monotonic() + 20
    while True:
        try:
            with DataFolderLock(data_dir):
                return
        except AlreadyIndexingError:
            assert time.monotonic() < until, "an indexer outlived its parent"
            time.sleep(0.05)


def write_log(path: Path, size_bytes: int) -> None:
    """A log of so many bytes, no two lines the same."""
    said = [sentences(seed, 1) for seed in range(97)]
    with path.open("w", encoding="utf-8") as file:
        written = number = 0
        while written < size_bytes:
            moment = f"2026-03-04 12:{number // 60 % 60:02}:{number % 60:02}"
            written += file.write(f"{moment} unit{number % 17} event{number} {said[number % 97]}\n")
            number += 1
