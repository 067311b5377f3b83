"""The files that make a package fit together and follow their formats; nothing is built here."""

import importlib
import json
import plistlib
import re
import shutil
import struct
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from app import program
from app.cli import demo
from tests.conftest import ROOT

PACKAGING = ROOT / "packaging"
WORKFLOW = (ROOT / ".github" / "workflows" / "build.yml").read_text(encoding="utf-8")
FIXTURE = ROOT / "tests" / "packaged" / "fixtures" / "data-0.1.0.tar.xz"


@pytest.fixture(scope="module")
def scripts() -> Iterator[dict[str, ModuleType]]:
    """The modules beside packaging/build.py, imported as it imports them."""
    sys.path.insert(0, str(PACKAGING))
    names = ("archives", "build", "deb", "freeze", "icons", "inventory", "windows_version", "screen", "smoke_test")
    before = set(sys.modules)
    yield {name: importlib.import_module(name) for name in names}
    sys.path.remove(str(PACKAGING))
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(PACKAGING)):
            del sys.modules[name]


def test_the_windows_icon_holds_every_size(scripts: dict[str, ModuleType]) -> None:
    icons = scripts["icons"]
    images = icons.read(ROOT / "resources" / "icons")
    data = icons.ico(images)
    count = struct.unpack_from("<HHH", data)[2]
    rows = [struct.unpack_from("<BBBBHHII", data, 6 + 16 * row) for row in range(count)]
    assert [row[0] or 256 for row in rows] == sorted(images)
    assert all(data[row[7] :].startswith(b"\x89PNG") and row[6] == len(images[row[0] or 256]) for row in rows)


def test_the_macos_icon_is_as_long_as_it_says(scripts: dict[str, ModuleType]) -> None:
    icons = scripts["icons"]
    data = icons.icns(icons.read(ROOT / "resources" / "icons"))
    assert data[:4] == b"icns" and struct.unpack(">I", data[4:8])[0] == len(data)


def test_the_windows_version_resource_names_both_executables(scripts: dict[str, ModuleType]) -> None:
    for name in (program.WINDOW_NAME, program.CONSOLE_NAME):
        text = scripts["windows_version"].text("1.2.3", name)
        compile(text, "version", "eval")
        assert f"{name}.exe" in text and "(1, 2, 3, 0)" in text


def test_every_script_speaks_of_the_executables_that_are_built() -> None:
    spec = (PACKAGING / "inkling.spec").read_text(encoding="utf-8")
    assert f'executable("{program.WINDOW_NAME}", False), executable("{program.CONSOLE_NAME}", True)' in spec
    assert f'"CFBundleExecutable": "{program.WINDOW_NAME}"' in spec
    installer = (PACKAGING / "windows" / "inkling.iss").read_text(encoding="utf-8")
    assert f"{program.WINDOW_NAME}.exe" in installer
    image = (PACKAGING / "macos" / "dmg.sh").read_text(encoding="utf-8")
    assert f"Contents/MacOS/{program.CONSOLE_NAME}" in image
    first_step = (PACKAGING / "linux" / "AppRun").read_text(encoding="utf-8")
    assert f'inkling/{program.WINDOW_NAME}"' in first_step and f'inkling/{program.CONSOLE_NAME}"' in first_step


def test_the_windows_installer_replaces_and_takes_only_what_is_built() -> None:
    installer = (PACKAGING / "windows" / "inkling.iss").read_text(encoding="utf-8")
    sections = re.findall(r"^\[(\w+)\]", installer, re.MULTILINE)
    assert sections == ["Setup", "InstallDelete", "Files", "Tasks", "Icons", "Run"]
    assert re.search(r"^AppId=\{\{[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}\}$", installer, re.MULTILINE)
    assert "PrivilegesRequired=lowest" in installer
    # Data lies elsewhere and is the user's: nothing of it may be deleted with the program.
    assert "UninstallDelete" not in installer and "inkling-data" not in installer


def test_the_entitlements_are_a_property_list_that_asks_for_no_network() -> None:
    entitlements = plistlib.loads((PACKAGING / "macos" / "entitlements.plist").read_bytes())
    assert entitlements and all(value is True for value in entitlements.values())
    assert not [key for key in entitlements if "network" in key]


@pytest.mark.parametrize("script", ["macos/dmg.sh", "linux/appimage.sh", "linux/AppRun"])
def test_the_shell_scripts_are_shell(script: str) -> None:
    shell = shutil.which("sh")
    assert shell or sys.platform == "win32"
    if shell:
        assert subprocess.run([shell, "-n", str(PACKAGING / script)], capture_output=True).returncode == 0


