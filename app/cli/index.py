"""Index folders, once or for as long as they change."""

from __future__ import annotations

import argparse
import os
import sys
import threading
from dataclasses import replace

from app import settings
from app.cli.arguments import given_text, workers
from app.index_process import IndexClient
from app.progress import Progress as ProgressLine
from app.terminal import printable
from indexer.errors import IndexerError
from indexer.protocol import Event, FileFailed, Notice, Progress, RootChanged, RootRemoved, StateChanged, encode_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `inkling index`."""
    parser.add_argument(
        "folders_to_index", nargs="*", type=given_text, metavar="FOLDER", help="a folder to index and remember"
    )
    parser.add_argument(
        "--forget",
        action="append",
        default=[],
        type=given_text,
        metavar="FOLDER",
        help="take a folder out of the index; its files are not touched; may be given more than once",
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--once", action="store_true", help="end when the index equals the disk (the default)")
    mode.add_argument("--watch", action="store_true", help="stay, and keep the index up to date until interrupted")
    parser.add_argument(
        "--model", type=given_text, metavar="M", help="embedding model: a name from `inkling models list`, or a folder"
    )
    parser.add_argument("--precision", metavar="P", choices=settings.PRECISIONS, help=", ".join(settings.PRECISIONS))
    parser.add_argument("--workers", metavar="N", type=workers, help="processor cores to use at most")


def run(args: argparse.Namespace) -> int:
    """Run the indexer process until it is done, or until Ctrl+C."""
    folders = [os.path.abspath(folder) for folder in args.folders_to_index]
    forgotten = [os.path.abspath(folder) for folder in args.forget]
    for folder in folders:
        _look_into(folder)
    args.folders.create()
    options = settings.indexer_options(settings.load(args.folders.settings), args.data_dir, watch=args.watch)
    chosen = {"model": args.model, "precision": args.precision, "workers": args.workers}
    chosen["disk_weights"] = args.folders.disk_weights
    options = replace(options, **{name: value for name, value in chosen.items() if value is not None})
    session = _Session(as_json=args.json)
    client = IndexClient(options, session.hear, session.ended)
    try:
        client.start()
        for folder in forgotten:
            client.remove_root(folder)
        for folder in folders:
            client.add_root(folder)
        if not args.watch:
            client.finish()
        code = session.wait()
    except KeyboardInterrupt:
        code = 0 if args.watch else 130
    finally:
        client.close()
        session.close()
    if session.trouble:
        raise IndexerError(session.trouble)
    if unknown := session.unknown_roots():
        raise IndexerError(f"{' and '.join(unknown)} is not indexed: `inkling status` lists the folders that are.")
    return code


def _look_into(folder: str) -> None:
    """Raise IndexerError where nothing of a folder could be read: remembering it would look like success."""
    try:
        os.scandir(folder).close()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise IndexerError(f"{folder} is not a folder: name one that is there.") from error
    except OSError as error:
        raise IndexerError(f"{folder} cannot be read ({error.strerror or error}), so nothing was indexed.") from error


class _Session:
    """Shows what the indexer says: a progress line on a terminal, sentences on stderr, events on stdout with --json."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._line = ProgressLine("Indexing", unit="files")
        self._done = threading.Event()
        self._code = 0
        self._output_gone: OSError | None = None
        self.trouble = ""
        self._forgotten: dict[str, bool] = {}  # what was to be forgotten -> whether it was indexed

    def wait(self) -> int:
        """Block until the indexer has ended for good; returns the exit code. Raises OSError once stdout is closed."""
        while not self._done.wait(3600.0):  # a wait with a limit lets Ctrl+C through on every system
            pass
        if self._output_gone is not None:
            raise self._output_gone
        return self._code

    def ended(self, code: int, message: str) -> None:
        """The indexer will not be started again."""
        self._code = 0 if code == 0 else 1
        self.trouble = message
        self._done.set()

    def unknown_roots(self) -> list[str]:
        """What was to be forgotten, but was not indexed."""
        return [path for path, known in self._forgotten.items() if not known]

    def close(self) -> None:
        """Take the progress line away."""
        self._line.close()

    def hear(self, event: Event) -> None:
        """One event of the indexer; runs on the client's reader thread."""
        if self._as_json and self._output_gone is None:
            self._write(event)
        match event:
            case Progress():
                self._show(event)
            case Notice(message) | FileFailed(_, _, message) | RootChanged(_, _, message) if message:
                where = getattr(event, "path", "")
                self._say(f"{where}: {message}" if where else message)
            case RootRemoved(path, known):
                self._forgotten[path] = known or self._forgotten.get(path, False)  # said twice after a crash
            case StateChanged(_, reason) if reason:
                self._say(reason)

    def _write(self, event: Event) -> None:
        try:
            sys.stdout.write(encode_line(event))
            sys.stdout.flush()
        except OSError as error:
            self._output_gone = error  # the main thread has to end for it, not this one
            self._done.set()

    def _show(self, progress: Progress) -> None:
        name = os.path.basename(progress.current)
        if progress.phase == "meaning":
            self._line.label, self._line.unit = "Understanding", "passages"
            self._line.update(progress.chunks_done, progress.chunks_total, name)
        else:
            self._line.label, self._line.unit = "Reading", "files"
            self._line.update(progress.files_done, progress.files_total, name)

    def _say(self, sentence: str) -> None:
        if sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")
        print(printable(sentence), file=sys.stderr)
