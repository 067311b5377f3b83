"""Every file is indexed, or listed with a true sentence; none of them takes others with it."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.index_process import child_command, child_environment
from indexer.errors import StoreError
from indexer.extract.process import ExtractProcess, FileError, Interrupted, WorkerDied
from indexer.options import ExtractLimits
from indexer.store.reader import Reader
from tests.indexer.files import encrypted_pdf, pdf_file, sentences, write_mixed
from tests.processes.harness import embedded, index_once, indexed_paths, picture, running, wait_until
from tests.processes.test_kill import write_log
from tests.processes.test_lifecycle import ROOT


def failures(data_dir: Path) -> dict[bytes, dict[str, Any]]:
    """What `inkling failures --json` lists, by path."""
    command = [sys.executable, "-m", "app", "--data-dir", str(data_dir), "failures", "--json"]
    entries = json.loads(subprocess.check_output(command, cwd=ROOT, timeout=60))
    return {
        base64.b64decode(entry["path_bytes"]) if "path_bytes" in entry else entry["path"].encode(): entry
        for entry in entries
    }


def words_of(data_dir: Path) -> str:
    """All indexed text."""
    return "\n".join(chunk["text"] for row in picture(data_dir) for chunk in row.get("chunks", []))


def test_files_that_cannot_be_read_are_listed_and_the_rest_is_indexed(data_dir: Path, root: Path, model: Path) -> None:
    write_mixed(root, 10)
    awkward = {
        "broken.pdf": (b"%PDF-1.4\n1 0 obj\n<< /Type", "broken", "damaged"),
        "locked.pdf": (encrypted_pdf("secret"), "encrypted", "password"),
        "empty.txt": (b"", "empty", "empty"),
        "picture.txt": (b"\x89PNG\r\n\x1a\n" + bytes(200), "not_text", "picture"),
        "letter.docx": (b"not a docx at all", "broken", "damaged"),
        "scan.pdf": (pdf_file(["", ""]), "partial", "pictures"),
        "renamed.pdf": (b"plain words", "not_its_type", "not PDF"),
    }
    for name, (data, _, _) in awkward.items():
        (root / name).write_bytes(data)
    index_once(data_dir, model, root)
    listed = failures(data_dir)
    assert set(listed) == {os.fsencode(root / name) for name in awkward}
    for name, (_, kind, word) in awkward.items():
        entry = listed[os.fsencode(root / name)]
        assert entry["kind"] == kind and word in entry["message"] and entry["message"].endswith(".")
    assert sum(bool(row["chunks"]) for row in picture(data_dir) if "chunks" in row) == 10


def test_a_failed_file_is_not_tried_again_until_it_changes(data_dir: Path, root: Path, model: Path) -> None:
    (root / "a.pdf").write_bytes(b"%PDF-1.4 broken")
    index_once(data_dir, model, root)
    index_once(data_dir, model, root)
    (entry,) = failures(data_dir).values()
    assert entry["attempts"] == 1
    with running(data_dir, model, root) as indexer:
        indexer.wait_idle()
        indexer.client.retry(str(root / "a.pdf"))
        indexer.wait_for(lambda: len(indexer.failures()) == 1)
        (root / "a.pdf").write_bytes(pdf_file(["now it can be read"]))
        wait_until(lambda: failures(data_dir) == {}, 20, "still failed")
    assert "now it can be read" in words_of(data_dir)


def test_names_of_every_sort_are_indexed(data_dir: Path, root: Path, model: Path) -> None:
    names = [
        "line\nbreak.txt",
        "🙂.md",
        "e\u0301.txt",
        "é.txt",
        " space .txt",
        "#hash%20.txt",
        "-dash.txt",
        "a" * 240 + ".txt",
    ]
    raw = [os.fsencode(name) for name in names] + [b"caf\xe9.txt", b"\xff\xfe\xfd.md"]
    for number, name in enumerate(raw):
        with open(os.path.join(os.fsencode(root), name), "wb") as file:
            file.write(sentences(number).encode())
    with running(data_dir, model, root) as indexer:
        indexer.wait_idle()
        assert {os.fsencode(path) for path in indexed_paths(data_dir)} == set(raw)
        for name in raw:
            os.rename(os.path.join(os.fsencode(root), name), os.path.join(os.fsencode(root), b"new " + name))
        wait_until(
            lambda: {os.fsencode(path) for path in indexed_paths(data_dir)} == {b"new " + name for name in raw},
            20,
            "renamed names are not followed",
        )
        indexer.wait_idle()
    assert embedded(data_dir) == len(raw)
    assert failures(data_dir) == {}


@pytest.fixture
def unprivileged() -> Iterator[list[str]]:
    """The start of a command that runs what follows without the right to read everything."""
    if os.geteuid() != 0:
        yield []
        return
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    starts_others = "import sys, subprocess, app.cli, engine; subprocess.check_call([sys.executable, '-c', ''])"
    probe = [*nobody, sys.executable, "-c", starts_others]
    if subprocess.run(probe, cwd=ROOT, capture_output=True, timeout=60).returncode == 0:
        yield nobody
    else:  # this Python lies where only root may look: then root without its power over permissions
        rights = "-dac_override,-dac_read_search"
        yield ["setpriv", f"--bounding-set={rights}", f"--inh-caps={rights}"]


def test_a_file_without_read_permission_is_listed_and_tried_again(model: Path, unprivileged: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        root, data_dir, copy = top / "files", top / "data", top / "model"
        write_mixed(root, 5)
        data_dir.mkdir()
        shutil.copytree(model, copy)
        (root / "private.txt").write_text("nobody may read these words")
        (root / "closed").mkdir()
        (root / "closed" / "inside.txt").write_text("nor these")
        if "--reuid=65534" in unprivileged:
            for path in [top, *top.rglob("*")]:
                os.chown(path, 65534, 65534)
        (root / "private.txt").chmod(0)
        (root / "closed").chmod(0)
        command = [*unprivileged, *child_command("indexer")]
        index_once(data_dir, copy, root, command=command)
        listed = failures(data_dir)
        assert listed[os.fsencode(root / "private.txt")]["kind"] == "permission"
        assert "permission" in listed[os.fsencode(root / "private.txt")]["message"]
        assert listed[os.fsencode(root / "closed")]["kind"] == "folder"
        assert len(listed) == 2 and sum(indexed_paths(data_dir).values()) == 5
        (root / "private.txt").chmod(0o644)
        (root / "closed").chmod(0o755)
        index_once(data_dir, copy, root, command=command)
        assert failures(data_dir) == {} and sum(indexed_paths(data_dir).values()) == 7


def check_big_log(data_dir: Path, root: Path, model: Path, size_bytes: int, limit: int) -> float:
    """Index a big log beside small files; returns how long the whole took, in seconds."""
    write_log(root / "aaa.log", size_bytes)
    write_mixed(root, 30)
    started = time.monotonic()
    with running(data_dir, model, root, vector_chunks_per_file=limit) as indexer:
        wait_until(lambda: _with_vectors(data_dir) >= 31, 120, "small files wait for the log")
        assert not indexed_paths(data_dir).get("aaa.log", False), "the log was done before the small files"
        indexer.wait_idle(timeout_s=1800)
    took_s = time.monotonic() - started
    (row,) = [row for row in picture(data_dir) if row.get("path") == "aaa.log"]
    assert row["complete"] and row["chars"] == (root / "aaa.log").stat().st_size
    with_vectors = [chunk for chunk in row["chunks"] if chunk["embed"]]
    assert len(with_vectors) == limit and all(chunk["vector"] for chunk in with_vectors)
    assert row["chunks"][-1]["end"] >= row["chars"] - 1
    last_line = (root / "aaa.log").read_text().splitlines()[-1]
    assert last_line in row["chunks"][-1]["text"]
    entry = failures(data_dir)[os.fsencode(root / "aaa.log")]
    assert entry["kind"] == "partial" and f"first {limit:,} passages" in entry["message"]
    return took_s


def _with_vectors(data_dir: Path) -> int:
    try:
        with Reader.open(data_dir) as reader:
            return reader.counts().vectors
    except StoreError:  # not created yet
        return 0


def test_a_big_log_is_found_by_words_in_full_and_nobody_waits_for_it(data_dir: Path, root: Path, model: Path) -> None:
    check_big_log(data_dir, root, model, 8 << 20, limit=200)


@pytest.mark.slow
def test_a_log_of_200_megabytes(data_dir: Path, root: Path, model: Path) -> None:
    took_s = check_big_log(data_dir, root, model, 200 << 20, limit=3000)
    print(f"200 MB log: {took_s:.0f} s")


# ---- the extraction process under attack ----


HANG = "import sys\nfor line in sys.stdin:\n    while True: pass\n"
CRASH = "import sys, os\nfor line in sys.stdin:\n    os.abort()\n"


def test_a_reader_that_hangs_is_ended(tmp_path: Path) -> None:
    process = ExtractProcess(replace(ExtractLimits(), wall_s=0.5), [sys.executable, "-c", HANG])
    with pytest.raises(WorkerDied) as caught:
        process.open(os.fsencode(tmp_path / "a.txt"), _text(), 10)
    assert caught.value.kind == "timeout" and caught.value.blamed and process.pid is None


def test_a_reader_that_crashes_is_told_from_one_that_was_killed(tmp_path: Path) -> None:
    process = ExtractProcess(ExtractLimits(), [sys.executable, "-c", CRASH])
    with pytest.raises(WorkerDied) as caught:
        process.open(os.fsencode(tmp_path / "a.txt"), _text(), 10)
    assert caught.value.kind == "crash" and caught.value.blamed


def test_a_file_that_takes_too_much_memory_costs_only_itself(tmp_path: Path) -> None:
    limits = replace(ExtractLimits(), memory_bytes=300 << 20)
    (tmp_path / "huge.html").write_bytes(b"<p>word " * (12 << 20))
    (tmp_path / "small.txt").write_text("fine")
    process = ExtractProcess(limits)
    try:
        from indexer.extract import EXTRACTORS

        process.open(os.fsencode(tmp_path / "huge.html"), EXTRACTORS["html"], 1)
        with pytest.raises(FileError) as caught:
            while not process.next()[1]:
                pass
        assert caught.value.kind in ("memory", "crash")
        process.open(os.fsencode(tmp_path / "small.txt"), _text(), 4)
        assert process.next()[1]
    finally:
        process.stop()


def test_a_wait_for_a_slow_reader_can_be_interrupted(tmp_path: Path) -> None:
    process = ExtractProcess(ExtractLimits(), [sys.executable, "-c", HANG])
    threading.Timer(0.3, process.interrupt).start()
    with pytest.raises(Interrupted):
        process.open(os.fsencode(tmp_path / "a.txt"), _text(), 10)
    process.stop()


def test_a_file_that_kills_its_reader_twice_is_left_alone(data_dir: Path, root: Path, model: Path) -> None:
    write_mixed(root, 5)
    (root / "killer.html").write_text("<p>die</p>")
    environment = child_environment(1)
    guard = root.parent / "killer"
    guard.mkdir()
    # Every extraction process aborts on this one file, as a parser's bug would make it.
    (guard / "usercustomize.py").write_text(
        "import os, sys\n"
        "if 'indexer.extract.worker' in ' '.join(sys.orig_argv):\n"
        "    sys.addaudithook(lambda e, a: os.abort() if e == 'open' and 'killer' in str(a[0]) else None)\n"
    )
    import site

    if not site.ENABLE_USER_SITE:
        (guard / "sitecustomize.py").write_text((guard / "usercustomize.py").read_text())
    environment["PYTHONPATH"] = f"{guard}{os.pathsep}{environment['PYTHONPATH']}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", environment["PYTHONPATH"])
        index_once(data_dir, model, root)
    entry = failures(data_dir)[os.fsencode(root / "killer.html")]
    assert entry["kind"] == "crash" and entry["quarantined"] and entry["attempts"] == 2
    assert "left alone" in entry["message"]
    assert sum(indexed_paths(data_dir).values()) == 5


def _text() -> Any:
    from indexer.extract import EXTRACTORS

    return EXTRACTORS["text"]


def test_a_log_that_never_rests_is_still_read_to_its_end(data_dir: Path, root: Path, model: Path) -> None:
    write_log(root / "busy.log", 5 << 20)
    with running(data_dir, model, root, vector_chunks_per_file=10) as indexer:
        stop = threading.Event()

        def append() -> None:
            number = 0
            while not stop.wait(0.05):
                with (root / "busy.log").open("a", encoding="utf-8") as file:
                    file.write(f"another line {number}\n")
                number += 1

        writer = threading.Thread(target=append)
        writer.start()
        try:
            wait_until(lambda: indexed_paths(data_dir).get("busy.log", False), 60, "it is never whole")
        finally:
            stop.set()
            writer.join()
        indexer.client.close()
