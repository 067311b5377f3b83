"""Whether a root can be trusted at this moment: there, readable, and the same place as before."""

from __future__ import annotations

import os
from collections.abc import Sequence

from indexer.watch.filesystem import volume_identity

SAMPLE_FILES = 20


def root_trouble(path: bytes, identity: str, has_documents: bool, sample: Sequence[bytes]) -> str:
    """Why the root must count as offline, as a sentence; "" where it is online.

    identity: of the volume it lay on when last seen, "" where that is not known. sample: absolute paths of a few files
    that it held; has_documents: whether it held any.
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
    if not has_documents:
        return ""
    if empty:
        return "The folder is empty, though it was not before; its drive may not be connected."
    now = volume_identity(path)
    if identity and now and now != identity and not any(os.path.lexists(file) for file in sample):
        return "Another drive is mounted where the folder was."
    return ""
