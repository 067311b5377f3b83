"""The documents tell the truth: commands, options, settings, links and file names in them exist."""

import importlib.util
import re
import shlex
import sys
from types import ModuleType

import pytest

from app import settings
from app.cli import SUBCOMMANDS, build_parser
from tests.conftest import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "packaging/THIRD_PARTY.md")


def command_rows() -> list[tuple[str, str]]:
    """The README's command table: command, description."""
    return re.findall(r"^\| `inkling ?([^`]*)` \| (.*) \|$", README, flags=re.MULTILINE)


def test_every_subcommand_has_a_row_and_every_row_a_subcommand() -> None:
    named = [command.split()[0] for command, _ in command_rows() if command]
    assert named == sorted(set(named), key=named.index)
    assert set(named) == set(SUBCOMMANDS)


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_a_command_has_the_options_that_its_row_names(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        build_parser([name]).parse_args([name, "--help"])
    assert ended.value.code == 0
    help_text = capsys.readouterr().out
    assert "--data-dir" in help_text
    (row,) = [text for command, text in command_rows() if command.split()[:1] == [name]]
    for option in re.findall(r"`(-[^`]+)`", row):
        for word in option.split()[0].split("|"):
            assert word in help_text, f"README names {word} for {name}"


def test_the_settings_table_is_the_one_the_program_makes() -> None:
    begin, end = "<!-- settings: begin (checked by tests/test_docs.py) -->\n", "<!-- settings: end -->"
    assert README.split(begin)[1].split(end)[0] == settings_table(), "paste what settings_table() gives"


def settings_table() -> str:
    rows = "".join(f"| `{key}` | `{default}` | {help} |\n" for key, default, help in settings.documentation())
    return "\n| setting | default | meaning |\n|---|---|---|\n" + rows + "\n"


def test_the_one_liners_stand_for_both_kinds_of_shell() -> None:
    assert "python3 -m venv .venv && .venv/bin/pip install . && .venv/bin/inkling demo" in README
    assert 'python3 -m venv .venv && .venv/bin/pip install -e ".[dev]" && .venv/bin/pytest' in README
    assert r"py -m venv .venv; .venv\Scripts\pip install .; .venv\Scripts\inkling demo" in README
    assert r'py -m venv .venv; .venv\Scripts\pip install -e ".[dev]"; .venv\Scripts\pytest' in README


def test_continuous_integration_runs_the_readmes_test_command_and_installs_its_packages() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert 'python3 -m venv .venv && .venv/bin/pip install -e ".[dev]" && .venv/bin/pytest' in script
    named = " ".join(re.findall(r"sudo apt-get install ((?:.*\\\n)*.*)", README)).replace("\\\n", " ")
    assert {"python3-venv", "binutils", "qemu-user"} <= set(shlex.split(named))
    for package in shlex.split(named):
        assert re.search(rf"(^|\s){re.escape(package)}(\s|$)", script), f"{package} is not in .ci/run"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_and_paths_lead_somewhere(document: str) -> None:
    file = ROOT / document
    text = file.read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", text):
        assert (file.parent / target).exists(), target
    for path in re.findall(r"`((?:app|engine|indexer|ui|resources|tests|packaging)/[\w./-]*)`", text):
        assert (ROOT / path).exists(), path


def test_the_newest_entry_of_the_changelog_is_this_version() -> None:
    version = re.search(r'^version = "([^"]+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    newest = re.search(r"^## ([\d.]+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert version and newest and version[1] == newest[1]


@pytest.fixture(scope="module")
def licences() -> ModuleType:
    spec = importlib.util.spec_from_file_location("licences", ROOT / "packaging" / "licences.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_every_package_that_is_installed_along_is_listed_with_its_licence(licences: ModuleType) -> None:
    packages = licences.installed_closure(licences.core_dependencies())
    assert not licences.forbidden(packages)
    listed = licences.TARGET.read_text(encoding="utf-8").lower().replace("_", "-")
    needed = [name.lower().replace("_", "-") for name in licences.core_dependencies()]
    # What the hub client needs changes from release to release; what Inkling names itself must be in the list.
    assert not [name for name in needed if f"| {name} |" not in listed], "run packaging/licences.py"


@pytest.mark.parametrize(
    ("licence", "refused"),
    [
        ("GPL-3.0-only", True),
        ("GNU Affero General Public License v3 (AGPL)", True),
        ("GNU General Public License v2", True),
        ("UNKNOWN", True),
        ("LGPL-3.0-only", False),
        ("GPL-3.0 with the runtime library exception", False),
        ("MIT", False),
    ],
)
def test_a_licence_that_would_bind_all_of_inkling_is_refused(licence: str, refused: bool, licences: ModuleType) -> None:
    assert bool(licences.forbidden([licences.Package("x", licence, "", "")])) is refused
