"""What the indexer process and its parent say to each other: dataclasses, one JSON object a line.

Commands go to the indexer's standard input, events come from its standard output. Paths are text as `os.fsdecode`
gives it, so a name that is not UTF-8 carries lone surrogates; JSON escapes keep them, and the lines are pure ASCII.
The end of standard input means that the parent is gone: the indexer finishes its transaction and exits.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

Phase = Literal["starting", "scanning", "words", "meaning", "idle", "paused", "stopped"]
RootState = Literal["watching", "polling", "offline"]


# ---- commands ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AddRoot:
    """Index this folder and keep it up to date."""

    path: str


@dataclass(frozen=True, slots=True)
class RemoveRoot:
    """Forget this folder and everything that only it brought into the index. Files are never touched."""

    path: str


@dataclass(frozen=True, slots=True)
class Pause:
    """Stop working after the current step."""


@dataclass(frozen=True, slots=True)
class Resume:
    """Go on working."""


@dataclass(frozen=True, slots=True)
class Rescan:
    """Compare the disk with the index: one folder, or every root when the path is empty."""

    path: str = ""


@dataclass(frozen=True, slots=True)
class Retry:
    """Try a failed file again: one path, or every failure when the path is empty."""

    path: str = ""


@dataclass(frozen=True, slots=True)
class Finish:
    """End once the index equals the disk."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Finish the current step and end."""


# ---- events -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StateChanged:
    """The indexer entered a phase; the reason is a sentence where there is something to say."""

    phase: Phase
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the work is. Counts are of the present run of work, from the moment it was last idle."""

    phase: Phase
    current: str  # file at hand
    files_done: int
    files_total: int
    chunks_done: int  # passages with vectors
    chunks_total: int
    per_second: float  # files in the words phase, passages in the meaning phase
    eta_s: float | None
    failed: int


@dataclass(frozen=True, slots=True)
class FileFailed:
    """One file could not be indexed, or not whole; the message is a sentence for its owner."""

    path: str
    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class RootChanged:
    """A root is watched, polled, or offline (its rows stay), with a sentence where it is not plainly watched."""

    path: str
    state: RootState
    message: str = ""


@dataclass(frozen=True, slots=True)
class RootRemoved:
    """A root and its documents are gone from the index; known: whether it was one at all."""

    path: str
    known: bool = True


@dataclass(frozen=True, slots=True)
class IndexChanged:
    """Something that can be searched was committed."""

    documents: int
    chunks: int
    pending: int


@dataclass(frozen=True, slots=True)
class Notice:
    """A sentence that the user should see once."""

    message: str


@dataclass(frozen=True, slots=True)
class Fatal:
    """The indexer ends because of this known trouble."""

    message: str


Command = AddRoot | RemoveRoot | Pause | Resume | Rescan | Retry | Finish | Stop
Event = StateChanged | Progress | FileFailed | RootChanged | RootRemoved | IndexChanged | Notice | Fatal

COMMANDS: dict[str, type[Command]] = {
    "add_root": AddRoot,
    "remove_root": RemoveRoot,
    "pause": Pause,
    "resume": Resume,
    "rescan": Rescan,
    "retry": Retry,
    "finish": Finish,
    "stop": Stop,
}
EVENTS: dict[str, type[Event]] = {
    "state": StateChanged,
    "progress": Progress,
    "failure": FileFailed,
    "root": RootChanged,
    "root_removed": RootRemoved,
    "changed": IndexChanged,
    "notice": Notice,
    "fatal": Fatal,
}
_NAMES: dict[type[object], str] = {kind: name for name, kind in [*COMMANDS.items(), *EVENTS.items()]}


class ProtocolError(ValueError):
    """A line that is no command or event of this version."""


def encode_line(message: Command | Event) -> str:
    """One message as one line of ASCII JSON, newline included."""
    return json.dumps({"type": _NAMES[type(message)], **asdict(message)}, separators=(",", ":")) + "\n"


def decode_command(line: str) -> Command:
    """The command in one line; raises ProtocolError."""
    name, fields = _parse(line)
    kind = COMMANDS.get(name)
    if kind is None:
        raise ProtocolError(f"unknown command {name!r}")
    try:
        return kind(**fields)
    except TypeError as error:
        raise ProtocolError(f"command {name!r}: {error}") from error


def decode_event(line: str) -> Event:
    """The event in one line; raises ProtocolError."""
    name, fields = _parse(line)
    kind = EVENTS.get(name)
    if kind is None:
        raise ProtocolError(f"unknown event {name!r}")
    try:
        return kind(**fields)
    except TypeError as error:
        raise ProtocolError(f"event {name!r}: {error}") from error


def _parse(line: str) -> tuple[str, dict[str, Any]]:
    try:
        fields = json.loads(line)
    except ValueError as error:
        raise ProtocolError(f"not JSON: {line[:80]!r}") from error
    if not isinstance(fields, dict) or not isinstance(fields.get("type"), str):
        raise ProtocolError(f"no type in {line[:80]!r}")
    return str(fields.pop("type")), fields
