"""Where things are kept, and that --data-dir keeps all of it in one place."""

import os
import stat
import sys
from pathlib import Path

import pytest

from app import paths
from indexer.errors import IndexerError
from tests.app.permissions import forbidden


def test_a_data_dir_holds_everything(tmp_path: Path) -> None:
    folders = paths.folders(tmp_path / "d")
    assert {folders.data, folders.cache.parent, folders.logs.parent, folders.index.parent} == {tmp_path / "d"}


def test_the_variable_serves_where_no_option_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(paths.DATA_DIR_VARIABLE, str(tmp_path / "variable"))
    assert paths.folders().data == tmp_path / "variable"
    assert paths.folders(tmp_path / "option").data == tmp_path / "option"


def test_a_relative_data_dir_becomes_absolute_and_the_home_sign_is_understood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert paths.folders("here").data == Path(os.path.abspath("here"))
    assert paths.folders("~/there").data == Path.home() / "there"


def test_without_either_the_system_decides() -> None:
    folders = paths.folders()
    assert len({folders.data, folders.cache, folders.logs}) == 3
    assert all(folder.is_absolute() and "inkling" in folder.parts for folder in (folders.data, folders.cache))


def test_a_file_is_no_data_folder_and_nothing_is_made_below_one(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(IndexerError, match="is a file; choose another one with --data-dir"):
        paths.folders(file).check()
    for action in (paths.Folders.create, paths.Folders.check) if sys.platform != "win32" else (paths.Folders.create,):
        with pytest.raises(IndexerError, match="choose another one with --data-dir"):
            action(paths.folders(file / "below"))


def test_a_folder_that_is_not_there_yet_is_fine(tmp_path: Path) -> None:
    paths.folders(tmp_path / "new").check()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps permissions elsewhere")
def test_a_data_folder_without_permission_is_a_sentence(tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir()
    with forbidden(folder), pytest.raises(IndexerError, match=r"cannot be used \(Permission denied\)"):
        paths.folders(folder).check()
    with forbidden(tmp_path), pytest.raises(IndexerError, match=r"\(Permission denied\)"):
        paths.folders(tmp_path / "new").create()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps permissions elsewhere")
def test_the_folders_are_their_owners_alone(tmp_path: Path) -> None:
    folders = paths.folders(tmp_path / "deep" / "data").create()
    for folder in (folders.data, folders.cache, folders.logs):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_home_folder_that_nobody_has_is_a_path_like_any_other() -> None:
    assert paths.folders("~nobody-of-this-name/x").data.parts[-2:] == ("~nobody-of-this-name", "x")
