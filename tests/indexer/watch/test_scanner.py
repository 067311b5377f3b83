"""The disk against the store: what is new, changed, moved or gone, and what only seems gone."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from indexer.extract import EXTRACTORS
from indexer.options import IndexerOptions
from indexer.store.records import NewChunk, Root
from indexer.store.writer import Writer
from indexer.watch import filesystem, scanner
from indexer.watch.filesystem import folder_identity, volume_identity
from indexer.watch.ignore import IgnoreRules
from indexer.watch.scanner import Comparison, Outcome, Scope
from indexer.watch.volumes import root_trouble
from indexer.words import Derivation


class Bench:
    """A store, a folder, and comparisons between the two."""

    def __init__(self, tmp_path: Path) -> None:
        self.folder = tmp_path / "files"
        self.folder.mkdir()
        options = IndexerOptions(tmp_path / "data")
        options.data_dir.mkdir()
        self.writer = Writer.open(options.data_dir)
        self.derivation = Derivation(lambda text: np.zeros((0, 2), np.int32), 200, options)
        self.stamp = self.derivation.stamp(EXTRACTORS["text"])
        self.root: Root = self.writer.add_root(os.fsencode(self.folder))
        self.scope = self.make_scope()

    def make_scope(self, *, network: bool = False) -> Scope:
        path = os.fsencode(self.folder)
        return Scope(self.root.root_id, path, IgnoreRules(path), network)

    def write(self, name: str, text: str = "words") -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def scan(self, *paths: bytes, scope: Scope | None = None) -> Outcome:
        """Compare everything, or only some paths."""
        comparison = Comparison(self.writer, self.derivation, lambda directory: None, 1 << 20)
        for path in paths:
            list(comparison.path(scope or self.scope, path))
        if not paths:
            list(comparison.tree(scope or self.scope, b""))
        list(comparison.finish())
        return comparison.outcome

    def queued(self) -> list[bytes]:
        """What waits, in its order; and index it, as the words stage would."""
        items = self.writer.peek(10_000)
        for item in items:
            path = self.folder / os.fsdecode(item.path)
            status = path.lstat()
            content = self.writer.begin_content(path.read_bytes(), self.stamp)
            if not content.complete:
                self.writer.add_chunks(content.content_id, [NewChunk(0, 5, "words", embed=False)])
                self.writer.finish_content(content.content_id, char_count=5)
            self.writer.put_document(
                self.root.root_id,
                item.path,
                size=status.st_size,
                mtime_ns=status.st_mtime_ns,
                content_id=content.content_id,
            )
        self.writer.done(items)
        return [item.path for item in items]

    def documents(self) -> dict[bytes, int]:
        return {d.path: d.document_id for d in self.writer.documents(self.root.root_id)}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.writer.close()


def test_new_files_are_queued_and_settled_ones_are_not(bench: Bench) -> None:
    for name in ("a.txt", "b/c.log", "film.mp4"):
        bench.write(name)
    assert bench.scan().queued == 2
    assert sorted(bench.queued()) == [b"a.txt", b"b/c.log"]
    assert bench.scan() == Outcome()
    bench.write("a.txt", "other words")
    assert bench.scan().queued == 1


def test_another_version_of_the_chunker_queues_all_anew(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.write("a.txt")
    bench.scan()
    bench.queued()
    monkeypatch.setattr("indexer.chunk.CHUNKER_VERSION", 99)
    assert bench.scan().queued == 1
    bench.derivation = Derivation(None, 200, bench.derivation.options)
    assert bench.scan().queued == 0, "a model that is missing today is no reason to throw anything away"


def test_a_rename_is_one_update_and_queues_nothing(bench: Bench) -> None:
    old = bench.write("dir/a.txt")
    bench.scan()
    bench.queued()
    before = bench.documents()[b"dir/a.txt"]
    old.rename(bench.folder / "dir" / "b.txt")
    outcome = bench.scan()
    assert (outcome.moved, outcome.deleted, outcome.queued) == (1, 0, 0)
    assert bench.documents() == {b"dir/b.txt": before}
    (bench.folder / "dir").rename(bench.folder / "elsewhere")
    assert bench.scan(b"dir", b"elsewhere").moved == 1
    assert bench.documents() == {b"elsewhere/b.txt": before}


def test_what_only_looks_like_a_move_is_left_to_the_hash(bench: Bench) -> None:
    """Files out of an archive share sizes and whole-second times."""
    old = bench.write("v1.txt", "words one")
    os.utime(old, (1_600_000_000, 1_600_000_000))
    bench.scan()
    bench.queued()
    old.unlink()
    new = bench.write("v2.txt", "words two")
    os.utime(new, (1_600_000_000, 1_600_000_000))
    outcome = bench.scan()
    assert (outcome.moved, outcome.deleted, outcome.queued) == (0, 1, 1)


def test_of_two_that_fit_none_is_taken_for_the_move(bench: Bench) -> None:
    for name in ("a.txt", "b.txt"):
        os.utime(bench.write(name), ns=(5_000_000_123, 5_000_000_123))
    bench.scan()
    bench.queued()
    for name in ("a.txt", "b.txt"):
        (bench.folder / name).rename(bench.folder / f"new-{name}")
    outcome = bench.scan()
    assert (outcome.moved, outcome.deleted, outcome.queued) == (0, 2, 2)


def test_deleted_files_go_and_their_failures_with_them(bench: Bench) -> None:
    path = bench.write("a.txt")
    bench.write("b/c.txt")
    bench.scan()
    bench.queued()
    bench.writer.record_failure(bench.root.root_id, b"a.txt", "partial", "x")
    path.unlink()
    assert bench.scan(b"a.txt").deleted == 1
    assert set(bench.documents()) == {b"b/c.txt"} and bench.writer.failures() == []
    (bench.folder / "b" / "c.txt").unlink()
    (bench.folder / "b").rmdir()
    assert bench.scan(b"b").deleted == 1


def test_a_folder_that_cannot_be_read_deletes_nothing_and_is_a_failure(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.write("shut/a.txt")
    bench.write("b.txt")
    bench.scan()
    bench.queued()
    real = os.scandir

    def scandir(path: bytes) -> object:
        if path.endswith(b"shut"):
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    outcome = bench.scan()
    assert outcome.held_back == 1 and outcome.deleted == 0
    (failure,) = bench.writer.failures()
    assert (failure.path, failure.kind) == (b"shut", "folder") and "Permission denied" in failure.message
    monkeypatch.undo()
    assert bench.scan() == Outcome() and bench.writer.failures() == []


def test_a_volume_that_is_not_mounted_deletes_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.write("usb/a.txt")
    bench.write("b.txt")
    bench.scan()
    bench.queued()
    bench.scope.mounts.add(b"usb")
    (bench.folder / "usb" / "a.txt").unlink()
    assert bench.scan().deleted == 0 and bench.scan(b"usb/a.txt").deleted == 0
    assert b"usb/a.txt" in bench.documents()
    monkeypatch.setattr(os.path, "ismount", lambda path: True)
    assert bench.scan().deleted == 1


def test_a_network_folder_that_loses_much_at_once_is_given_time(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        bench.write(f"{number}.txt", str(number))
    bench.scan()
    bench.queued()
    for path in bench.folder.glob("[12]?.txt"):
        path.unlink()
    scope = bench.make_scope(network=True)
    outcome = bench.scan(scope=scope)
    assert outcome.deleted == 20 and outcome.retry_in_s is None, "a few may go at once"
    for number in range(30, 60):
        bench.write(f"{number}.txt", str(number))
    bench.scan(scope=scope)
    bench.queued()
    for path in bench.folder.glob("*.txt"):
        path.unlink()
    outcome = bench.scan(scope=scope)
    assert outcome.deleted == 0 and outcome.retry_in_s is not None
    later = time.monotonic() + scanner.NETWORK_GRACE_S + 1
    monkeypatch.setattr(scanner.time, "monotonic", lambda: later)
    assert bench.scan(scope=scope).deleted == 40


def test_a_file_in_the_cloud_is_known_by_name_and_never_queued(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("here.txt", "cloud.txt", "evicted.txt"):
        bench.write(name)
    bench.scan(b"evicted.txt")
    bench.queued()
    real = scanner.walk

    def walk(*given: Any) -> Iterator[scanner.Entry]:
        for entry in real(*given):
            remote = entry.path != b"here.txt"
            yield scanner.Entry(entry.path, entry.size_bytes, entry.mtime_ns, remote)

    monkeypatch.setattr(scanner, "walk", walk)
    bench.scan()
    assert bench.queued() == [b"here.txt"]
    contents = {d.path: d.content_id for d in bench.writer.documents(bench.root.root_id)}
    assert contents[b"cloud.txt"] is None and contents[b"evicted.txt"] is not None


def test_small_files_come_before_big_ones_and_touched_ones_first(bench: Bench) -> None:
    bench.write("big.txt", "x" * (2 << 20))
    bench.write("middle.txt", "x" * (300 << 10))
    bench.write("small.txt")
    bench.scan()
    bench.write("touched.txt")
    bench.scan(b"touched.txt")
    assert bench.queued() == [b"touched.txt", b"small.txt", b"middle.txt", b"big.txt"]


def test_a_file_in_the_place_of_a_folder_and_the_other_way_round(bench: Bench) -> None:
    bench.write("x.txt/inner.txt")
    bench.scan()
    bench.queued()
    (bench.folder / "x.txt" / "inner.txt").unlink()
    (bench.folder / "x.txt").rmdir()
    bench.write("x.txt")
    bench.scan(b"x.txt")
    assert bench.queued() == [b"x.txt"]
    assert set(bench.documents()) == {b"x.txt"}
    (bench.folder / "x.txt").unlink()
    bench.write("x.txt/again.txt")
    bench.scan(b"x.txt")
    bench.queued()
    bench.scan()
    assert set(bench.documents()) == {b"x.txt/again.txt"}


def test_why_a_root_is_offline_is_said(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    file = there / "a.txt"
    file.write_text("x")
    sample = [os.fsencode(file)]
    root = os.fsencode(there)
    assert root_trouble(root, "", sample) == ""
    assert "not there" in root_trouble(os.fsencode(tmp_path / "gone"), "", sample)
    assert "file where" in root_trouble(sample[0], "", sample)
    assert root_trouble(root, "fsid:other", sample) == "", "the files are there: a new name of the same volume"
    file.rename(there / "b.txt")
    assert "Another drive" in root_trouble(root, "fsid:other", sample)
    (there / "b.txt").unlink()
    assert "empty" in root_trouble(root, "", sample)
    assert root_trouble(root, "", []) == ""


def test_a_folder_that_is_the_same_may_have_become_empty(tmp_path: Path) -> None:
    root, gone = os.fsencode(tmp_path), [os.fsencode(tmp_path / "gone.txt")]
    assert root_trouble(root, folder_identity(root), gone) == ""
    assert "empty" in root_trouble(root, volume_identity(root), gone), "the volume alone does not prove it"


@pytest.mark.parametrize("stray", ["", ".directory"])
def test_another_folder_of_the_same_volume_is_not_taken_for_the_root(tmp_path: Path, stray: str) -> None:
    was, now = tmp_path / "was", tmp_path / "now"
    was.mkdir()
    now.mkdir()
    if stray:
        (now / stray).write_text("x")
    assert volume_identity(os.fsencode(was)) == volume_identity(os.fsencode(now))
    assert root_trouble(os.fsencode(now), folder_identity(os.fsencode(was)), [os.fsencode(now / "a.txt")]) != ""


def test_a_volume_without_an_identity_is_known_by_its_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, gone = os.fsencode(tmp_path), [os.fsencode(tmp_path / "gone.txt")]
    (tmp_path / ".directory").write_text("x")
    with monkeypatch.context() as drive:
        drive.setattr(os, "statvfs", lambda path: SimpleNamespace(f_fsid=0))
        drive.setattr(filesystem, "filesystem_type", lambda path: "fuse.drive")
        identity = folder_identity(root)
        assert root_trouble(root, identity, gone) == ""
    assert "Another drive" in root_trouble(root, identity, gone)


def test_what_lay_on_a_folder_bound_into_the_root_is_not_deleted_with_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.write("bound/a.txt")
    bench.write("b.txt")
    bench.scan()
    bench.queued()
    points = {b"bound"}
    monkeypatch.setattr(scanner, "mount_points", lambda under: points)
    bench.scope.mounts = {b"bound"}
    for name in ("bound/a.txt", "b.txt"):
        (bench.folder / name).unlink()
    points.clear()
    assert bench.scan().held_back == 1
    assert set(bench.documents()) == {b"bound/a.txt"}
    points.add(b"bound")
    bench.scan()
    assert bench.documents() == {}
