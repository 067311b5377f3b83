"""The wheel: everything the program needs is inside, nothing else is, and its name tells the truth."""

import importlib.util
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from tests.conftest import OWN_PACKAGES, ROOT

LIBRARY = "engine/kernels/libinkling_kernels.so"


def build_wheel(folder: Path, **environment: str) -> Path:
    """Build the wheel of this tree, with what is installed here and without the network; returns its path."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_hook", ROOT / "packaging" / "build_hook.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_five_packages_are_in_it_and_nothing_else(names: set[str]) -> None:
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == set(OWN_PACKAGES)
    assert not [name for name in names if "__pycache__" in name or "tests" in name.split("/")]


def test_every_module_and_resource_of_the_tree_is_in_it(names: set[str]) -> None:
    for package in OWN_PACKAGES:
        for file in (ROOT / package).rglob("*"):
            name = file.relative_to(ROOT).as_posix()
            skipped = "__pycache__" in name or file.suffix in (".so", ".pyc") or file.name == "not_built.txt"
            assert skipped or file.is_dir() or name in names, name


@pytest.mark.parametrize("name", [LIBRARY, "resources/models/catalog.toml", "indexer/store/schema.sql"])
def test_what_the_program_cannot_do_without_is_in_it(name: str, names: set[str]) -> None:
    assert name in names


def test_the_bundled_model_is_in_it(names: set[str]) -> None:
    model = "resources/models/all-MiniLM-L6-v2/"
    assert {model + "model.safetensors", model + "tokenizer.json", model + "config.json"} <= names


def test_it_promises_the_oldest_system_that_the_library_runs_on(wheel: Path) -> None:
    assert wheel.name.startswith("inkling_search-")
    assert "-py3-none-manylinux2014_" in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        library = archive.read(LIBRARY)
    versions = {part.partition(b"\0")[0] for part in library.split(b"GLIBC_")[1:]}
    assert versions and all(tuple(map(int, version.split(b"."))) <= (2, 17) for version in versions), versions


def test_the_licence_and_the_command_are_in_it(wheel: Path, names: set[str]) -> None:
    folder = next(name.partition("/")[0] for name in names if ".dist-info/" in name)
    assert f"{folder}/licenses/LICENSE" in names
    with zipfile.ZipFile(wheel) as archive:
        assert "inkling = app.__main__:main" in archive.read(f"{folder}/entry_points.txt").decode()


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({"INKLING_NO_KERNELS": "1"}, "INKLING_NO_KERNELS was set"),
        ({"CC": "/no/such/compiler"}, "not compiled"),
    ],
)
def test_without_a_compiler_the_wheel_is_built_and_says_why(
    environment: dict[str, str], reason: str, tmp_path: Path
) -> None:
    wheel = build_wheel(tmp_path, **environment)
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert LIBRARY not in archive.namelist()
        assert reason in archive.read("engine/kernels/not_built.txt").decode()


def test_the_question_for_the_compiler_goes_where_the_installer_would_look(hook: ModuleType) -> None:
    line = ["pip", "install", "--no-index", "-f", "wheels", "--index-url=file:///here", "--quiet", "."]
    assert hook.index_options(line) == ["--no-index", "-f", "wheels", "--index-url", "file:///here"]


@pytest.mark.parametrize("variable", ["CC", "INKLING_NO_KERNELS"])
def test_the_compiler_is_not_asked_for_where_it_would_not_be_used(
    variable: str, hook: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert hook.compiler_wheel_wanted()
    monkeypatch.setenv(variable, "x")
    assert not hook.compiler_wheel_wanted()
