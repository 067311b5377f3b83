"""The extraction process: reads one file at a time for the indexer and may be killed at any moment.

It does nothing unless asked: a request is one JSON line on standard input, its answer one frame on standard output
(length as 4 bytes, big-endian, then UTF-8 JSON). So at most one of indexer and worker computes at a time, and a large
file costs no memory while others are read. The end of standard input, or of the life line, ends it.

    {"op": "open", "path": base64, "extractor": name, "limits": {...}}
                          -> {"hash": hex, "size": bytes, "mtime_ns": int} or {"error": [kind, message]}
    {"op": "next"}        -> {"pieces": [["text", t] | ["page", n] | ["title", t] | ["warn", kind, message], ...],
                              "end": bool} or {"error": [kind, message]}
    {"op": "close"}       -> {}
"""

from __future__ import annotations

import base64
import contextlib
import errno
import hashlib
import json
import os
import queue
import signal
import stat
import struct
import sys
import threading
from collections.abc import Iterator
from typing import Any, BinaryIO

from indexer.extract import EXTRACTORS, Extractor
from indexer.extract.document import Page, Piece, Source, Text, Title, Unreadable, Warn
from indexer.options import ExtractLimits
from indexer.priority import lower_priority

ANSWER_CHARS = 256 * 1024  # text of one answer
HASH_BLOCK_BYTES = 1 << 20
HASH_BYTES = 32


class Session:
    """One opened file: its identity first, then its pieces as they are asked for."""

    def __init__(self, path: bytes, extractor: Extractor, limits: ExtractLimits) -> None:
        self._file = _open_regular(path)
        self._extractor = extractor
        self._limits = limits
        status = os.fstat(self._file.fileno())
        self.size_bytes, self.mtime_ns = status.st_size, status.st_mtime_ns
        self._head = self._file.read(1024)
        self._file.seek(0)
        self.hash = _hash(self._file, self.size_bytes)
        self._file.seek(0)
        self._pieces: Iterator[Piece] | None = None
        self._chars = 0

    def answer(self) -> dict[str, Any]:
        """The next pieces, about ANSWER_CHARS of text."""
        if self._pieces is None:
            self._pieces = self._start()
        pieces: list[list[Any]] = []
        chars = 0
        for piece in self._pieces:
            pieces.append(_packed(piece))
            if isinstance(piece, Text):
                chars += len(piece.text)
                self._chars += len(piece.text)
                if not self._extractor.streams and self._chars > self._limits.formatted_chars:
                    message = f"Only the first {self._chars:,} characters of this file are indexed."
                    pieces.append(["warn", "cut", message])
                    break
            if chars >= ANSWER_CHARS:
                return {"pieces": pieces, "end": False}
        self._check_unchanged()
        return {"pieces": pieces, "end": True}

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _start(self) -> Iterator[Piece]:
        if self.size_bytes == 0:
            raise Unreadable("empty", "This file is empty.")
        magic = self._extractor.magic
        if magic and magic not in self._head:
            what = self._extractor.name.upper()
            raise Unreadable("not_its_type", f"The content of this file is not {what}, though its name says so.")
        return self._extractor.extract(Source(self._file, self.size_bytes, self._limits))

    def _check_unchanged(self) -> None:
        status = os.fstat(self._file.fileno())
        if (status.st_size, status.st_mtime_ns) == (self.size_bytes, self.mtime_ns):
            return
        # A log that only grew still begins with the bytes that were read.
        self._file.seek(0)
        if not self._extractor.streams or _hash(self._file, self.size_bytes) != self.hash:
            raise Unreadable("changed", "This file was written to while it was read.")


