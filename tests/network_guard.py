"""Keeps the test suite off the network: this process and every Python child it starts.

How. An audit hook sees each connect, send and name look-up that goes through Python's sockets, whichever library asks.
Unix sockets and the loopback addresses pass; anything else raises, and is also noted in a file, so that code which
swallows the error still fails the suite. Children get the same hook: `environment()` puts `tests/child_guard` (a
`sitecustomize.py`) in front of their import path. Sockets opened by compiled code are looked for in the process's
own table after each test (`open_connections`).

The one exception is `installer_environment()`: pip, run as a child to fetch a published package for a test.
"""

import ipaddress
import os
import sys
from pathlib import Path
from typing import Any

LOG_VARIABLE = "INKLING_NETWORK_GUARD_LOG"
CHILD_FOLDER = Path(__file__).parent / "child_guard"
LOCAL_NAMES = ("localhost", "", None)
ADDRESS_EVENTS = ("socket.connect", "socket.sendto", "socket.sendmsg")
NAME_EVENTS = ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo")
_before: dict[str, str] = {}


class NetworkForbiddenError(BaseException):
    """Something tried to leave the machine. Not an Exception, so that `except Exception` does not hide it."""


def install() -> None:
    """Watch this process from now on. An audit hook cannot be taken off again."""
    sys.addaudithook(_refuse_to_leave)


def environment(log: Path) -> dict[str, str]:
    """The variables that make Python children watch themselves and note what they try in `log`."""
    import_path = [str(CHILD_FOLDER), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {LOG_VARIABLE: str(log), "PYTHONPATH": os.pathsep.join(import_path)}


def remember_environment() -> None:
    """Keep the environment as the user set it, before the suite changes it."""
    _before.update(os.environ)


def installer_environment() -> dict[str, str]:
    """The user's own environment, for running pip as a child process: the suite's one way to a package index."""
    return dict(_before or os.environ)


def open_connections() -> list[str]:
    """Connections of this process to anywhere but this machine, whoever opened them."""
    import psutil

    found = psutil.Process().net_connections(kind="inet")
    return [f"{each.raddr.ip}:{each.raddr.port}" for each in found if each.raddr and not is_local(each.raddr.ip)]


def is_local(host: Any) -> bool:
    """Whether a host name or address stays on this machine."""
    name = host.decode("ascii", "replace") if isinstance(host, bytes) else host
    if name in LOCAL_NAMES:
        return True
    try:
        return ipaddress.ip_address(str(name).partition("%")[0]).is_loopback
    except ValueError:
        return False


def _refuse_to_leave(event: str, args: tuple[Any, ...]) -> None:
    if event in ADDRESS_EVENTS:
        target = args[1] if len(args) > 1 else None
        # Internet addresses are tuples; a Unix socket's is a text, and a connected socket sends to None.
        if isinstance(target, tuple) and target and isinstance(target[0], str | bytes) and not is_local(target[0]):
            _refuse(f"{event} {target[0]}")
    elif event in NAME_EVENTS:
        host = args[0][0] if isinstance(args[0], tuple) else args[0]
        if not is_local(host):
            _refuse(f"{event} {host}")


def _refuse(what: str) -> None:
    log = os.environ.get(LOG_VARIABLE)
    if log:
        with open(log, "a", encoding="utf-8") as file:
            file.write(f"{what} (process {os.getpid()}: {' '.join(sys.argv)[:200]!r})\n")
    raise NetworkForbiddenError(f"the test suite must stay on this machine: {what}")
