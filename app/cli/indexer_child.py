"""The two hidden words: `indexer`, the process that owns the index, and `extract-worker`, which reads files for it."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from app import paths
from engine.errors import EngineError
from indexer.errors import IndexerError
from indexer.lock import DataFolderLock
from indexer.options import DEFAULT_MODEL, DEFAULT_VECTOR_CHUNKS, IndexerOptions, default_workers
from indexer.priority import lower_priority
from indexer.protocol import Event, Fatal, ProtocolError, Stop, decode_command, encode_line
from indexer.service import Service

log = logging.getLogger(__name__)
LAST_STEP_S = 10.0  # for the step at hand once the parent is gone; a batch of vectors may take longer on a busy machine


def main(argv: Sequence[str]) -> int:
    """Run the process named by argv[0]; returns its exit code."""
    if argv[0] == "extract-worker":
        from indexer.extract.worker import main as work

        return work(list(argv[1:]))
    return run_indexer(parse(argv[1:]))


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The child's own options; the parent writes them, so they are not in any help."""
    parser = argparse.ArgumentParser(prog="inkling indexer")
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--model", default=DEFAULT_MODEL)
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--workers", type=int, default=default_workers())
    parser.add_argument("--disk-weights", type=Path)
    parser.add_argument("--vector-chunks", type=int, default=DEFAULT_VECTOR_CHUNKS)
    parser.add_argument("--no-watch", action="store_true")
    return parser.parse_args(argv)


def run_indexer(args: argparse.Namespace) -> int:
    """Serve commands from standard input until it ends, or until told to stop."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C in a terminal is for the parent to decide
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    lower_priority()
    events = _Events()
    options = IndexerOptions(
        data_dir=args.data_dir,
        model=args.model,
        precision=args.precision,
        workers=args.workers,
        disk_weights=args.disk_weights,
        vector_chunks_per_file=args.vector_chunks,
        watch=not args.no_watch,
    )
    folders = paths.folders(args.data_dir)
    try:
        with (
            DataFolderLock(args.data_dir),
            Service(options, events.emit, own_folders=(folders.cache, folders.logs)) as service,
        ):
            signal.signal(signal.SIGTERM, lambda number, frame: service.send(Stop()))
            threading.Thread(target=_listen, args=(service,), name="commands", daemon=True).start()
            service.run()
    except (IndexerError, EngineError) as error:
        events.emit(Fatal(str(error)))
        return 1
    except BrokenPipeError:
        return _leave_quietly()
    return 0


def _listen(service: Service) -> None:
    """Commands from the parent; the end of them means that it is gone."""
    for line in sys.stdin:
        try:
            service.send(decode_command(line))
        except ProtocolError as error:
            log.warning("a command was not understood: %s", error)
    service.send(Stop())
    # Nobody waits for the step at hand any more, but a next indexer may wait for the lock. What is committed stays.
    time.sleep(LAST_STEP_S)
    os._exit(0)


class _Events:
    """Writes events as lines; one at a time, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def emit(self, event: Event) -> None:
        """Send one event to the parent; raises BrokenPipeError when it is gone."""
        with self._lock:
            sys.stdout.write(encode_line(event))
            sys.stdout.flush()


def _leave_quietly() -> int:
    """The parent is gone: what is buffered for it goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
