"""One window a data folder: the first one holds a lock and listens, a later one asks it to come forward and leaves.

The two talk over a Unix socket (a named pipe on Windows), never over the network.
"""

import contextlib
import hashlib
import logging
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import IO

logger = logging.getLogger(__name__)

LOCK_NAME = "window.lock"
# Longer paths do not fit into a Unix socket's address on macOS (104 bytes) and Linux (108).
MAX_SOCKET_PATH_BYTES = 100
RAISE, STOP = b"raise", b"stop"


class SingleInstance:
    """The right to be the one window on a data folder.

    `acquire()` says whether this process is the one; `ask_to_raise()` reaches the one that is. `close()` gives up both.
    """

    def __init__(self, data_dir: Path) -> None:
        self._lock_path = data_dir / LOCK_NAME
        self._address = _address(data_dir)
        self._lock_file: IO[bytes] | None = None
        self._listener: Listener | None = None
        self._thread: threading.Thread | None = None

    def acquire(self, on_raise: Callable[[], None]) -> bool:
        """True if no other window has this data folder; `on_raise` is then called, on another thread, when one asks."""
        self._lock_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = self._lock_path.open("ab")
        if not try_lock(file):
            file.close()
            return False
        self._lock_file = file
        if sys.platform != "win32":
            # Holding the lock, we know that whoever left this socket behind is dead.
            Path(self._address).unlink(missing_ok=True)
        self._listener = Listener(self._address)
        self._thread = threading.Thread(target=self._listen, args=(on_raise,), name="single-instance", daemon=True)
        self._thread.start()
        return True

    def ask_to_raise(self) -> bool:
        """Ask the window that has the lock to come forward; False if it does not answer."""
        return self._send(RAISE)

    def close(self) -> None:
        """Stop listening and let the next window in."""
        if self._listener is not None and self._thread is not None:
            self._send(STOP)
            self._thread.join()
            self._listener.close()
            self._listener = self._thread = None
        if self._lock_file is not None:
            self._lock_file.close()
            self._lock_file = None

    def _send(self, message: bytes) -> bool:
        try:
            with Client(self._address) as connection:
                connection.send_bytes(message)
                return True
        except OSError as error:
            logger.warning("the other window does not answer: %s", error)
            return False

    def _listen(self, on_raise: Callable[[], None]) -> None:
        listener = self._listener
        while listener is not None:
            try:
                connection: Connection = listener.accept()
            except OSError as error:
                logger.warning("no longer listening for other windows: %s", error)
                return
            with connection, contextlib.suppress(EOFError, OSError):
                # Bytes only: objects would be unpickled, and a pickle can run code.
                message = connection.recv_bytes(len(RAISE))
                if message == STOP:
                    return
                if message == RAISE:
                    on_raise()


def _address(data_dir: Path) -> str:
    """A name that is the same for every process on this data folder and short enough for the system."""
    digest = hashlib.sha256(os.fsencode(os.path.realpath(data_dir))).hexdigest()[:24]
    if sys.platform == "win32":
        return rf"\\.\pipe\inkling-{digest}"
    inside = os.path.join(data_dir, "window.sock")
    if len(os.fsencode(inside)) <= MAX_SOCKET_PATH_BYTES:
        return inside
    return os.path.join(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir(), f"inkling-{digest}.sock")


def try_lock(file: IO[bytes]) -> bool:
    """Lock without waiting; the system lets go when the process ends, however it ends."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
