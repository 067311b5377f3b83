"""A look at the disk: sorted as the store sorts, without links, and honest about what it could not see."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.watch.filesystem import entry_kind, filesystem_type, is_network, mount_points, volume_identity
from indexer.watch.ignore import IgnoreRules
from indexer.watch.walk import Seen, absolute, exact_path, relative, walk


def look(root: Path, under: bytes = b"", seen: Seen | None = None) -> list[bytes]:
    rules = IgnoreRules(os.fsencode(root))
    return [e.path for e in walk(os.fsencode(root), under, rules, seen or Seen(), lambda directory: None)]


def test_files_come_in_the_byte_order_of_their_paths(tmp_path: Path) -> None:
    names = ["a.txt", "a/z.txt", "a/b/c.md", "a-b/x.txt", "a0.txt", "B/y.txt", "é/n.txt", "a/b.txt", "zz.md"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    assert look(tmp_path) == sorted(os.fsencode(name) for name in names)
    assert look(tmp_path, b"a") == [b"a/b.txt", b"a/b/c.md", b"a/z.txt"]


def test_links_and_what_is_no_file_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("x")
    root = tmp_path / "root"
    root.mkdir()
    (root / "loop").symlink_to(root)
    (root / "away").symlink_to(outside)
    (root / "file.txt").symlink_to(outside / "secret.txt")
    os.mkfifo(root / "pipe.txt")
    (root / "film.mp4").write_bytes(b"x")
    assert look(root) == []


def test_each_directory_is_told_before_it_is_listed(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    told: list[bytes] = []

    def on_directory(directory: bytes) -> None:
        told.append(directory)
        Path(os.fsdecode(directory), "late.txt").write_text("made just now")

    rules = IgnoreRules(os.fsencode(tmp_path))
    found = [e.path for e in walk(os.fsencode(tmp_path), b"", rules, Seen(), on_directory)]
    assert found == [b"a/b/late.txt", b"a/late.txt", b"late.txt"] and len(told) == 3


def test_what_cannot_be_listed_is_known_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("open", "closed"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text("x")
    real = os.scandir

    def scandir(path: bytes) -> object:
        if path.endswith(b"closed"):
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    seen = Seen()
    assert look(tmp_path, seen=seen) == [b"open/a.txt"]
    assert seen.unreadable == {b"closed": "Permission denied"}
    assert seen.hides(b"closed/a.txt") and seen.hides(b"closed") and not seen.hides(b"closed.txt")


def test_a_root_that_is_gone_hides_everything(tmp_path: Path) -> None:
    seen = Seen()
    assert look(tmp_path / "nowhere", seen=seen) == []
    assert seen.hides(b"any/thing.txt")


@given(st.lists(st.binary(min_size=1, max_size=8).filter(lambda b: not set(b) & {0, 47}), min_size=1, max_size=5))
def test_paths_go_there_and_back(parts: list[bytes]) -> None:
    inner = b"/".join(parts)
    assert relative(b"/root", absolute(b"/root", inner)) == inner


def test_a_neighbour_with_the_same_beginning_is_not_inside() -> None:
    assert relative(b"/root", b"/rootless/a") is None
    assert relative(b"/root", b"/root") == b""
    assert relative(b"/", b"/a") == b"a"


def test_another_spelling_of_a_name_is_traced_to_the_one_on_the_disk(tmp_path: Path) -> None:
    (tmp_path / "Cafe\u0301").mkdir()
    (tmp_path / "Cafe\u0301" / "README.md").write_text("x")
    root = os.fsencode(tmp_path)
    assert exact_path(root, "caf\u00e9/readme.md".encode()) == "Cafe\u0301/README.md".encode()
    assert exact_path(root, b"Gone/a.md") == b"Gone/a.md"


def status(mode: int, **more: int) -> os.stat_result:
    return cast(os.stat_result, SimpleNamespace(st_mode=mode, **more))


def test_a_file_whose_content_is_in_the_cloud_is_a_placeholder() -> None:
    file = stat.S_IFREG | 0o644
    assert entry_kind(status(file)) == "file"
    for attribute in (0x1000, 0x40000, 0x400000):
        assert entry_kind(status(file, st_file_attributes=attribute)) == "placeholder"
    assert entry_kind(status(stat.S_IFLNK)) == "other"
    assert entry_kind(status(stat.S_IFIFO)) == "other"
    assert entry_kind(status(stat.S_IFDIR)) == "directory"


def test_a_dataless_file_of_macos_is_a_placeholder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    assert entry_kind(status(stat.S_IFREG, st_flags=0x40000000)) == "placeholder"


def test_the_kind_of_a_file_system_is_known(tmp_path: Path) -> None:
    assert not is_network(filesystem_type(os.fsencode(tmp_path)))
    assert is_network("nfs4") and is_network("cifs") and not is_network("ext4")
    assert volume_identity(os.fsencode(tmp_path)) == volume_identity(os.fsencode(tmp_path))
    assert volume_identity(os.fsencode(tmp_path / "gone")) == ""


def test_mounts_below_a_folder_are_known_by_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = [tmp_path, tmp_path / "a" / "b", tmp_path.parent / f"{tmp_path.name}x"]
    partitions = [SimpleNamespace(mountpoint=str(place), fstype="ext4") for place in places]
    monkeypatch.setattr("psutil.disk_partitions", lambda all: partitions)
    assert mount_points(os.fsencode(tmp_path)) == {b"a/b"}
