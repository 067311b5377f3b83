"""Commands and events survive the pipe, whatever a path is made of."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.protocol import (
    COMMANDS,
    EVENTS,
    AddRoot,
    FileFailed,
    Progress,
    ProtocolError,
    decode_command,
    decode_event,
    encode_line,
)


@given(st.binary(min_size=1, max_size=60))
def test_any_path_comes_back_byte_for_byte(raw: bytes) -> None:
    line = encode_line(AddRoot(os.fsdecode(raw)))
    assert line.isascii() and line.count("\n") == 1
    back = decode_command(line)
    assert isinstance(back, AddRoot)
    assert os.fsencode(back.path) == raw


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_can_be_sent(name: str) -> None:
    kind = COMMANDS[name]
    command = kind(**dict.fromkeys(kind.__dataclass_fields__, "/a\nb"))
    assert decode_command(encode_line(command)) == command


@pytest.mark.parametrize("name", EVENTS)
def test_every_event_can_be_sent(name: str) -> None:
    kind = EVENTS[name]
    event = kind(**dict.fromkeys(kind.__dataclass_fields__, "x"))
    assert decode_event(encode_line(event)) == event


def test_progress_without_an_estimate_is_sent_as_such() -> None:
    progress = Progress("words", "a", 1, 2, 3, 4, 0.5, None, 0)
    assert decode_event(encode_line(progress)) == progress


@pytest.mark.parametrize("line", ["", "{}", "[]", "nonsense", '{"type":"fly"}', '{"type":"add_root","way":"x"}'])
def test_a_line_that_is_no_command_is_refused(line: str) -> None:
    with pytest.raises(ProtocolError):
        decode_command(line)


def test_an_event_is_no_command() -> None:
    with pytest.raises(ProtocolError):
        decode_command(encode_line(FileFailed("a", "b", "c")))
