"""Whether a root can be trusted at this moment: there, readable, and the same place as before."""

from __future__ import annotations

import os
from collections.abc import Iterable

from indexer.watch.filesystem import folder_identity, proves_sameness, same_folder

SAMPLE_FILES = 2_000


def root_trouble(path: bytes, identity: str, known: Iterable[bytes]) -> str:
    """Why the root must count as offline, as a sentence; "" where it is online.

    identity: its `folder_identity` when last seen, "" where that is not known. known: absolute paths of files that it
    held, none where it held none; they are looked for only where the folder seems to be another one.
    """
    try:
        with os.scandir(path) as listing:
            empty = next(listing, None) is None
    except FileNotFoundError:
        return "The folder is not there; its drive may not be connected."
    except NotADirectoryError:
        return "There is a file where the folder was."
    except PermissionError:
        return "Inkling has no permission to look into the folder."
    except OSError as error:
        return f"The folder cannot be read: {error.strerror or error}."
    files = iter(known)
    first = next(files, None)
    if first is None:
        return ""
    now = folder_identity(path)
    if same_folder(identity, now) and (not empty or proves_sameness(identity, now)):
        return ""  # where it is empty, its files were deleted
    if any(os.path.lexists(file) for file in (first, *files)):
        return ""
    if empty:
        return "The folder is empty, though it was not before; its drive may not be connected."
    if identity:
        return "Another drive or folder is where the folder was. If that is to stay, remove the folder and add it anew."
    return ""
