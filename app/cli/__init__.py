"""The command line: a registry of subcommands, and one place that turns known trouble into a sentence.

A subcommand is one module in this folder and one line in SUBCOMMANDS. Its module offers
`add_arguments(parser)` and `run(args) -> int`; `args.data_dir` is always an absolute path, `args.folders` the folders
below it, and `args.json` is there for every command.
"""

import argparse
import contextlib
import faulthandler
import io
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import NoReturn, Protocol

from app import paths, program
from app.cli.arguments import given_path
from app.terminal import printable, printable_path

EXIT_DONE, EXIT_TROUBLE, EXIT_USAGE, EXIT_INTERRUPTED = 0, 1, 2, 130
DATA_DIR_HELP = "keep the index, settings, cache and logs in D"


class Parser(argparse.ArgumentParser):
    """A parser whose complaints, which quote what was typed or pasted, steer no terminal."""

    def error(self, message: str) -> NoReturn:
        super().error(printable(message))


class CommandModule(Protocol):
    """What a module in this folder offers."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, args: argparse.Namespace) -> int: ...


@dataclass(frozen=True)
class Subcommand:
    """A line of the registry: the module is imported only when its name is on the command line."""

    load: Callable[[], CommandModule]
    help: str


# The imports stand in functions, spelled out, so that starting is quick and the freezer still sees every module.
def _index() -> CommandModule:
    from app.cli import index

    return index


def _search() -> CommandModule:
    from app.cli import search

    return search


def _status() -> CommandModule:
    from app.cli import status

    return status


def _failures() -> CommandModule:
    from app.cli import failures

    return failures


def _demo() -> CommandModule:
    from app.cli import demo

    return demo


def _doctor() -> CommandModule:
    from app.cli import doctor

    return doctor


def _models() -> CommandModule:
    from app.cli import models

    return models


def _embed() -> CommandModule:
    from app.cli import embed

    return embed


def _validate() -> CommandModule:
    from app.cli import validate

    return validate


def _bench() -> CommandModule:
    from app.cli import bench

    return bench


def _serve() -> CommandModule:
    from app.cli import serve

    return serve


def _eval() -> CommandModule:
    from app.cli import evaluate

    return evaluate


SUBCOMMANDS: dict[str, Subcommand] = {
    "index": Subcommand(_index, "index folders, once or for as long as they change"),
    "search": Subcommand(_search, "find passages in the indexed folders"),
    "status": Subcommand(_status, "say what is indexed and what still waits"),
    "failures": Subcommand(_failures, "list the files that could not be read, and why"),
    "demo": Subcommand(_demo, "index the sample documents and open the window on them"),
    "doctor": Subcommand(_doctor, "check that everything Inkling needs is here"),
    "models": Subcommand(_models, "list, show, pull, import, verify, remove or convert embedding models"),
    "embed": Subcommand(_embed, "turn texts into vectors"),
    "validate": Subcommand(_validate, "check that a model computes here what it should"),
    "bench": Subcommand(_bench, "measure how fast a model is on this machine"),
    "serve": Subcommand(_serve, "offer the embedding engine to other programs on this machine"),
    "eval": Subcommand(_eval, "measure ranking quality on a set with known answers"),
}


def build_parser(argv: Sequence[str] = ()) -> argparse.ArgumentParser:
    """The parser for `argv`: every command is listed, but only those named in `argv` are loaded with their options."""
    parser = Parser(
        prog="inkling",
        description="Find passages in your own files by meaning and by word. Without a command, the window opens.",
    )
    parser.add_argument("--version", action="version", version=f"inkling {program_version()}")
    parser.add_argument("--data-dir", type=given_path, metavar="D", help=DATA_DIR_HELP)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    shared = shared_options()
    for name, subcommand in SUBCOMMANDS.items():
        child = commands.add_parser(name, help=subcommand.help, parents=[shared], conflict_handler="resolve")
        if name in argv:
            module = subcommand.load()
            child.description = (module.__doc__ or "").partition("\n\n")[0]
            module.add_arguments(child)
            child.set_defaults(run=module.run)
    return parser


def shared_options() -> Parser:
    """The options that every command takes."""
    shared = Parser(add_help=False)
    # Not given after the command, --data-dir must not hide the one given before it: hence no default at all.
    shared.add_argument("--data-dir", type=given_path, metavar="D", default=argparse.SUPPRESS, help=DATA_DIR_HELP)
    shared.add_argument("--json", action="store_true", help="print JSON for other programs to read")
    return shared


def program_version() -> str:
    """The version of the installed distribution."""
    try:
        return version("inkling-search")
    except PackageNotFoundError:  # run from a folder that was never installed
        return "(not installed)"


def run(argv: list[str]) -> int:
    """Parse, run, and turn known trouble into one sentence on stderr; anything else is a bug and shows its trace."""
    fill_closed_streams()
    print_anything()
    if argv[:1] == ["indexer"] or argv[:1] == ["extract-worker"]:
        from app.cli import indexer_child

        # A crash in compiled code ends the child with a trace on stderr, which its parent puts into the log.
        faulthandler.enable()
        return indexer_child.main(argv)
    if argv[:1] == ["qt-probe"]:
        return _qt_probe()
    args = build_parser(argv).parse_args(argv)
    args.folders = paths.folders(args.data_dir)
    args.data_dir = args.folders.data
    command: Callable[[argparse.Namespace], int] = args.run if args.command else _window

    def checked() -> int:
        if args.command != "doctor":  # which says more about it
            args.folders.check()
        return command(args)

    return guarded(checked)


def fill_closed_streams() -> None:
    """What was closed by whoever started this process becomes the null device, as if it had been sent there.

    Otherwise the next file that is opened, such as the index, would get the stream's number, and what any library
    prints would be written into it.
    """
    if program.is_window_program():  # it has no streams, and none of its numbers are anybody's
        return
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # An opened file gets the lowest free number, which is that of the closed stream.
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))


def print_anything() -> None:
    """Let no file name stop a print: what the terminal cannot show, or is no text at all, becomes an escape."""
    for stream in (sys.stdout, sys.stderr):
        # A packaged program without a console has no streams, and a test may have put its own in their place.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def guarded(command: Callable[[], int]) -> int:
    """Run a command under the rules that all of them share; returns the exit code."""
    from engine.errors import EngineError
    from indexer.errors import IndexerError

    try:
        code = command()
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except (EngineError, IndexerError) as error:
        return _trouble(str(error))
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader (head, less) has gone. What Python still wants to flush at exit goes nowhere, quietly.
        _drop_output()
        return EXIT_DONE
    except OSError as error:
        # A full disk, a closed terminal, a folder without permission: the system's trouble, and no fault of ours.
        _drop_output()
        what = printable_path(error.filename) if isinstance(error.filename, str | bytes) else "The output"
        return _trouble(f"{what} cannot be read or written ({error.strerror or error}).")
    except Exception as error:
        traceback.print_exc()
        _show_where_nobody_reads(f"Something went wrong ({type(error).__name__}: {error}).")
        return EXIT_TROUBLE


def _trouble(sentence: str) -> int:
    """Say what is wrong, where somebody can still read it; returns the exit code."""
    with contextlib.suppress(OSError):  # standard error may be what is closed or full: the code must do
        print(f"inkling: {printable(sentence)}", file=sys.stderr)
    _show_where_nobody_reads(sentence)
    return EXIT_TROUBLE


def _drop_output() -> None:
    """Send what is still buffered for standard output nowhere: Python would fail on it once more at its exit."""
    try:
        number = sys.stdout.fileno()
    except (AttributeError, io.UnsupportedOperation):
        return  # there is none, or a test has put its own in its place
    os.dup2(os.open(os.devnull, os.O_WRONLY), number)


def _show_where_nobody_reads(sentence: str) -> None:
    """The packaged window has no console: what stopped it is shown in a box."""
    if program.is_window_program():
        from app import gui

        gui.show_trouble(sentence)


def _qt_probe() -> int:
    """The third hidden word: `doctor` lets a child try Qt, because Qt ends a process in which it cannot draw."""
    from PySide6.QtGui import QGuiApplication

    application = QGuiApplication([])
    print(application.platformName())
    return EXIT_DONE


def _window(args: argparse.Namespace) -> int:
    from app import gui

    return gui.run(args.data_dir)
