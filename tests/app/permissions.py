"""Being somebody who may not read a file, also where the tests run as root, whom permissions do not bind."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534


@contextmanager
def forbidden(folder: Path) -> Iterator[None]:
    """Within, this process may neither look into `folder` nor write there."""
    assert sys.platform != "win32", "Windows keeps permissions elsewhere"
    mode = folder.stat().st_mode
    user = os.geteuid()
    folder.chmod(0)
    try:
        if user == 0:
            os.seteuid(NOBODY)
        yield
    finally:
        os.seteuid(user)
        folder.chmod(mode)
