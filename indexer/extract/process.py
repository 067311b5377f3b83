"""The indexer's side of the extraction process: asks, waits with a limit, kills, and starts anew."""

from __future__ import annotations

import base64
import json
import os
import queue
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from indexer.extract import Extractor
from indexer.extract.document import Page, Piece, Text, Title, Warn
from indexer.options import ExtractLimits

FILES_A_PROCESS = 2_000  # then a fresh one: parsers leak
HASH_BYTES_PER_S = 5_000_000  # slowest disk that we wait for while a file is hashed


class FileError(Exception):
    """The file cannot be read, and why."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


class WorkerDied(FileError):
    """The extraction process ended over this file. `blamed`: the file itself did it, not someone's kill."""

    def __init__(self, kind: str, message: str, *, blamed: bool) -> None:
        super().__init__(kind, message)
        self.blamed = blamed


class Interrupted(Exception):
    """The indexer is ending; the file stays queued."""


@dataclass(frozen=True, slots=True)
class Opened:
    """What identifies the bytes that are being read."""

    content_hash: bytes
    size_bytes: int
    mtime_ns: int


def worker_command() -> list[str]:
    """How to start the extraction process: frozen, a subcommand of the executable; else its module."""
    if getattr(sys, "frozen", False):
        return [sys.executable, "extract-worker"]
    return [sys.executable, "-P", "-m", "indexer.extract.worker"]


class ExtractProcess:
    """One extraction process, started when first needed and again after it died. One file is open at a time."""

    def __init__(self, limits: ExtractLimits, command: Sequence[str] | None = None) -> None:
        self._limits = limits
        self._command = list(command) if command is not None else worker_command()
        self._process: subprocess.Popen[bytes] | None = None
        self._answers: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._life_line: int | None = None
        self._interrupted = False
        self.starts = 0
        self._files = 0

    @property
    def pid(self) -> int | None:
        """Process id, None while no process runs."""
        return self._process.pid if self._process is not None else None

    def open(self, path: bytes, extractor: Extractor, size_bytes: int) -> Opened:
        """Open and hash a file; raises FileError, WorkerDied, Interrupted."""
        self._files += 1
        if self._files > FILES_A_PROCESS:
            self.stop()
        request = {
            "op": "open",
            "path": base64.b64encode(path).decode("ascii"),
            "extractor": extractor.name,
            "limits": asdict(self._limits),
        }
        answer = self._ask(request, self._limits.wall_s + size_bytes / HASH_BYTES_PER_S)
        return Opened(bytes.fromhex(answer["hash"]), int(answer["size"]), int(answer["mtime_ns"]))

    def next(self) -> tuple[list[Piece], bool]:
        """The next pieces of the open file and whether they are the last; raises as `open` does."""
        answer = self._ask({"op": "next"}, self._limits.wall_s)
        return [_unpacked(fields) for fields in answer["pieces"]], bool(answer["end"])

    def close_file(self) -> None:
        """Let go of the open file."""
        if self._process is not None:
            try:
                self._ask({"op": "close"}, self._limits.wall_s)
            except (WorkerDied, Interrupted):
                return  # it is gone or about to go, and the file with it

    def interrupt(self) -> None:
        """Make a waiting `open` or `next` raise Interrupted; called from another thread."""
        self._interrupted = True
        self._answers.put(None)

    def stop(self) -> None:
        """End the process; it is started again when needed."""
        process, self._process = self._process, None
        self._files = 0
        if self._life_line is not None:
            os.close(self._life_line)
            self._life_line = None
        if process is None:
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                _close(stream)

    def _ask(self, request: dict[str, Any], wait_s: float) -> dict[str, Any]:
        process = self._process or self._start()
        if self._interrupted:
            raise Interrupted
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(request).encode("ascii") + b"\n")
            process.stdin.flush()
            payload = self._answers.get(timeout=wait_s)
        except queue.Empty:
            self.stop()
            message = f"Reading this file gave no result within {wait_s:.0f} seconds."
            raise WorkerDied("timeout", message, blamed=True) from None
        except OSError:
            payload = None  # it died before it could be asked; what it died of is below
        if self._interrupted:
            raise Interrupted
        if payload is None:
            raise self._post_mortem(process)
        answer: dict[str, Any] = json.loads(payload)
        if "error" in answer:
            raise FileError(*answer["error"])
        return answer

    def _post_mortem(self, process: subprocess.Popen[bytes]) -> WorkerDied:
        code = process.wait()
        self.stop()
        if code == -getattr(signal, "SIGXCPU", 24):
            message = f"Reading this file took more than {self._limits.cpu_s} seconds of processor time."
            return WorkerDied("timeout", message, blamed=True)
        if code == -getattr(signal, "SIGKILL", 9):
            return WorkerDied("killed", "Reading this file was stopped by the system.", blamed=False)
        how = f"signal {-code}" if code < 0 else f"code {code}"
        return WorkerDied("crash", f"Reading this file made its reader crash ({how}).", blamed=True)

    def _start(self) -> subprocess.Popen[bytes]:
        arguments = [*self._command, str(self._limits.memory_bytes)]
        inherited: tuple[int, ...] = ()
        if sys.platform == "linux":
            read_end, self._life_line = os.pipe()
            arguments.append(str(read_end))
            inherited = (read_end,)
        process = subprocess.Popen(
            arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=inherited,
            env=_environment(),
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
        for descriptor in inherited:
            os.close(descriptor)
        self._process = process
        self._answers = queue.SimpleQueue()
        self.starts += 1
        reader = threading.Thread(target=_read_answers, args=(process, self._answers), daemon=True)
        reader.start()
        return process


def _read_answers(process: subprocess.Popen[bytes], answers: queue.SimpleQueue[bytes | None]) -> None:
    assert process.stdout is not None
    try:
        while len(header := process.stdout.read(4)) == 4:
            (length,) = struct.unpack(">I", header)
            payload = process.stdout.read(length)
            if len(payload) < length:
                break
            answers.put(payload)
    except (OSError, ValueError):
        pass  # `stop` closed the pipe under us: the same as its end
    answers.put(None)


def _environment() -> dict[str, str]:
    """Ours, and where this package lies, also when it was found by other means than PYTHONPATH."""
    environment = dict(os.environ)
    if not getattr(sys, "frozen", False):
        source = str(Path(__file__).resolve().parent.parent.parent)
        known = environment.get("PYTHONPATH", "").split(os.pathsep)
        environment["PYTHONPATH"] = os.pathsep.join([source, *(path for path in known if path not in ("", source))])
    return environment


def _unpacked(fields: list[Any]) -> Piece:
    match fields:
        case ["text", str(text)]:
            return Text(text)
        case ["page", int(number)]:
            return Page(number)
        case ["title", str(text)]:
            return Title(text)
        case ["warn", str(kind), str(message)]:
            return Warn(kind, message)
    raise ValueError(f"the extraction process sent an unknown piece: {fields[:1]}")


def _close(stream: IO[bytes]) -> None:
    try:
        stream.close()
    except OSError:
        return  # the reader of this pipe is dead, which is why it is being closed
