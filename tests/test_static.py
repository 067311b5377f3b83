"""The tools that read the code without running it: lint, types, and who may import whom."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.conftest import OWN_PACKAGES, ROOT

LINT_IMPORTS = "from importlinter.cli import lint_imports_command; lint_imports_command()"
# One planted line a contract: the file it goes into, the line, and a word of the contract it must break.
VIOLATIONS = {
    "ui takes the engine": ("ui/planted.py", "from engine import Encoder", "ui sees neither"),
    "ui takes numpy": ("ui/planted.py", "import numpy", "ui sees neither"),
    "indexer takes ui": ("indexer/planted.py", "import ui", "app knows everyone"),
    "resources take the engine": ("resources/planted.py", "import engine", "app knows everyone"),
    "engine takes the indexer": ("engine/planted.py", "import indexer", "app knows everyone"),
    "engine takes a network client": ("engine/planted.py", "import huggingface_hub", "only the hub reaches"),
    "a command takes a network client": ("app/cli/planted.py", "import httpx2", "only the hub reaches"),
    "the window takes a socket": ("ui/planted.py", "import socket", "only the hub reaches"),
    "engine takes Qt": ("engine/planted.py", "import PySide6.QtCore", "run without Qt"),
}


def run(*arguments: str, folder: Path = ROOT) -> str:
    """Run a Python tool in `folder`; returns what it printed when it found fault, else an empty string."""
    done = subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True)
    return done.stdout + done.stderr if done.returncode else ""


def test_ruff_finds_nothing() -> None:
    assert not run("-m", "ruff", "check", "--no-cache", ".")


def test_mypy_strict_finds_nothing() -> None:
    assert not run("-m", "mypy", "--cache-dir", str(ROOT / ".mypy_cache"))


def test_import_contracts_hold() -> None:
    assert not run("-c", LINT_IMPORTS)


@pytest.fixture(scope="module")
def copied_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages' Python files and the contracts, in a folder where something may be planted."""
    copy = tmp_path_factory.mktemp("tree")
    shutil.copy(ROOT / "pyproject.toml", copy)
    for package in OWN_PACKAGES:
        for source in (ROOT / package).rglob("*.py"):
            target = copy / source.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    return copy


@pytest.mark.parametrize("what", VIOLATIONS)
def test_a_planted_violation_turns_the_contracts_red(what: str, copied_tree: Path) -> None:
    name, line, contract = VIOLATIONS[what]
    planted = copied_tree / name
    planted.write_text(line + "\n", encoding="utf-8")
    try:
        told = run("-c", LINT_IMPORTS, "--no-cache", folder=copied_tree)
    finally:
        planted.unlink()
    broken = [line for line in told.splitlines() if re.search(r" BROKEN( \(\d+ ignored imports\))?$", line)]
    assert any(contract in line for line in broken), told


def test_every_package_is_in_the_wheel_and_under_contract() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == list(OWN_PACKAGES)
    assert set(project["tool"]["importlinter"]["root_packages"]) == set(OWN_PACKAGES)
