"""`inkling index`: what it refuses before anything is started."""

import errno
import os
from pathlib import Path

import pytest

from app import cli


def test_a_folder_that_cannot_be_read_is_no_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    closed, data = tmp_path / "closed", tmp_path / "data"
    closed.mkdir()

    def refuse(folder: str) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), folder)

    monkeypatch.setattr(os, "scandir", refuse)
    assert cli.run(["index", str(closed), "--data-dir", str(data)]) == 1
    assert capsys.readouterr().err == (
        f"inkling: {closed} cannot be read (Permission denied), so nothing was indexed.\n"
    )
    assert not data.exists()


@pytest.mark.parametrize("name", ["missing", "file.txt"])
def test_what_is_no_folder_is_named(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file.txt").touch()
    assert cli.run(["index", str(tmp_path / name), "--data-dir", str(tmp_path / "data")]) == 1
    assert f"{tmp_path / name} is not a folder" in capsys.readouterr().err
