"""While it watches, what can be found equals what is on the disk, within seconds and without embedding twice."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from indexer.protocol import IndexChanged, RootChanged
from indexer.store.reader import Reader
from tests.indexer.files import sentences, write_mixed
from tests.processes.harness import (
    RunningIndexer,
    documents,
    embedded,
    files_on_disk,
    index_once,
    indexed_paths,
    picture,
    running,
    wait_until,
)

SETTLED_S = 5.0  # after the last change of a burst


def equals_disk(data_dir: Path, root: Path) -> bool:
    """Every file is there, whole, with the size it has now, and nothing else is."""
    wanted = {path: ((root / path).lstat().st_size, True) for path in files_on_disk(root)}
    return documents(data_dir) == wanted


def settle(indexer: RunningIndexer, root: Path) -> float:
    """Wait for the index to equal the disk; returns the seconds since now."""
    try:
        return wait_until(lambda: equals_disk(indexer.data_dir, root), 4 * SETTLED_S, "it does not equal the disk")
    except AssertionError as error:
        there, indexed = files_on_disk(root), documents(indexer.data_dir)
        raise AssertionError(f"{error}: missing {there - set(indexed)}, too many {set(indexed) - there}") from error


def test_a_thousand_files_and_a_burst_of_changes(data_dir: Path, root: Path, model: Path, tmp_path: Path) -> None:
    write_mixed(root, 1000)
    with running(data_dir, model, root) as indexer:
        indexer.wait_idle(timeout_s=120)
        assert equals_disk(data_dir, root)
        before, seen = embedded(data_dir), len(indexer.events)

        (root / "part0").rename(root / "moved")
        for number, path in enumerate(sorted((root / "part1").rglob("*.txt"))[:15]):
            path.rename(path.with_name(f"renamed{number}.txt"))
        (root / "part2" / "deep1").rename(root / "moved" / "deeper")
        assert settle(indexer, root) < SETTLED_S
        indexer.wait_idle(seen)
        assert embedded(data_dir) == before, "a rename was embedded anew"

        seen = len(indexer.events)
        edited = sorted((root / "part5").rglob("*.txt"))[:10]
        for path in sorted((root / "part3").rglob("*.md"))[:10]:
            path.unlink()
        shutil.rmtree(root / "part4" / "deep0")
        write_mixed(root, 20, first=5000)
        for number, path in enumerate(edited):
            path.write_text(sentences(9000 + number))
        saved = root / "part5" / "atomic.txt"
        saved.with_suffix(".tmp").write_text(sentences(9100))
        saved.with_suffix(".tmp").replace(saved)
        assert settle(indexer, root) < SETTLED_S
        indexer.wait_idle(seen)
        assert embedded(data_dir) == before + 31
        wait_until(lambda: not any(picture(data_dir)[-1]["strays"].values()), 20, "orphans are left")
        watched = picture(data_dir)
    index_once(tmp_path / "peace", model, root)
    assert watched == picture(tmp_path / "peace")


def test_changes_made_while_nobody_watched_are_found_at_the_start(data_dir: Path, root: Path, model: Path) -> None:
    write_mixed(root, 30)
    index_once(data_dir, model, root)
    before = embedded(data_dir)
    (root / "part0").rename(root / "elsewhere")
    next((root / "part1").rglob("*.txt")).unlink()
    (root / "new.md").write_text(f"# New\n\n{sentences(1234)}")
    index_once(data_dir, model, root)
    assert equals_disk(data_dir, root)
    assert embedded(data_dir) == before + 1


def test_a_copy_is_found_twice_and_embedded_once(data_dir: Path, root: Path, model: Path) -> None:
    (root / "a.txt").write_text(sentences(1))
    with running(data_dir, model, root) as indexer:
        indexer.wait_idle()
        seen = len(indexer.events)
        shutil.copy2(root / "a.txt", root / "b.txt")
        settle(indexer, root)
        indexer.wait_idle(seen)
        assert embedded(data_dir) == 1


def test_an_edit_embeds_only_the_passages_it_changed(data_dir: Path, root: Path, model: Path) -> None:
    paragraphs = [sentences(seed, 30) for seed in range(20)]
    (root / "long.txt").write_text("\n\n".join(paragraphs))
    with running(data_dir, model, root) as indexer:
        indexer.wait_idle()
        before, seen = embedded(data_dir), len(indexer.events)
        assert before >= 20
        paragraphs[-1] = sentences(99, 30)
        (root / "long.txt").write_text("\n\n".join(paragraphs))
        settle(indexer, root)
        indexer.wait_idle(seen)
        assert 1 <= embedded(data_dir) - before <= 4


def stored_bytes(data_dir: Path) -> bytes:
    """All that the index keeps on the disk."""
    return b"".join((data_dir / name).read_bytes() for name in ("index.db", "index.db-wal"))


def test_what_is_deleted_cannot_be_read_from_the_index(data_dir: Path, root: Path, model: Path) -> None:
    (root / "keep.txt").write_text(sentences(1))
    (root / "secret.txt").write_text("The password is xylophonequartz and nobody may know. " * 20)
    with running(data_dir, model, root) as indexer:
        indexer.wait_idle()
        assert b"xylophonequartz" in stored_bytes(data_dir)
        (root / "secret.txt").unlink()
        settle(indexer, root)
        # While the indexer runs: when it has ended, there is no WAL to look into.
        wait_until(lambda: b"xylophonequartz" not in stored_bytes(data_dir), 20, "the deleted text is still there")


def test_a_root_that_disappears_is_offline_and_keeps_its_documents(data_dir: Path, root: Path, model: Path) -> None:
    write_mixed(root, 10)
    away = root.with_name("away")
    with running(data_dir, model, root) as indexer:
        indexer.wait_idle()
        before = embedded(data_dir)
        root.rename(away)
        indexer.wait_for(lambda: any(isinstance(e, RootChanged) and e.state == "offline" for e in indexer.events))
        assert len(indexed_paths(data_dir)) == 10
    # The mount point is there, but nothing is mounted.
    root.mkdir()
    index_once(data_dir, model)
    with Reader.open(data_dir) as reader:
        assert reader.roots()[0].status == "offline" and "empty" in reader.roots()[0].reason
    assert len(indexed_paths(data_dir)) == 10
    root.rmdir()
    away.rename(root)
    index_once(data_dir, model)
    with Reader.open(data_dir) as reader:
        assert (reader.roots()[0].status, reader.roots()[0].reason) == ("online", "")
    assert embedded(data_dir) == before


def test_the_last_file_of_a_folder_can_be_deleted(data_dir: Path, root: Path, model: Path) -> None:
    (root / "only.txt").write_text(sentences(1))
    with running(data_dir, model, root) as indexer:
        indexer.wait_idle()
        (root / "only.txt").unlink()
        assert settle(indexer, root) < SETTLED_S


def test_the_last_file_may_be_deleted_while_nothing_runs(data_dir: Path, root: Path, model: Path) -> None:
    (root / "only.txt").write_text(sentences(1))
    index_once(data_dir, model, root)
    (root / "only.txt").unlink()
    index_once(data_dir, model)
    assert indexed_paths(data_dir) == {}
    with Reader.open(data_dir) as reader:
        assert reader.roots()[0].status == "online"


def test_ignored_places_are_left_alone(data_dir: Path, root: Path, model: Path) -> None:
    for name in (
        "node_modules/lib/readme.md",
        ".git/notes.txt",
        "repo/.git/x.txt",
        "repo/build/out.txt",
        "~$open.docx",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("words")
    (root / "repo" / ".gitignore").write_text("build/\n")
    (root / "repo" / "kept.txt").write_text("words")
    (root / ".inklingignore").write_text("*.log\n!important.log\n")
    for name in ("noise.log", "important.log"):
        (root / name).write_text(f"words of {name}")
    os.symlink(root, root / "loop")
    with running(data_dir, model, root) as indexer:
        indexer.wait_idle()
        assert set(indexed_paths(data_dir)) == {"repo/kept.txt", "important.log"}
        (root / ".inklingignore").write_text("")
        wait_until(lambda: "noise.log" in indexed_paths(data_dir), 20, "the rule still holds")


def test_without_work_it_uses_no_processor_even_on_the_home_folder(tmp_path: Path, model: Path) -> None:
    home = tmp_path / "home"
    data_dir = home / ".local" / "share" / "inkling"
    data_dir.mkdir(parents=True)
    write_mixed(home / "Documents", 50)
    with running(data_dir, model, home) as indexer:
        indexer.wait_idle()
        assert indexer.client.pid is not None
        processes = [psutil.Process(indexer.client.pid)]
        processes += processes[0].children(recursive=True)
        wait_until(lambda: _is_still(indexer), 20, "it does not come to rest")
        before = [process.cpu_times() for process in processes]
        started = time.monotonic()
        while time.monotonic() - started < 3.0:
            # Others read the files and write what Inkling does not read; neither is a reason to wake up for work.
            for path in (home / "Documents").rglob("*.txt"):
                path.read_bytes()
            (home / "Documents" / "movie.mp4").write_bytes(b"x")
            time.sleep(0.25)
        after = [process.cpu_times() for process in processes]
        used_s = sum(b.user + b.system - a.user - a.system for a, b in zip(before, after, strict=True))
        assert used_s <= 0.02, f"{used_s} s of processor time in 3 s"


def _is_still(indexer: RunningIndexer) -> bool:
    seen = len(indexer.events)
    time.sleep(1.0)
    return len(indexer.events) == seen


@pytest.mark.skipif(sys.platform != "linux", reason="cgroup-free CPU accounting by /proc")
def test_it_keeps_to_its_worker_cap(data_dir: Path, root: Path, model: Path) -> None:
    write_mixed(root, 300)
    started = time.monotonic()
    with running(data_dir, model, root, workers=1) as indexer:
        assert indexer.client.pid is not None
        process = psutil.Process(indexer.client.pid)
        indexer.wait_idle(timeout_s=120)
        wall_s = time.monotonic() - started
        used_s = sum(each.cpu_times().user + each.cpu_times().system for each in [process, *process.children()])
    assert used_s / wall_s <= 1.0


def test_changes_are_announced_for_the_window(data_dir: Path, root: Path, model: Path) -> None:
    with running(data_dir, model, root) as indexer:
        indexer.wait_idle()
        (root / "a.txt").write_text(sentences(1))
        indexer.wait_for(lambda: any(isinstance(e, IndexChanged) and e.documents == 1 for e in indexer.events))


def test_the_process_stays_out_of_the_way(data_dir: Path, model: Path) -> None:
    with running(data_dir, model) as indexer:
        indexer.wait_idle()
        process = psutil.Process(indexer.client.pid)
        assert process.nice() >= 10
        if sys.platform == "linux":
            assert process.ionice().ioclass == psutil.IOPRIO_CLASS_IDLE


def test_search_by_another_process_never_hinders_it(data_dir: Path, root: Path, model: Path) -> None:
    write_mixed(root, 40)
    with running(data_dir, model, root) as indexer:
        indexer.wait_idle()
        with Reader.open(data_dir) as reader, reader.snapshot():
            reader.counts()
            (root / "late.txt").write_text(sentences(5))
            indexer.wait_for(lambda: any(isinstance(e, IndexChanged) and e.documents == 41 for e in indexer.events))


def test_status_is_told_while_it_works(data_dir: Path, root: Path, model: Path) -> None:
    write_mixed(root, 5)
    command = [sys.executable, "-m", "app", "--data-dir", str(data_dir), "status", "--json"]
    with running(data_dir, model, root) as indexer:
        indexer.wait_idle()
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        assert '"documents": 5' in done.stdout
