"""The list of folders outlives the index."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from indexer.folder_list import LIST_NAME, read_folders, write_folders


def test_names_of_any_bytes_come_back(tmp_path: Path) -> None:
    folders = [b"/home/ann", "/home/ann/Bücher".encode(), b"/odd\xff\n"]
    write_folders(tmp_path, folders)
    assert read_folders(tmp_path) == folders
    assert os.listdir(tmp_path) == [LIST_NAME]
    assert (tmp_path / LIST_NAME).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("text", ["", "{", "[]", '{"folders": 3}', '{"folders": [3]}', "{}", "ä"])
def test_a_damaged_list_is_no_list_and_is_logged(tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / LIST_NAME).write_text(text, encoding="utf-8")
    assert read_folders(tmp_path) == [] and LIST_NAME in caplog.text


def test_without_a_list_there_are_no_folders(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert read_folders(tmp_path) == [] and not caplog.text


def test_a_list_that_cannot_be_written_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / LIST_NAME).mkdir()
    write_folders(tmp_path, [b"/a"])
    assert "cannot be written" in caplog.text
