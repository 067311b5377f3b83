"""The parent's side of the indexer process: starts it, feeds it, hears it, and starts it again after a crash."""

from __future__ import annotations

import collections
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from app import program
from indexer.errors import IndexerError
from indexer.options import IndexerOptions
from indexer.protocol import (
    AddRoot,
    Command,
    Event,
    Fatal,
    Finish,
    Pause,
    ProtocolError,
    RemoveRoot,
    Rescan,
    Resume,
    Retry,
    StateChanged,
    Stop,
    decode_event,
    encode_line,
)

log = logging.getLogger(__name__)

EventCallback = Callable[[Event], None]
BACK_OFF_S = (0.5, 2.0, 5.0, 15.0, 30.0)  # before each restart; a run of HEALTHY_S starts the count again
HEALTHY_S = 120.0
QUICK_DEATH_S = 10.0  # a run that ends this soon with the same words as the one before will not end otherwise
STDERR_LINES = 30
STDERR_WAIT_S = 2.0  # for the last words; a process of its own may hold the pipe open longer


def child_command(subcommand: str) -> list[str]:
    """How this program starts another process of itself: packaged, its executable with streams; else the module."""
    if program.is_packaged():
        return [program.console_executable(), subcommand]
    return [sys.executable, "-P", "-m", "app", subcommand]


def child_environment(workers: int) -> dict[str, str]:
    """The environment of a child: every thread pool that could pass the worker cap is held to one thread.

    The engine's own pool is sized by its `workers` argument and is the only one that may use more.
    """
    environment = dict(os.environ)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
        environment[name] = "1"
    environment["RAYON_NUM_THREADS"] = "1"
    environment["TOKENIZERS_PARALLELISM"] = "false"
    environment["PYTHONUTF8"] = "1"
    source = str(Path(__file__).resolve().parent.parent)
    if not program.is_packaged():
        known = environment.get("PYTHONPATH", "")
        environment["PYTHONPATH"] = source if not known else source + os.pathsep + known
    return environment


def option_arguments(options: IndexerOptions) -> list[str]:
    """The command line of the indexer child for these options."""
    arguments = [
        *("--data-dir", str(options.data_dir), "--model", options.model),
        *("--precision", options.precision, "--workers", str(options.workers)),
        *("--vector-chunks", str(options.vector_chunks_per_file)),
    ]
    if options.disk_weights is not None:
        arguments += ["--disk-weights", str(options.disk_weights)]
    return arguments if options.watch else [*arguments, "--no-watch"]


