"""Log files in the log folder: one a process kind, small, rotated, and free of anybody's text.

What a document says or what a user searched for is never logged, only counts, times, names of errors and, where a
fault needs it, a path.
"""

import logging
import logging.handlers
import time
from pathlib import Path

MAX_BYTES = 1_000_000
OLD_FILES = 2
FORMAT = "%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s %(process)d %(message)s"


def start(log_dir: Path, process_name: str) -> Path:
    """Send the log of this process to `log_dir/process_name.log` (UTF-8, times in UTC) and return that path."""
    log_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = log_dir / f"{process_name}.log"
    handler = logging.handlers.RotatingFileHandler(
        path, maxBytes=MAX_BYTES, backupCount=OLD_FILES, encoding="utf-8", errors="backslashreplace", delay=True
    )
    formatter = logging.Formatter(FORMAT, datefmt="%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    # These two speak of every file system event and of every file they open.
    for chatty in ("watchdog", "PIL"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    return path
