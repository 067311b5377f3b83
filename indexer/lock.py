"""One indexer a data folder: a lock that the operating system drops with the process, however it ends."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from indexer.errors import IndexerError

LOCK_NAME = "indexer.lock"


class AlreadyIndexingError(IndexerError):
    """Another process is the indexer of this data folder."""


class DataFolderLock:
    """Context manager; raises AlreadyIndexingError where another process holds the lock."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / LOCK_NAME
        self._descriptor: int | None = None

    def __enter__(self) -> Self:
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise IndexerError(f"The data folder {self._path.parent} cannot be used: {error.strerror}.") from error
        if not _try_lock(descriptor):
            owner = os.read(descriptor, 32).decode("ascii", "replace").strip()
            os.close(descriptor)
            who = f" (process {owner})" if owner.isdigit() else ""
            raise AlreadyIndexingError(
                f"Another Inkling{who} is already indexing into {self._path.parent}: close it first, "
                "or choose another data folder with --data-dir."
            )
        try:
            os.ftruncate(descriptor, 0)
            os.write(descriptor, str(os.getpid()).encode("ascii"))
        except OSError as error:  # a full disk has room for an empty file, but not for a number in it
            os.close(descriptor)
            raise IndexerError(f"The data folder {self._path.parent} cannot be written: {error.strerror}.") from error
        self._descriptor = descriptor
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)  # the lock goes with it; the file stays, or two could hold two files of one name
            self._descriptor = None


if sys.platform == "win32":
    import msvcrt

    _LOCKED_BYTE = 1 << 20  # far behind the process id, which others must be able to read

    def _try_lock(descriptor: int) -> bool:
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)
        return True

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
