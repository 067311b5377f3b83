"""The command line as a whole: exit codes, sentences instead of traces, and quiet ends."""

import argparse
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from app import cli
from app.cli import SUBCOMMANDS, Subcommand
from engine.errors import EngineError
from indexer.errors import IndexerError
from indexer.store.reader import Reader
from indexer.store.writer import Writer
from tests.app.permissions import forbidden
from tests.conftest import ROOT
from tests.indexer.store.building import add_file

TINY = Path(__file__).parent.parent / "goldens" / "tiny_bert"


class Planted:
    """A subcommand that does what a test wants."""

    def __init__(self, action: object) -> None:
        self.action = action
        self.args = argparse.Namespace()

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--times", type=int, default=1)

    def run(self, args: argparse.Namespace) -> int:
        self.args = args
        if isinstance(self.action, BaseException):
            raise self.action
        assert isinstance(self.action, int)
        return self.action


def plant(monkeypatch: pytest.MonkeyPatch, action: object) -> Planted:
    planted = Planted(action)
    monkeypatch.setitem(SUBCOMMANDS, "planted", Subcommand(lambda: planted, "planted by a test"))
    return planted


@pytest.mark.parametrize("code", [0, 1])
def test_a_commands_code_is_the_programs(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, code)
    assert cli.run(["planted"]) == code


@pytest.mark.parametrize("kind", [EngineError, IndexerError])
def test_known_trouble_is_one_sentence_on_stderr(
    kind: type[Exception], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(monkeypatch, kind("The model is not there."))
    assert cli.run(["planted"]) == 1
    assert capsys.readouterr() == ("", "inkling: The model is not there.\n")


def test_a_bug_shows_its_trace(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    plant(monkeypatch, ZeroDivisionError("oh"))
    assert cli.run(["planted"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, KeyboardInterrupt())
    assert cli.run(["planted"]) == 130


@pytest.mark.parametrize("argv", [["nonsense"], ["planted", "--times", "many"], ["planted", "stray"]])
def test_wrong_usage_ends_with_2(
    argv: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(monkeypatch, 0)
    with pytest.raises(SystemExit) as ended:
        cli.run(argv)
    assert ended.value.code == 2
    assert "usage: inkling" in capsys.readouterr().err


@pytest.mark.parametrize("place", ["before", "after", "variable"])
def test_the_data_dir_is_heard_wherever_it_stands(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = plant(monkeypatch, 0)
    option = ["--data-dir", str(tmp_path)]
    if place == "variable":
        monkeypatch.setenv("INKLING_DATA_DIR", str(tmp_path))
    assert cli.run({"before": [*option, "planted"], "after": ["planted", *option]}.get(place, ["planted"])) == 0
    assert planted.args.data_dir == planted.args.folders.data == tmp_path
    assert planted.args.json is False


def test_help_lists_every_command_without_loading_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unloadable() -> cli.CommandModule:
        raise AssertionError("loaded")

    for name, command in SUBCOMMANDS.items():
        monkeypatch.setitem(SUBCOMMANDS, name, Subcommand(unloadable, command.help))
    with pytest.raises(SystemExit):
        cli.run(["--help"])
    shown = capsys.readouterr().out
    assert all(name in shown for name in SUBCOMMANDS)


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_a_registered_module_offers_what_the_registry_needs(name: str) -> None:
    module = SUBCOMMANDS[name].load()
    assert callable(module.add_arguments) and callable(module.run)
    assert (module.__doc__ or "").strip()


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        command = [sys.executable, "-m", "app", "models", "list", "--data-dir", str(tmp_path)]
        done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_a_name_that_the_terminal_cannot_show_is_escaped(encoding: str) -> None:
    code = "from app import cli; cli.print_anything(); print('\\udcff 会议')"
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode(encoding).startswith("\\udcff ")


COMMANDS = {
    "search": ["search", "cat", "--mode", "words"],
    "status": ["status"],
    "failures": ["failures"],
    "list": ["models", "list"],
    "embed": ["embed", "x", "--model", str(TINY)],
    "doctor": ["doctor"],
}


def run_in_shell(arguments: list[str], redirection: str, data_dir: Path) -> subprocess.CompletedProcess[str]:
    words = shlex.join([sys.executable, "-m", "app", *arguments, "--data-dir", str(data_dir)])
    return subprocess.run(["sh", "-c", f"{words} {redirection}"], capture_output=True, text=True, cwd=ROOT)


@pytest.fixture
def index(tmp_path: Path) -> Path:
    with Writer.open(tmp_path) as writer:
        add_file(writer, writer.add_root(b"/home/ann").root_id, "cat.md", "The cat sleeps")
    return tmp_path


@pytest.mark.skipif(sys.platform == "win32", reason="needs a Unix shell")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("closed", [">&-", "<&-", "<&- >&-"])
def test_a_closed_stream_is_as_quiet_as_the_null_device(command: str, closed: str, index: Path) -> None:
    done = run_in_shell(COMMANDS[command], closed, index)
    assert (done.returncode, done.stderr) == (0, "")
    with Reader.open(index) as reader:  # no output went into a file that took the stream's number
        assert reader.counts().documents == 1


@pytest.mark.skipif(sys.platform == "win32", reason="needs a Unix shell")
def test_closed_input_holds_no_texts(tmp_path: Path) -> None:
    done = run_in_shell(["embed", "--model", str(TINY)], "<&-", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_is_a_sentence(command: str, index: Path) -> None:
    done = run_in_shell(COMMANDS[command], ">/dev/full", index)
    assert done.returncode == 1
    assert done.stderr == "inkling: The output cannot be read or written (No space left on device).\n"
    assert run_in_shell(COMMANDS[command], ">/dev/full 2>/dev/full", index).returncode == 1


@pytest.mark.parametrize("command", ["search", "status", "failures", "list", "embed"])
def test_a_file_as_the_data_folder_is_a_sentence(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.touch()
    assert cli.run([*COMMANDS[command], "--data-dir", str(file)]) == 1
    printed = capsys.readouterr()
    assert printed.err == f"inkling: The data folder {file} is a file; choose another one with --data-dir.\n"
    assert not printed.out


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps permissions elsewhere")
@pytest.mark.parametrize("command", ["search", "status", "failures", "list", "embed"])
def test_a_data_folder_without_permission_is_a_sentence(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "closed"
    folder.mkdir()
    cli.run([*COMMANDS[command], "--data-dir", str(folder)])  # loads what nobody else may read here, such as Python
    capsys.readouterr()
    with forbidden(folder):
        assert cli.run([*COMMANDS[command], "--data-dir", str(folder)]) == 1
    sentence = f"The data folder {folder} cannot be used (Permission denied); choose another one with --data-dir."
    assert capsys.readouterr() == ("", f"inkling: {sentence}\n")


def test_trouble_of_the_system_names_the_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(monkeypatch, PermissionError(13, "Permission denied", "/a\x1b/b"))
    assert cli.run(["planted"]) == 1
    assert capsys.readouterr().err == "inkling: /a\\x1b/b cannot be read or written (Permission denied).\n"
