"""What goes into the store and comes out of it: plain frozen records, no SQL."""

from __future__ import annotations

import hashlib
import unicodedata
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

RootStatus = Literal["online", "offline"]


def text_hash(text: str) -> bytes:
    """The 16-byte key under which a chunk's vector is kept: the same text anywhere is embedded once."""
    return hashlib.blake2b(text.encode("utf-8"), digest_size=16).digest()


def path_key(path: bytes) -> str:
    """The matching form of a relative path: NFC and case folded. Never a key of its own: two files may share it."""
    return unicodedata.normalize("NFC", path.decode("utf-8", "replace").casefold())


def file_type(path: bytes) -> str:
    """The lower-case suffix of the file name without its dot; '' where there is none."""
    name = path.rsplit(b"/", 1)[-1]
    stem, dot, suffix = name.rpartition(b".")
    return suffix.decode("utf-8", "replace").lower() if dot and stem else ""


@dataclass(frozen=True, slots=True)
class Root:
    """A watched folder. path: absolute, os.fsencode bytes."""

    root_id: int
    path: bytes
    status: RootStatus
    reason: str
    paused: bool
    identity: str
    settings: str
    scanned_at_s: float | None


@dataclass(frozen=True, slots=True)
class Document:
    """A file as the store knows it. path: relative to its root, exact bytes, '/' between parts."""

    document_id: int
    root_id: int
    path: bytes
    size: int
    mtime_ns: int
    content_id: int | None
    extractor: str | None  # of its content
    complete: bool  # its content is written to the end


@dataclass(frozen=True, slots=True)
class Content:
    """What some bytes say. chunk_count: chunks committed so far; a writer that was killed goes on from there."""

    content_id: int
    extractor: str
    title: str
    note: str
    chunk_count: int
    complete: bool


@dataclass(frozen=True, slots=True)
class NewChunk:
    """A span of the extracted text. embed=False: found by words only (past the vector limit, or unreadable text)."""

    start_char: int
    end_char: int
    text: str
    page: int | None = None
    line: int | None = None
    embed: bool = True


@dataclass(frozen=True, slots=True)
class PendingChunk:
    """A text that waits for its vector. Several chunks may share it; it is listed once."""

    chunk_id: int
    text_hash: bytes
    text: str


@dataclass(frozen=True, slots=True)
class NewVector:
    """What the encoder made of one text.

    vector: (dim,) float32, unit length.
    token_bits: (tokens, token_dim // 8) uint8 from pack_sign_bits; row i belongs to encoder.token_spans(text)[i], so
    special tokens and the model's prefix are left out, and rows end where the model cut the text.
    """

    text_hash: bytes
    vector: NDArray[np.float32]
    token_bits: NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class ModelStamp:
    """What makes vectors comparable. fingerprint: Encoder.fingerprint; model: what Encoder.load takes."""

    fingerprint: str
    model: str
    precision: str
    dim: int
    token_dim: int


@dataclass(frozen=True, slots=True)
class Generation:
    """One model's vectors. state: active | building | retired."""

    generation: int
    stamp: ModelStamp
    state: str


@dataclass(frozen=True, slots=True)
class QueueItem:
    """A path to look at. A newer event gives it a new queue_id, so that `done` of the older one leaves it queued."""

    queue_id: int
    root_id: int
    path: bytes
    kind: str
    priority: int
    attempts: int


@dataclass(frozen=True, slots=True)
class Failure:
    """A file that could not be read. retry_at_s: unix seconds, None: only a change or the user's wish retries it."""

    root_id: int
    path: bytes
    kind: str
    message: str
    attempts: int
    retry_at_s: float | None
    quarantined: bool
    size: int | None
    mtime_ns: int | None
    failed_at_s: float


@dataclass(frozen=True, slots=True)
class Counts:
    """Figures of the status line. pending_chunks: texts without a vector; pending_files: queue rows."""

    documents: int
    chunks: int
    vectors: int
    pending_chunks: int
    pending_files: int
    failed: int
    partial: int  # documents whose content is still being written