class IndexClient:
    """Owns the indexer process of one data folder.

    Events arrive through `on_event` on the client's own reader thread; `on_exit(code, message)` is called there
    once, when the process has ended and will not be started again. Commands may be sent from any thread.
    """

    def __init__(
        self,
        options: IndexerOptions,
        on_event: EventCallback,
        on_exit: Callable[[int, str], None] | None = None,
        *,
        restarts: int = len(BACK_OFF_S),
        command: Sequence[str] | None = None,
    ) -> None:
        self.options = options
        self._on_event = on_event
        self._on_exit = on_exit
        self._restarts_left = self._restarts_allowed = restarts
        self._command = list(command) if command is not None else child_command("indexer")
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._closing = threading.Event()
        self._fatal = ""
        self._paused = False
        self._finishing = False
        self._added: list[str] = []
        self._removed: list[str] = []
        self._thread: threading.Thread | None = None
        self._stderr_thread: threading.Thread | None = None
        self._stderr: collections.deque[str] = collections.deque(maxlen=STDERR_LINES)

    # ---- life ----

    def start(self) -> None:
        """Start the process; raises IndexerError where it cannot be started at all."""
        self._launch()
        self._thread = threading.Thread(target=self._read_until_end, name="indexer-events", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int | None:
        """Process id of the running child, None between two runs."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def close(self, timeout_s: float = 15.0) -> None:
        """End the process: ask, then close its input, then end it by force. Safe to call twice."""
        self._closing.set()
        self._send(Stop())
        with self._lock:
            process = self._process
            if process is not None and process.stdin is not None:
                _close_quietly(process.stdin)
        if process is not None:
            try:
                process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                log.warning("the indexer did not end within %.0f s and was killed", timeout_s)
                process.kill()
                process.wait()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout_s)

    # ---- commands ----

    def add_root(self, path: str) -> None:
        """Index this folder from now on; said again after a crash, which may have come before it was written down."""
        self._removed = [removed for removed in self._removed if removed != path]
        self._added.append(path)
        self._send(AddRoot(path))

    def remove_root(self, path: str) -> None:
        """Forget this folder; said again after a crash, as `add_root` is."""
        self._added = [added for added in self._added if added != path]
        self._removed.append(path)
        self._send(RemoveRoot(path))

    def pause(self) -> None:
        """Stop working after the current step; remembered across a restart."""
        self._paused = True
        self._send(Pause())

    def resume(self) -> None:
        """Go on working."""
        self._paused = False
        self._send(Resume())

    def rescan(self, path: str = "") -> None:
        """Compare a folder, or every root, with the index."""
        self._send(Rescan(path))

    def retry(self, path: str = "") -> None:
        """Try one failed file again, or all of them."""
        self._send(Retry(path))

    def finish(self) -> None:
        """Let the process end by itself once the index equals the disk; remembered across a restart."""
        self._finishing = True
        self._send(Finish())

    # ---- inside ----

    def _send(self, command: Command) -> None:
        with self._lock:
            process = self._process
            if process is None or process.stdin is None or process.stdin.closed:
                return
            try:
                process.stdin.write(encode_line(command))
                process.stdin.flush()
            except OSError:
                log.info("the indexer was gone before it could hear %s", type(command).__name__)

    def _launch(self) -> None:
        command = [*self._command, *option_arguments(self.options)]
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                errors="replace",
                env=child_environment(self.options.workers),
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )
        except OSError as error:
            raise IndexerError(f"The indexer could not be started: {error.strerror or error}.") from error
        self._stderr.clear()
        self._stderr_thread = threading.Thread(
            target=self._read_stderr, args=(process,), name="indexer-stderr", daemon=True
        )
        self._stderr_thread.start()
        with self._lock:
            self._process = process
        for path in self._removed:
            self._send(RemoveRoot(path))
        for path in self._added:
            self._send(AddRoot(path))
        if self._paused:
            self._send(Pause())
        if self._finishing:
            self._send(Finish())

    def _read_stderr(self, process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        with process.stderr:
            self._copy_lines(process.stderr)

    def _copy_lines(self, stderr: IO[str]) -> None:
        for line in stderr:
            self._stderr.append(line.rstrip("\n"))
            log.info("indexer: %s", line.rstrip("\n"))

    def _read_until_end(self) -> None:
        death = ""
        while True:
            started = time.monotonic()
            code = self._read_one_run()
            took_s = time.monotonic() - started
            if took_s > HEALTHY_S:
                self._restarts_left = self._restarts_allowed
            before, death = death, self._own_death(code, took_s)
            if death and death == before and not self.options.watch:
                break  # someone waits for the end, and it would be the same after each of the restarts
            if self._closing.is_set() or code == 0 or self._fatal or self._restarts_left <= 0:
                break
            delay_s = BACK_OFF_S[min(self._restarts_allowed - self._restarts_left, len(BACK_OFF_S) - 1)]
            self._restarts_left -= 1
            log.warning("the indexer ended with code %s; starting it again in %.1f s", code, delay_s)
            self._deliver(StateChanged("starting", "The indexer stopped unexpectedly and is being started again."))
            if self._closing.wait(delay_s):
                break
            try:
                self._launch()
            except IndexerError as error:
                self._fatal = str(error)
                break
            if self._closing.is_set():
                self._send(Stop())
        if self._on_exit is not None:
            self._on_exit(code, self._fatal or self._last_words(code))

    def _read_one_run(self) -> int:
        process = self._process
        assert process is not None and process.stdout is not None
        for line in process.stdout:
            try:
                event = decode_event(line)
            except ProtocolError as error:
                log.warning("the indexer said something unknown: %s", error)
                continue
            if isinstance(event, Fatal):
                self._fatal = event.message
            self._deliver(event)
        process.stdout.close()
        code = process.wait()
        if self._stderr_thread is not None:
            self._stderr_thread.join(STDERR_WAIT_S)
        with self._lock:
            if process.stdin is not None:
                _close_quietly(process.stdin)
        return code

    def _deliver(self, event: Event) -> None:
        try:
            self._on_event(event)
        except Exception:
            log.exception("a listener failed on %s", type(event).__name__)

    def _last_line(self) -> str:
        return next((line for line in reversed(self._stderr) if line.strip()), "")

    def _own_death(self, code: int, took_s: float) -> str:
        """What a run died of that was over at once; "" for others, and where a signal ended it."""
        return self._last_line() if code > 0 and took_s < QUICK_DEATH_S else ""

    def _last_words(self, code: int) -> str:
        if code == 0 or self._closing.is_set():
            return ""
        last = self._last_line()
        return f"The indexer ended unexpectedly (code {code}){': ' + last if last else ''}."


def _close_quietly(stream: IO[str]) -> None:
    try:
        stream.close()
    except OSError:
        log.debug("the pipe to the indexer was already broken")
