"""Leave a trace when the process dies: Python errors go to the log, a crash in compiled code to a file beside it."""

import faulthandler
import logging
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import TextIO

logger = logging.getLogger(__name__)
_crash_file: TextIO | None = None


def start(log_dir: Path, process_name: str) -> Path:
    """Record fatal faults of this process in `log_dir/process_name.crash.txt` and return that path."""
    global _crash_file
    log_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = log_dir / f"{process_name}.crash.txt"
    if _crash_file is not None:
        faulthandler.disable()
        _crash_file.close()
    # The file stays open for the life of the process: a handler of fatal signals cannot open one any more.
    _crash_file = path.open("a", encoding="utf-8")
    faulthandler.enable(_crash_file)
    sys.excepthook = _log_uncaught
    threading.excepthook = _log_uncaught_in_thread
    return path


def _log_uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        logger.critical("uncaught error", exc_info=(kind, error, trace))
    sys.__excepthook__(kind, error, trace)


def _log_uncaught_in_thread(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is not None and not issubclass(args.exc_type, SystemExit):
        name = args.thread.name if args.thread else "unknown"
        fault = (args.exc_type, args.exc_value, args.exc_traceback)
        logger.critical("uncaught error in thread %s", name, exc_info=fault)
    threading.__excepthook__(args)