def test_the_menu_entry_has_what_desktops_ask_for(scripts: dict[str, ModuleType]) -> None:
    entry = scripts["deb"].desktop_entry("/opt/inkling/inkling-window")
    fields = dict(line.split("=", 1) for line in entry.splitlines() if "=" in line)
    assert fields["Type"] == "Application" and fields["Icon"] == "inkling"
    assert fields["Exec"] == "/opt/inkling/inkling-window"
    assert fields["Categories"].endswith(";") and fields["Keywords"].endswith(";")


@pytest.mark.parametrize(
    ("name", "source", "kept"),
    [
        ("PySide6/Qt/plugins/platforms/libqxcb.so", "/venv/x", True),
        ("PySide6/Qt/plugins/platforms/libqvnc.so", "/venv/x", False),
        ("PySide6/Qt/plugins/sqldrivers/libqsqlite.so", "/venv/x", False),
        ("PySide6/Qt/plugins/tls/libqopensslbackend.so", "/venv/x", False),
        ("PySide6/plugins/platforms/qwindows.dll", "C:/venv/x", True),
        ("PySide6/Qt/translations/qtbase_de.qm", "/venv/x", False),
        ("PySide6/Qt/lib/libQt6Network.so.6", "/venv/x", False),
        ("PySide6/Qt/lib/libQt6Gui.so.6", "/venv/x", True),
        ("PySide6/Qt/lib/QtNetwork.framework/Versions/A/QtNetwork", "/venv/x", False),
        ("PySide6/Qt/lib/QtGui.framework/Versions/A/Resources/Info.plist", "/venv/x", True),
        ("PySide6/Qt6Quick.dll", "C:/venv/x", False),
        ("numpy/tests/data.txt", "/venv/x", False),
    ],
)
def test_only_what_is_used_is_taken(name: str, source: str, kept: bool, scripts: dict[str, ModuleType]) -> None:
    assert scripts["freeze"].is_wanted(name, source, "BINARY") is kept


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no library of the system is looked at")
def test_of_the_systems_libraries_only_those_that_a_desktop_may_lack_are_taken(scripts: dict[str, ModuleType]) -> None:
    taken = scripts["freeze"].is_wanted
    assert taken("libxcb-cursor.so.0", "/lib/x86_64-linux-gnu/libxcb-cursor.so.0", "BINARY")
    for name in ("libc.so.6", "libGL.so.1", "libreadline.so.8", "libgdbm.so.6", "libdbus-1.so.3"):
        assert not taken(name, f"/lib/x86_64-linux-gnu/{name}", "BINARY"), name


def test_what_binds_the_whole_package_or_is_unknown_ends_the_build(scripts: dict[str, ModuleType]) -> None:
    inventory = scripts["inventory"]
    assert inventory.is_forbidden("GPL-3.0-only") and inventory.is_forbidden("UNKNOWN")
    assert not inventory.is_forbidden("GPL-3.0-or-later WITH GCC-exception-3.1")
    vendored = inventory.library("numpy.libs/libsurprise-1234.so", "BINARY", inventory.Component("numpy", "MIT"))
    assert vendored == ("?", "UNKNOWN")
    assert inventory.library("numpy/core.so", "EXTENSION", inventory.Component("numpy", "MIT"))[1] == "MIT"
    for module in ("readline", "_gdbm", "ssl", "huggingface_hub.utils"):
        assert inventory.FORBIDDEN_MODULES.match(module), module
    assert not inventory.FORBIDDEN_MODULES.match("ssl_like")


def test_a_module_is_written_down_with_what_it_came_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scripts: dict[str, ModuleType]
) -> None:
    inventory = scripts["inventory"]
    staging = tmp_path / "staging"
    (staging / "app").mkdir(parents=True)
    (staging / "app" / "x.py").touch()
    import selectolax

    own, foreign = str(staging / "app" / "x.py"), str(selectolax.__file__)
    rows = {
        "modules": [["app.x", own, "PYMODULE"], ["gdbm", foreign, "PYMODULE"]],
        "files": [["libodd.so", "/nowhere/libodd.so", "BINARY"]],
    }
    (tmp_path / "contents.json").write_text(json.dumps(rows), encoding="utf-8")
    monkeypatch.setattr(inventory, "distribution", lambda name: inventory.distributions(name="pytest").__next__())
    problems = inventory.write(tmp_path / "contents.json", staging, tmp_path / "licences")
    assert "module gdbm" in problems and any("libodd.so" in problem for problem in problems)
    table = (tmp_path / "licences" / "INVENTORY.md").read_text(encoding="utf-8")
    assert "| Inkling |  | Apache-2.0 | 1 | 0 |  |" in table and "| selectolax |" in table
    assert (tmp_path / "licences" / "Inkling" / "LICENSE").exists()


