from __future__ import annotations

import logging
import os
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from indexer.errors import StoreBusyError, StoreDamagedError, StoreError, StoreVersionError
from indexer.store import open as opening
from indexer.store.open import index_path, network_filesystem, open_writer
from indexer.store.reader import Reader
from indexer.store.writer import Writer


def test_a_new_index_has_its_settings_from_the_beginning(writer: Writer) -> None:
    def pragma(name: str) -> object:
        return writer.db.execute(f"PRAGMA {name}").get

    assert pragma("application_id") == opening.APPLICATION_ID
    assert pragma("user_version") == opening.SCHEMA_VERSION
    assert pragma("page_size") == opening.PAGE_SIZE_BYTES
    assert pragma("auto_vacuum") == 2
    assert pragma("journal_mode") == "wal"
    assert pragma("synchronous") == 1
    assert pragma("secure_delete") == 1
    assert pragma("foreign_keys") == 1
    assert writer.quick_check() == []


def test_only_the_owner_may_read_the_index(writer: Writer) -> None:
    assert index_path(writer.path.parent).stat().st_mode & 0o077 == 0


def test_every_connection_has_sqlite_vec(writer: Writer, reader: Reader) -> None:
    assert writer.db.execute("SELECT vec_version()").get.startswith("v")
    assert reader.versions()["sqlite-vec"].startswith("v")


def test_a_reader_cannot_write(reader: Reader) -> None:
    with pytest.raises(StoreError):
        reader.rows("DELETE FROM totals")


def test_no_index_yet_is_said_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no index"):
        Reader.open(tmp_path)


@pytest.mark.parametrize("opener", [Writer.open, Reader.open])
def test_an_index_of_a_newer_program_is_refused(tmp_path: Path, opener: Callable[[Path], object]) -> None:
    with Writer.open(tmp_path) as writer:
        writer.db.execute(f"PRAGMA user_version = {opening.SCHEMA_VERSION + 1}")
    with pytest.raises(StoreVersionError, match="newer Inkling"):
        opener(tmp_path)


def test_a_file_of_another_program_is_left_alone(tmp_path: Path) -> None:
    with sqlite3.connect(index_path(tmp_path)) as other:
        other.execute("CREATE TABLE theirs (a)")
    other.close()
    with pytest.raises(StoreError, match="not an Inkling index"):
        Writer.open(tmp_path)


def test_a_damaged_file_is_told_from_a_bug(tmp_path: Path) -> None:
    index_path(tmp_path).write_bytes(b"no database at all" * 1000)
    with pytest.raises(StoreDamagedError, match="damaged"):
        Writer.open(tmp_path)


def test_a_second_writer_is_told_that_the_index_is_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "BUSY_TIMEOUT_MS", 0)
    with Writer.open(tmp_path) as first, Writer.open(tmp_path) as second:
        with first.transaction():
            first.set_stamp("a", "1")
            with pytest.raises(StoreBusyError, match="in use"), second.transaction():
                pass
        second.set_stamp("a", "2")


MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
/dev/sdb1 /home/ann/local ext4 rw 0 0
//nas/share /mnt/my\\040share cifs rw 0 0
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/var/lib", ""),
        ("/home/ann", "nfs4"),
        ("/home/ann/local/data", ""),
        ("/homework", ""),
        ("/mnt/my share/x", "cifs"),
    ],
)
def test_a_network_file_system_is_recognised_by_the_longest_mount(tmp_path: Path, folder: str, kind: str) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(MOUNTS)
    assert network_filesystem(Path(folder), mounts) == kind


def test_on_a_network_file_system_the_index_does_without_wal_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"server:/x {tmp_path} nfs rw 0 0\n")
    with caplog.at_level(logging.WARNING):
        connection = open_writer(tmp_path / "data", mounts=mounts)
    assert connection.execute("PRAGMA journal_mode").get == "delete"
    assert "network file system (nfs)" in caplog.text
    caplog.clear()
    connection.close()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every name is text")
@pytest.mark.parametrize("opener", [Writer.open, Reader.open])
def test_a_data_folder_that_sqlite_cannot_name_is_said_in_a_sentence(
    tmp_path: Path, opener: Callable[[Path], object]
) -> None:
    folder = tmp_path / os.fsdecode(b"\xe7\xff")
    folder.mkdir()
    with pytest.raises(StoreError, match=r"\\udcff is not valid UTF-8"):
        opener(folder)


def test_an_index_that_lacks_a_table_is_damaged_and_no_bug(writer: Writer, reader: Reader) -> None:
    writer.db.execute("DROP TABLE failures")
    with pytest.raises(StoreDamagedError, match=r"lacks a part .*failures"):
        reader.failures()
    with pytest.raises(StoreDamagedError, match=r"lacks a part .*failures"):
        writer.failures()
    with pytest.raises(StoreDamagedError, match=r"lacks a part .*failures"):
        writer.clear_failure(1, b"a")
    with pytest.raises(apsw.SQLError):
        reader.rows("SELECT nonsense FROM roots")


def test_an_index_in_a_folder_that_takes_no_files_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "a 100% odd?name"
    with Writer.open(folder) as writer:
        writer.add_root(b"/home/ann")
    # Who runs the tests may be allowed everything: the system's answer is put in place of its deed.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with Reader.open(folder) as reader:
        assert [root.path for root in reader.roots()] == [b"/home/ann"]
        assert os.listdir(folder) == ["index.db"], "reading would have needed files beside it"


def test_what_a_killed_writer_left_is_read_although_it_may_not_be_written(
    writer: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.add_root(b"/home/ann")  # in the WAL so far
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with Reader.open(tmp_path) as reader:
        assert len(reader.roots()) == 1


def test_a_write_to_a_read_only_index_is_explained() -> None:
    error = opening.explain(apsw.ReadOnlyError("attempt to write a readonly database"), Path("/x/index.db"))
    assert str(error) == "The index /x/index.db cannot be written: it, its folder or its disk is read-only."
