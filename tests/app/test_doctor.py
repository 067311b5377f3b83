"""Doctor says what is here, what is missing, and what to do about it."""

import json
import random
import sys
from pathlib import Path

import pytest

from app import cli, paths
from app.cli import doctor
from app.single_instance import SingleInstance
from indexer.store.open import PAGE_SIZE_BYTES, open_reader
from indexer.store.reader import Reader
from indexer.store.writer import Writer
from tests.app.permissions import forbidden
from tests.indexer.store.building import add_file


def test_json_has_every_check_with_its_state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = cli.run(["doctor", "--json", "--data-dir", str(tmp_path)])
    report = json.loads(capsys.readouterr().out)
    assert set(report) == {check.__name__.removeprefix("check_") for check in doctor.CHECKS}
    assert report["store"]["facts"]["fts5"] is True
    assert report["store"]["facts"]["sqlite_vec"]
    assert report["kernels"]["facts"]["isa"]
    assert code == int(any(finding["state"] == "missing" for finding in report.values()))


def test_everything_essential_is_here(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["doctor", "--data-dir", str(tmp_path)]) == 0
    assert "MISSING" not in capsys.readouterr().out


def test_looking_leaves_nothing_behind(tmp_path: Path) -> None:
    doctor.examine(paths.folders(tmp_path / "new"))
    assert list(tmp_path.iterdir()) == []


def test_a_data_folder_that_cannot_be_written_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "writable", lambda _: False)
    finding = doctor.check_data_folder(paths.folders(tmp_path))
    assert finding.state == "missing" and "--data-dir" in finding.advice


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps permissions elsewhere")
def test_a_data_folder_that_nobody_may_look_into_is_missing(tmp_path: Path) -> None:
    doctor.examine(paths.folders(tmp_path))  # loads what nobody else may read here, such as Python
    with forbidden(tmp_path):
        found = {finding.name: finding for finding in doctor.examine(paths.folders(tmp_path))}
    assert found["data_folder"].state == found["settings"].state == "missing"
    assert "Permission denied" in found["data_folder"].message and "--data-dir" in found["data_folder"].message
    assert len(found) == len(doctor.CHECKS)


def test_a_file_as_the_data_folder_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert cli.run(["doctor", "--data-dir", str(tmp_path / "file")]) == 1
    assert f"The data folder {tmp_path / 'file'} is a file" in capsys.readouterr().out


def test_writing_is_really_tried(tmp_path: Path) -> None:
    assert not doctor.writable(tmp_path / "not there")


def test_a_folder_that_is_not_there_yet_is_judged_by_the_one_above(tmp_path: Path) -> None:
    assert doctor.nearest_existing(tmp_path / "a" / "b") == tmp_path
    assert doctor.writable(tmp_path) and list(tmp_path.iterdir()) == []


def test_an_unknown_model_is_missing_with_advice(tmp_path: Path) -> None:
    folders = paths.folders(tmp_path)
    folders.settings.write_text('model = "no-such-model"', encoding="utf-8")
    finding = doctor.check_model(folders)
    assert finding.state == "missing" and "no-such-model" in finding.message and finding.advice


def test_settings_with_a_mistake_are_missing_with_its_sentence(tmp_path: Path) -> None:
    folders = paths.folders(tmp_path)
    folders.settings.write_text("index_workers = 999", encoding="utf-8")
    finding = doctor.check_settings(folders)
    assert finding.state == "missing" and "0 to 256" in finding.message


def test_an_index_of_something_else_is_named(tmp_path: Path) -> None:
    folders = paths.folders(tmp_path)
    folders.index.write_bytes(b"not a database, but long enough to be looked at" * 100)
    finding = doctor.check_index(folders)
    assert finding.state == "missing" and str(folders.index) in finding.message


@pytest.fixture
def index(tmp_path: Path) -> paths.Folders:
    with Writer.open(tmp_path) as writer:
        root = writer.add_root(b"/home/ann").root_id
        for number in range(200):
            add_file(writer, root, f"{number}.md", f"The cat {number} sleeps on the sofa " * 40)
    return paths.folders(tmp_path)


def damage(folders: paths.Folders) -> None:
    """Noise over one page, which is not read when the file is opened."""
    with Reader.open(folders.data) as reader:
        ((page,),) = reader.rows("SELECT rootpage FROM sqlite_schema WHERE name = 'chunks'")
    with folders.index.open("r+b") as file:
        file.seek((page - 1) * PAGE_SIZE_BYTES)
        file.write(random.Random(1).randbytes(PAGE_SIZE_BYTES))


def test_a_sound_index_is_said_to_be_sound(index: paths.Folders) -> None:
    finding = doctor.check_index(index)
    assert finding.state == "ok" and "sound" in finding.message and finding.facts["checked"] is True


def test_a_damaged_index_that_still_opens_is_missing(index: paths.Folders) -> None:
    damage(index)
    open_reader(index.data).close()
    finding = doctor.check_index(index)
    assert finding.state == "missing" and "damaged" in finding.message and "delete it" in finding.advice


def test_a_very_large_index_is_not_read_through(index: paths.Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    damage(index)
    monkeypatch.setattr(doctor, "CHECKED_INDEX_BYTES", 1000)
    finding = doctor.check_index(index)
    assert finding.state == "ok" and finding.facts["checked"] is False and "too large" in finding.message


def test_kernels_that_were_not_built_are_a_note_with_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from engine import kernels

    facts = {"library": None, "isa": "reference", "available": ["reference"], "problem": "no usable compiled kernels"}
    (tmp_path / "not_built.txt").write_text("No C compiler: none could be had.\n", encoding="utf-8")
    monkeypatch.setattr(kernels, "info", lambda: facts)
    monkeypatch.setattr(kernels, "__file__", str(tmp_path / "__init__.py"))
    finding = doctor.check_kernels(paths.folders(tmp_path))
    assert finding.state == "warning" and "No C compiler" in finding.message and "ziglang" in finding.advice


def test_an_open_window_is_seen_and_not_disturbed(tmp_path: Path) -> None:
    folders = paths.folders(tmp_path)
    window = SingleInstance(tmp_path)
    assert window.acquire(lambda: None)
    assert "a window is open" in doctor.check_locks(folders).message
    assert window.ask_to_raise()
    window.close()
    assert "nobody" in doctor.check_locks(folders).message


def test_few_watches_are_a_note_with_the_command_to_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(doctor, "FEW_WATCHES", 10**12)
    finding = doctor.check_watching(paths.folders(tmp_path))
    if finding.facts:
        assert finding.state == "warning" and "sysctl" in finding.advice


def test_without_a_display_the_window_is_only_a_note(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("QT_QPA_PLATFORM", "no-such-platform")
    assert doctor.check_window(paths.folders(tmp_path)).state == "warning"
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    assert doctor.check_window(paths.folders(tmp_path)).facts == {"platform": "offscreen"}
