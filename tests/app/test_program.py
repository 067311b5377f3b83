"""What the packaged program does differently, played by pretending to be packaged."""

import sys
from pathlib import Path

import pytest

from app import paths, program
from app.index_process import child_command


@pytest.fixture
def packaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a packaged program whose window this process pretends to be."""
    folder = tmp_path / "program"
    (folder / "_internal").mkdir(parents=True)
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "_MEIPASS", str(folder / "_internal"), raising=False)
    monkeypatch.setattr(sys, "executable", str(folder / "inkling-window"))
    monkeypatch.delenv("INKLING_DATA_DIR", raising=False)
    return folder


def test_children_of_the_window_are_the_executable_that_has_streams(packaged: Path) -> None:
    assert child_command("indexer") == [str(packaged / "inkling"), "indexer"]
    assert program.is_window_program()


def test_on_windows_the_executables_keep_their_suffix(packaged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(packaged / "inkling-window.exe"))
    assert child_command("indexer")[0] == str(packaged / "inkling.exe")
    assert program.is_window_program()


def test_from_source_nothing_is_packaged() -> None:
    assert not program.is_packaged() and not program.is_window_program()
    assert program.portable_data() is None
    assert child_command("indexer")[0] == sys.executable


def test_a_folder_beside_the_program_keeps_all_data(packaged: Path, tmp_path: Path) -> None:
    assert not paths.folders().data.is_relative_to(packaged)
    data = packaged / "inkling-data"
    data.mkdir()
    folders = paths.folders()
    assert {folders.data, folders.cache.parent, folders.logs.parent} == {data}
    assert paths.folders(tmp_path / "told").data == tmp_path / "told"


def test_an_appimage_keeps_data_beside_itself(packaged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APPIMAGE", str(tmp_path / "stick" / "Inkling.AppImage"))
    monkeypatch.setenv("APPDIR", str(packaged))
    assert program.place() == tmp_path / "stick"
    # Started from within another program's AppImage, the variables are that program's.
    monkeypatch.setenv("APPDIR", str(tmp_path / "other"))
    assert program.place() == packaged


def test_other_programs_get_the_users_own_environment(packaged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = str(packaged / "_internal")
    monkeypatch.setenv("LD_LIBRARY_PATH", inside)
    monkeypatch.setenv("LD_LIBRARY_PATH_ORIG", "/opt/mine")
    monkeypatch.setenv("QT_PLUGIN_PATH", f"{inside}/PySide6/Qt/plugins")
    monkeypatch.setenv("KEPT", "as it is")
    environment = program.outside_environment()
    assert environment["LD_LIBRARY_PATH"] == "/opt/mine"
    assert "QT_PLUGIN_PATH" not in environment and "LD_LIBRARY_PATH_ORIG" not in environment
    assert environment["KEPT"] == "as it is"