def test_the_same_folder_gives_the_same_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scripts: dict[str, ModuleType]
) -> None:
    archives = scripts["archives"]
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    packed = []
    for name in ("one", "two"):
        folder = tmp_path / name / "inkling"
        (folder / "b").mkdir(parents=True)
        (folder / "b" / "x").write_text("x", encoding="utf-8")
        (folder / "a").write_text("a", encoding="utf-8")
        archives.settle(folder)
        packed.append(archives.tar_xz(folder).read_bytes())
        with tarfile.open(tmp_path / name / "inkling.tar.xz") as archive:
            assert {(member.uid, member.mtime) for member in archive} == {(0, 1700000000)}
    assert packed[0] == packed[1]


def test_needs_are_read_from_what_objdump_says(scripts: dict[str, ModuleType]) -> None:
    shown = "  0x09691974 0x00 04 GLIBC_2.34\n  0x09691975 0x00 05 GLIBC_2.2.5\n 0x0 0x00 06 GLIBCXX_3.4.29"
    deb = scripts["deb"]
    assert deb.dotted(max(deb.versions(shown, "GLIBC"))) == "2.34"
    assert deb.dotted(max(deb.versions(shown, "GLIBCXX"))) == "3.4.29"


def test_a_picture_of_the_screen_is_a_png(scripts: dict[str, ModuleType]) -> None:
    header = [100, 7, 2, 24, 2, 1, 0, 0, 32, 0, 32, 32, 8, 4, 0, 0, 0, 8, 0, 0, 2, 1, 0, 0, 0]
    dump = struct.pack(">25I", *header) + bytes([3, 2, 1, 0, 6, 5, 4, 0])
    from PySide6.QtGui import QImage

    picture = QImage.fromData(scripts["screen"].png(dump))
    assert [picture.pixelColor(x, 0).getRgb()[:3] for x in (0, 1)] == [(1, 2, 3), (4, 5, 6)]


def test_the_earlier_data_folder_is_small_and_holds_nobodys_log() -> None:
    assert FIXTURE.stat().st_size < 300_000
    with tarfile.open(FIXTURE) as archive:
        names = archive.getnames()
    assert "earlier/data/index.db" in names and "earlier/papers/travel/lost-suitcase.txt" in names
    assert not [name for name in names if name.endswith((".log", ".txt")) and "/data/" in name]


def test_the_workflow_runs_scripts_that_are_here() -> None:
    named = set(re.findall(r"(?:packaging|tests|\.ci)/[\w./]+", WORKFLOW.replace("\\", "/")))
    assert {"packaging/build.py", "packaging/smoke_test.py", "packaging/deb_test.py", ".ci/run"} <= named
    for path in named:
        assert (ROOT / path).exists(), path


def test_the_workflow_tests_every_python_and_system_that_the_readme_names() -> None:
    assert re.search(r'python: \["3\.11", "3\.12", "3\.13", "3\.14"\]', WORKFLOW)
    (systems,) = re.findall(r"os: \[(.*)\]\n\s+python:", WORKFLOW)
    assert [name.split("-")[0] for name in systems.split(", ")] == ["ubuntu", "macos", "windows"]
    assert "permissions:\n  contents: read" in WORKFLOW


def test_the_privacy_statement_names_the_drive_that_proves_it() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (statement,) = [part for part in readme.split("\n\n") if part.startswith("**Nothing leaves your machine.**")]
    assert "`packaging/smoke_test.py`" in statement and "internet socket" in statement
    drive = (PACKAGING / "smoke_test.py").read_text(encoding="utf-8")
    assert "internet = sandbox.internet_calls()\n    assert not internet" in drive


def test_the_drive_asks_a_question_that_the_samples_answer(scripts: dict[str, ModuleType]) -> None:
    drive = scripts["smoke_test"]
    assert demo.TELLING_QUERIES[drive.QUESTION] == drive.ANSWER


def test_steps_name_their_reason(scripts: dict[str, ModuleType]) -> None:
    steps = scripts["smoke_test"].STEPS
    assert list(steps)[-1] == "uninstall" and all(step.__doc__ for step in steps.values())