class Server:
    """Answers requests one at a time until its input ends."""

    def __init__(self, answers: BinaryIO) -> None:
        self._answers = answers
        self._session: Session | None = None

    def handle(self, request: dict[str, Any]) -> None:
        """Answer one request; trouble with the file is an answer too."""
        try:
            answer = self._answer(request)
        except Unreadable as error:
            answer = {"error": [error.kind, error.message]}
        except MemoryError:
            self._close()
            answer = {"error": ["memory", "Reading this file takes more memory than it is given."]}
        except OSError as error:
            answer = {"error": list(explain(error))}
        except RecursionError:
            answer = {"error": ["broken", "This file is nested too deeply to be read."]}
        payload = json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
        self._answers.write(struct.pack(">I", len(payload)) + payload)
        self._answers.flush()

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        operation = request["op"]
        if operation == "open":
            self._close()
            limits = ExtractLimits(**request["limits"])
            _limit_cpu(limits.cpu_s)
            path = base64.b64decode(request["path"])
            self._session = Session(path, EXTRACTORS[request["extractor"]], limits)
            return {"hash": self._session.hash, "size": self._session.size_bytes, "mtime_ns": self._session.mtime_ns}
        if operation == "next":
            if self._session is None:
                raise Unreadable("broken", "No file is open.")
            _limit_cpu(self._session._limits.cpu_s)
            return self._session.answer()
        self._close()
        return {}

    def _close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None


def explain(error: OSError) -> tuple[str, str]:
    """Kind and sentence for a file that the system did not let us read."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return "missing", "This file is gone."
    if isinstance(error, PermissionError):
        if getattr(error, "winerror", None) == 32:
            return "locked", "Another program holds this file; it is tried again later."
        return "permission", "Inkling has no permission to read this file."
    if error.errno == errno.ELOOP:
        return "not_a_file", "This is a link, not a file."
    reason = error.strerror or str(error)
    return "io", f"The system could not read this file: {reason}."


def _open_regular(path: bytes) -> BinaryIO:
    """Open for reading; never a link, a device or a pipe, and never waiting for one."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path if os.name == "posix" else os.fsdecode(path), flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise Unreadable("not_a_file", "This is not a file that can be read.")
    return os.fdopen(descriptor, "rb", buffering=1 << 16)


def _hash(file: BinaryIO, size_bytes: int) -> str:
    digest = hashlib.blake2b(digest_size=HASH_BYTES)
    while size_bytes > 0 and (block := file.read(min(size_bytes, HASH_BLOCK_BYTES))):
        digest.update(block)
        size_bytes -= len(block)
    return digest.hexdigest()


def _packed(piece: Piece) -> list[Any]:
    if isinstance(piece, Text):
        return ["text", piece.text]
    if isinstance(piece, Page):
        return ["page", piece.number]
    if isinstance(piece, Title):
        return ["title", piece.text]
    assert isinstance(piece, Warn)
    return ["warn", piece.kind, piece.message]


def _limit_memory(size_bytes: int) -> None:
    if sys.platform != "linux":
        return  # macOS ignores RLIMIT_AS, Windows has none: there the wall clock alone guards
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (size_bytes, size_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _limit_cpu(seconds: int) -> None:
    """Allow this much processor time from now on; the system ends the process when it is used up."""
    if sys.platform == "win32":
        return
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime) + seconds + 1
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def _follow_life_line(descriptor: int) -> None:
    """Die with the indexer even inside a parser that holds everything up.

    The indexer holds the other end of this pipe and never writes: its closing makes the kernel send SIGIO, whose
    untouched default ends this process without any Python running.
    """
    if sys.platform != "linux":
        return
    import fcntl

    fcntl.fcntl(descriptor, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(descriptor, fcntl.F_SETFL, fcntl.fcntl(descriptor, fcntl.F_GETFL) | os.O_ASYNC | os.O_NONBLOCK)
    with contextlib.suppress(BlockingIOError):
        if os.read(descriptor, 1) == b"":  # the indexer was gone before the signal was set up
            os._exit(0)


def _read_requests(requests: queue.SimpleQueue[dict[str, Any] | None]) -> None:
    for line in sys.stdin.buffer:
        requests.put(json.loads(line))
    # The main thread may be deep inside a parser: nothing here needs tidying, so end at once.
    os._exit(0)


def main(arguments: list[str]) -> int:
    """Serve until standard input ends. Arguments: [memory limit in bytes [life line descriptor]]."""
    if hasattr(signal, "SIGINT"):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C in a terminal is for the parent to decide
    lower_priority()
    if len(arguments) > 1:
        _follow_life_line(int(arguments[1]))
    # Parsers that print must not break the frames: standard output becomes standard error for everyone else.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    if arguments:
        _limit_memory(int(arguments[0]))
    requests: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
    threading.Thread(target=_read_requests, args=(requests,), daemon=True).start()
    server = Server(answers)
    while (request := requests.get()) is not None:
        server.handle(request)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
