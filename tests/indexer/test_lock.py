"""One indexer a data folder."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from indexer.errors import IndexerError
from indexer.lock import AlreadyIndexingError, DataFolderLock


def test_the_second_is_refused_with_a_sentence_that_names_the_first(tmp_path: Path) -> None:
    with DataFolderLock(tmp_path), pytest.raises(AlreadyIndexingError) as caught, DataFolderLock(tmp_path):
        pass
    assert f"(process {os.getpid()})" in str(caught.value) and str(tmp_path) in str(caught.value)


def test_it_is_free_again_when_the_first_has_ended(tmp_path: Path) -> None:
    for _ in range(2):
        with DataFolderLock(tmp_path):
            pass


def test_a_folder_that_cannot_be_made_is_known_trouble(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(IndexerError), DataFolderLock(tmp_path / "file" / "data"):
        pass


def test_a_full_disk_is_known_trouble_and_leaves_the_lock_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as disk:
        disk.setattr(os, "write", full)
        with pytest.raises(IndexerError, match="cannot be written: No space left"), DataFolderLock(tmp_path):
            pass
    with DataFolderLock(tmp_path):
        pass
