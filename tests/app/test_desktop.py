import os
import stat
import sys
from pathlib import Path

import pytest

from app.desktop import DesktopError, file_uri, open_file, reveal_file

posix_desktop = pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="speaks of xdg-open and D-Bus")


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of stand-ins that write what they were called with into `called`."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def stand_in(folder: Path, name: str, code: int = 0) -> None:
    program = folder / name
    program.write_text(f'#!/bin/sh\nfor a in "$@"; do echo "$a" >> "{folder}/called"; done\nexit {code}\n')
    program.chmod(program.stat().st_mode | stat.S_IEXEC)


def called(folder: Path) -> list[str]:
    return (folder / "called").read_text().splitlines()


@posix_desktop
def test_a_file_is_opened_with_the_users_program(programs: Path, tmp_path: Path) -> None:
    stand_in(programs, "xdg-open")
    file = tmp_path / "a b.txt"
    file.touch()
    open_file(str(file))
    assert called(programs) == [str(file)]


@posix_desktop
def test_a_file_is_shown_by_the_file_manager_whatever_its_name(programs: Path, tmp_path: Path) -> None:
    stand_in(programs, "dbus-send")
    file = os.fsdecode(os.fsencode(tmp_path) + b"/a,b\xff#.txt")
    Path(file).touch()
    reveal_file(file)
    assert f"array:string:file://{tmp_path}/a%2Cb%FF%23.txt" in called(programs)


@posix_desktop
def test_without_a_file_manager_on_the_bus_the_folder_is_opened(programs: Path, tmp_path: Path) -> None:
    stand_in(programs, "dbus-send", code=1)
    stand_in(programs, "xdg-open")
    file = tmp_path / "a.txt"
    file.touch()
    reveal_file(str(file))
    assert called(programs)[-1] == str(tmp_path)


@posix_desktop
@pytest.mark.parametrize("make", [lambda folder: stand_in(folder, "xdg-open", code=3), lambda folder: None])
def test_a_missing_or_failing_opener_gives_a_sentence(programs: Path, tmp_path: Path, make: object) -> None:
    make(programs)  # type: ignore[operator]
    file = tmp_path / "a.xyz"
    file.touch()
    with pytest.raises(DesktopError, match=r"No program opened .*a\.xyz"):
        open_file(str(file))


def test_a_file_that_is_away_gives_a_sentence(tmp_path: Path) -> None:
    for action in (open_file, reveal_file):
        with pytest.raises(DesktopError, match="is not there now"):
            action(str(tmp_path / "gone.txt"))


def test_uris_are_by_bytes() -> None:
    assert file_uri("/a b/%") == "file:///a%20b/%25"
