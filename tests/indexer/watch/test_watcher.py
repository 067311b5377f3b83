"""Events become hints; reading wakes nobody."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from indexer.watch.hints import Hint
from indexer.watch.watcher import DeafWatcher, RecursiveWatcher, Watcher, open_watcher

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")


class Ears:
    """Collects hints."""

    def __init__(self) -> None:
        self.hints: list[Hint] = []
        self._changed = threading.Condition()

    def hear(self, hint: Hint) -> None:
        with self._changed:
            self.hints.append(hint)
            self._changed.notify_all()

    def wait(self, kind: str, path: Path) -> None:
        wanted = (kind, os.fsencode(path))
        with self._changed:
            found = self._changed.wait_for(lambda: any((h.kind, h.path) == wanted for h in self.hints), 10)
        assert found, (wanted, self.hints)


@pytest.fixture
def ears() -> Ears:
    return Ears()


@pytest.fixture
def watching(ears: Ears, tmp_path: Path) -> Iterator[Watcher]:
    made = open_watcher(ears.hear, lambda path, is_directory: not path.endswith(b"dull.txt"))
    made.add_root(os.fsencode(tmp_path))
    made.add_directory(os.fsencode(tmp_path))
    yield made
    made.close()


def test_writing_renaming_and_deleting_give_hints(ears: Ears, watching: Watcher, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    ears.wait("path", tmp_path / "a.txt")
    ears.hints.clear()
    (tmp_path / "a.txt").rename(tmp_path / "b.txt")
    ears.wait("path", tmp_path / "a.txt")
    ears.wait("path", tmp_path / "b.txt")
    ears.hints.clear()
    (tmp_path / "b.txt").unlink()
    ears.wait("path", tmp_path / "b.txt")
    (tmp_path / "dir").mkdir()
    ears.wait("tree", tmp_path / "dir")


def test_reading_and_dull_files_give_none(ears: Ears, watching: Watcher, tmp_path: Path) -> None:
    # Writing one file gives several events; when the first of the mark has come, all of a.txt have.
    mark = tmp_path / "mark.txt"
    for path in (tmp_path / "a.txt", mark):
        path.write_text("x")
    ears.wait("path", mark)
    ears.hints.clear()
    for _ in range(3):
        (tmp_path / "a.txt").read_text()
        os.listdir(tmp_path)
        (tmp_path / "dull.txt").write_text("x")
    (tmp_path / "end.txt").write_text("x")
    ears.wait("path", tmp_path / "end.txt")
    assert {hint.path for hint in ears.hints} - {os.fsencode(mark)} == {os.fsencode(tmp_path / "end.txt")}


@linux_only
def test_a_folder_that_moved_is_watched_under_its_new_name(ears: Ears, watching: Watcher, tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    ears.wait("tree", tmp_path / "one")
    watching.add_directory(os.fsencode(tmp_path / "one"))
    (tmp_path / "one").rename(tmp_path / "two")
    ears.wait("tree", tmp_path / "two")
    watching.add_directory(os.fsencode(tmp_path / "two"))
    (tmp_path / "two" / "a.txt").write_text("x")
    ears.wait("path", tmp_path / "two" / "a.txt")
    # And the old name again, for another folder.
    (tmp_path / "one").mkdir()
    watching.add_directory(os.fsencode(tmp_path / "one"))
    (tmp_path / "one" / "b.txt").write_text("x")
    ears.wait("path", tmp_path / "one" / "b.txt")


@linux_only
def test_the_end_of_a_root_is_heard(ears: Ears, watching: Watcher, tmp_path: Path) -> None:
    tmp_path.rename(tmp_path.with_name("moved-away"))
    ears.wait("tree", tmp_path)
    tmp_path.with_name("moved-away").rename(tmp_path)


@linux_only
def test_without_watches_left_it_says_so_and_lives_on(
    ears: Ears, watching: Watcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int, path: bytes, mask: int) -> int:
        ctypes.set_errno(errno.ENOSPC)
        return -1

    monkeypatch.setattr("indexer.watch.inotify.inotify_add_watch", refuse)
    (tmp_path / "more").mkdir()
    assert not watching.exhausted
    watching.add_directory(os.fsencode(tmp_path / "more"))
    assert watching.exhausted
    (tmp_path / "a.txt").write_text("x")
    ears.wait("path", tmp_path / "a.txt")


@linux_only
def test_a_system_without_events_at_all_is_lived_with(ears: Ears, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: object) -> None:
        raise OSError(errno.EMFILE, "inotify instance limit reached")

    monkeypatch.setattr("indexer.watch.inotify.InotifyWatcher", refuse)
    deaf = open_watcher(ears.hear, lambda path, is_directory: True)
    assert isinstance(deaf, DeafWatcher) and deaf.exhausted
    deaf.add_root(b"/a")
    deaf.add_directory(b"/a")
    deaf.remove_root(b"/a")
    deaf.close()


def test_the_watcher_of_other_systems_gives_the_same_hints(ears: Ears, tmp_path: Path) -> None:
    recursive = RecursiveWatcher(ears.hear, lambda path, is_directory: True)
    try:
        (tmp_path / "deep").mkdir()
        recursive.add_root(os.fsencode(tmp_path))
        recursive.add_directory(os.fsencode(tmp_path / "deep"))
        (tmp_path / "deep" / "a.txt").write_text("x")
        ears.wait("path", tmp_path / "deep" / "a.txt")
        (tmp_path / "deep" / "new").mkdir()
        ears.wait("tree", tmp_path / "deep" / "new")
        ears.hints.clear()
        (tmp_path / "deep" / "a.txt").read_text()
        (tmp_path / "deep" / "a.txt").rename(tmp_path / "deep" / "b.txt")
        ears.wait("path", tmp_path / "deep" / "b.txt")
        recursive.remove_root(os.fsencode(tmp_path))
    finally:
        recursive.close()
