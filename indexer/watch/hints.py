"""What a watcher may say: which place might have changed. Never what happened there: the disk is asked for that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Hint:
    """`path`: look at this name. `tree`: look at it and all below. `everything`: events were lost below this root."""

    kind: Literal["path", "tree", "everything"]
    path: bytes  # absolute


HintSink = Callable[[Hint], None]
Interesting = Callable[[bytes, bool], bool]  # (absolute path, is a directory) -> worth a hint; from any thread
