"""Builds the packaged program, twice, and drives it: `pytest -m packaged`, as root on Linux.

INKLING_PACKAGE names a folder that `packaging/build.py --twice` has filled already, which saves ten minutes.
"""

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from engine.weights.packed import is_packed
from engine.weights.safetensors import Weights
from tests import network_guard
from tests.conftest import ROOT
from tests.indexer.tiny_model import HIDDEN, write_tiny_model

pytestmark = pytest.mark.packaged

MOST_UNPACKED_BYTES = 260_000_000
MOST_PACKED_BYTES = 110_000_000
MOST_COLD_S, MOST_WARM_S = 2.5, 1.0
# None of these may be in a package, whatever a hook of the freezer thinks.
UNWANTED = ("readline", "gdbm", "libssl", "_ssl.", "Network", "libQt6Qml", "libQt6Quick", "libQt6Sql", "sqldrivers",
            "libgtk", "libGL.", "libc.so", "huggingface", ".pyi", "ziglang")  # fmt: skip


def script(name: str, *arguments: str) -> str:
    """Run a script beside packaging/build.py in the user's own environment; returns what it printed."""
    command = [sys.executable, str(ROOT / "packaging" / name), *arguments]
    environment = network_guard.installer_environment()
    environment.setdefault("ZIG_GLOBAL_CACHE_DIR", str(ROOT / ".cache" / "zig"))
    done = subprocess.run(command, cwd=ROOT, env=environment, text=True, capture_output=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with everything that a build makes."""
    assert sys.platform == "linux" and os.geteuid() == 0, "this suite makes namespaces: run it as root on Linux"
    given = network_guard.installer_environment().get("INKLING_PACKAGE")
    if given:
        return Path(given)
    folder = tmp_path_factory.mktemp("package")
    assert "byte for byte" in script("build.py", "--twice", "--out", str(folder))
    return folder


@pytest.fixture(scope="module")
def program(out: Path) -> Path:
    (folder,) = [path for path in out.glob("inkling-*-linux-*") if path.is_dir()]
    return folder


def bytes_below(folder: Path) -> int:
    return sum(file.lstat().st_size for file in folder.rglob("*") if file.is_file() and not file.is_symlink())


def test_it_is_small_enough_to_carry(out: Path, program: Path) -> None:
    (packed,) = out.glob("inkling-*.tar.xz")
    (deb,) = out.glob("*.deb")
    assert bytes_below(program) <= MOST_UNPACKED_BYTES
    assert packed.stat().st_size <= MOST_PACKED_BYTES and deb.stat().st_size <= MOST_PACKED_BYTES


def test_nothing_unwanted_is_inside(program: Path) -> None:
    names = [path.relative_to(program).as_posix() for path in program.rglob("*") if "licences" not in path.parts]
    assert not [name for name in names if any(word in name for word in UNWANTED)]


def test_every_component_has_its_licence_beside_it(program: Path) -> None:
    table = (program / "licences" / "INVENTORY.md").read_text(encoding="utf-8")
    assert "UNKNOWN" not in table and "Bootloader-exception" in table
    for name in ("PySide6_Essentials", "numpy", "Python", "PyInstaller", "Inkling"):
        assert any((program / "licences" / name).iterdir()), name


def test_it_works_where_there_is_nothing_and_opens_no_internet_socket(program: Path, tmp_path: Path) -> None:
    told = script("smoke_test.py", str(program), "--out", str(tmp_path / "out"))
    assert "ok: 8 steps, no internet socket" in told
    assert "AF_UNIX" in told, told


def test_the_debian_package_installs_runs_and_leaves_a_clean_debian(out: Path, tmp_path: Path) -> None:
    (deb,) = out.glob("*.deb")
    told = script("deb_test.py", str(deb), "--out", str(tmp_path / "out"))
    assert "no internet socket" in told and "removed: no file" in told


def test_the_menu_entry_is_valid(out: Path) -> None:
    tool = shutil.which("desktop-file-validate")
    assert tool, "install desktop-file-utils"
    (folder,) = out.glob("*.AppDir")
    done = subprocess.run([tool, str(folder / "inkling.desktop")], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_appimage_folder_runs_both_programs_and_keeps_data_beside_the_image(out: Path, tmp_path: Path) -> None:
    (folder,) = out.glob("*.AppDir")
    (tmp_path / "inkling-data").mkdir()
    environment = {"HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"], "APPDIR": str(folder),
                   "APPIMAGE": str(tmp_path / "Inkling.AppImage")}  # fmt: skip
    command = [str(folder / "AppRun"), "index", "--once", str(ROOT / "resources" / "samples" / "poems")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "inkling-data" / "index.db").exists() and not (tmp_path / "home").exists()
    window = subprocess.run([str(folder / "AppRun")], env=environment, capture_output=True, text=True)
    assert window.returncode == 1 and "no display" in window.stderr


@pytest.mark.parametrize(("precision", "packed"), [("int8", True), ("fp32", False)])
def test_a_package_can_carry_another_model(
    precision: str, packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = write_tiny_model(tmp_path / "tiny-one")
    monkeypatch.syspath_prepend(str(ROOT / "packaging"))
    build = importlib.import_module("build")
    staging = build.unpacked_wheel(tmp_path)
    build.bundle_model(staging, model, precision)
    models = staging / "resources" / "models"
    assert (models / "default.txt").read_text(encoding="utf-8") == "tiny-one\n"
    assert [folder.name for folder in models.iterdir() if (folder / "config.json").exists()] == ["tiny-one"]
    with Weights.open(models / "tiny-one") as weights:
        assert is_packed(weights) is packed
    told = json.loads(build.inkling(staging, "embed", "a text", "--json", "--data-dir", str(tmp_path / "data")))
    assert len(told["vector"]) == HIDDEN


def test_it_starts_quickly(program: Path) -> None:
    figures = json.loads(script("startup.py", str(program)).splitlines()[-1])
    assert figures["cold_median_s"] <= MOST_COLD_S and figures["warm_median_s"] <= MOST_WARM_S, figures
