"""A sentencepiece model file, as far as a tokenizer needs it: read without the sentencepiece library.

The file is one protocol-buffers message; field numbers are those of
https://github.com/google/sentencepiece/blob/v0.2.0/src/sentencepiece_model.proto.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.errors import ModelError

# Kinds of pieces (SentencePiece.Type).
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
# Kinds of models (TrainerSpec.ModelType).
UNIGRAM, BPE = 1, 2

Field = tuple[int, int | bytes]


@dataclass(frozen=True)
class Piece:
    """One entry of the vocabulary; its id is its place."""

    text: str
    score: float
    kind: int


@dataclass(frozen=True)
class SentencePieceModel:
    """pieces in the order of their ids; kind: UNIGRAM or BPE; charsmap: the normaliser's table, maybe empty."""

    pieces: tuple[Piece, ...]
    kind: int
    charsmap: bytes


def read_model(file: Path) -> SentencePieceModel:
    """Read a .model file; ModelError where it is none."""
    try:
        pieces, trainer, normalizer = [], b"", b""
        for number, value in _fields(file.read_bytes()):
            if number == 1:
                pieces.append(_piece(_bytes(value)))
            elif number == 2:
                trainer = _bytes(value)
            elif number == 3:
                normalizer = _bytes(value)
        kind = next((int(value) for number, value in _fields(trainer) if number == 3), UNIGRAM)
        charsmap = next((_bytes(value) for number, value in _fields(normalizer) if number == 2), b"")
    except OSError as error:
        raise ModelError(f"{file} cannot be read ({error.strerror or error}).") from error
    except (ValueError, struct.error, IndexError) as error:
        raise ModelError(f"{file} is not a sentencepiece model ({error}).") from error
    if not pieces:
        raise ModelError(f"{file} is not a sentencepiece model (it has no pieces).")
    return SentencePieceModel(tuple(pieces), kind, charsmap)


def check_charsmap(charsmap: bytes) -> None:
    """ValueError where a normaliser's table is not what it says: the library would believe any size.

    Four bytes with the size of a trie of 32-bit units, the trie, and the texts that it points to.
    """
    size = int.from_bytes(charsmap[:4], "little")
    if len(charsmap) < 4 or size % 4 or 4 + size > len(charsmap):
        raise ValueError(f"its table of characters claims {size} bytes and has {max(0, len(charsmap) - 4)}")


def _piece(message: bytes) -> Piece:
    text, score, kind = "", 0.0, NORMAL
    for number, value in _fields(message):
        if number == 1:
            text = _bytes(value).decode("utf-8")
        elif number == 2:
            (score,) = struct.unpack("<f", _bytes(value))
        elif number == 3:
            kind = int(value)
    return Piece(text, score, kind)


def _fields(message: bytes) -> Iterator[Field]:
    """Number and value of every field: an int for a varint, bytes for all else."""
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        number, wire = key >> 3, key & 7
        if wire == 0:
            integer, place = _varint(message, place)
            yield number, integer
            continue
        if wire == 2:
            size, place = _varint(message, place)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise ValueError(f"field {number} has the unknown wire type {wire}")
        if place + size > len(message):
            raise ValueError("the file is cut off")
        yield number, message[place : place + size]
        place += size


def _varint(message: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place
        if shift > 63:
            raise ValueError("a number is too long")


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number stands where bytes belong")
    return value
