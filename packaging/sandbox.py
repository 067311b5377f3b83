"""A machine for one test of the packaged program: no network, a read-only program, a strange home.

The process that uses it is root inside namespaces of its own (`enter`), so that every mount and process ends with it.
The program runs as an unprivileged user, under strace where its sockets are to be seen.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

NOBODY = 65534
PROGRAM = "/opt/inkling"
HOME = "/home/Zoë Müller 文書"
MARK = "INKLING_INSIDE_SANDBOX"
TIMEOUT_S = 180


def enter() -> None:
    """Run this script again in namespaces of its own: mounts, network (no interface is up), processes, IPC."""
    if os.environ.get(MARK):
        return
    if os.geteuid() != 0 or not sys.platform.startswith("linux"):
        raise SystemExit("this test makes namespaces and mounts: run it as root on Linux")
    namespaces = ["unshare", "--mount", "--net", "--pid", "--ipc", "--fork", "--kill-child", "--mount-proc"]
    os.environ[MARK] = "1"
    os.execvp(namespaces[0], [*namespaces, sys.executable, *sys.argv])


class Sandbox:
    """The prepared machine. `root` is "/" or the folder of another system; paths given to programs are inside it.

    `source`: this repository, which stays in sight even where it lies in a folder that the sandbox hides.
    """

    def __init__(self, program: Path | None, out: Path, source: Path, root: Path = Path("/")) -> None:
        self.root, self.out, self.source = root, out, source
        self.home = self.inside(HOME)
        self.traces: list[Path] = []
        self._prepare(program)

    def inside(self, path: str) -> Path:
        """Where a path of the sandbox is for this process."""
        return self.root / path.lstrip("/")

    def environment(self, **more: str) -> dict[str, str]:
        """What a program started from a bare desktop sees."""
        plain = {"HOME": HOME, "PATH": "/usr/bin:/bin", "LANG": "C", "LC_ALL": "C", "USER": "nobody"}
        return {**plain, **more}

    def command(self, arguments: Sequence[str], environment: Mapping[str, str], trace: str = "") -> list[str]:
        """The command line that runs `arguments` as an unprivileged user in the sandbox."""
        settings = [f"{name}={value}" for name, value in environment.items()]
        user = ["chroot", f"--userspec={NOBODY}:{NOBODY}", "--groups=", str(self.root)]
        run = [*user, "env", "-i", *settings, *arguments]
        if not trace:
            return run
        log = self.out / f"{len(self.traces):02}-{trace}.strace"
        self.traces.append(log)
        return ["strace", "-f", "--seccomp-bpf", "-e", "trace=network", "-o", str(log), *run]

    def start(self, *arguments: str, trace: str = "", **variables: str) -> subprocess.Popen[str]:
        """Start a program and let it run; its standard error goes to a file in `out`."""
        with (self.out / f"{trace or 'program'}.stderr").open("w", encoding="utf-8") as errors:
            command = self.command(arguments, self.environment(**variables), trace)
            return subprocess.Popen(command, cwd="/", stdin=subprocess.DEVNULL, stderr=errors, text=True)

    def run(self, *arguments: str, trace: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a program to its end."""
        command = self.command(arguments, self.environment(**variables), trace)
        return subprocess.run(command, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              encoding="utf-8", timeout=TIMEOUT_S)  # fmt: skip

    def give(self, path: Path) -> None:
        """Make a folder and all below it the unprivileged user's own."""
        for each in (path, *path.rglob("*")):
            os.chown(each, NOBODY, NOBODY, follow_symlinks=False)

    def processes(self) -> dict[int, str]:
        """The processes of the unprivileged user that are alive, by id."""
        found = {}
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                try:
                    if folder.stat().st_uid == NOBODY and (line := (folder / "cmdline").read_bytes()):
                        found[int(folder.name)] = line.replace(b"\0", b" ").decode("utf-8", "replace").strip()
                except OSError:
                    continue  # it has ended meanwhile
        return found

    def no_process_stays(self, within_s: float = 10.0) -> None:
        """Wait until the unprivileged user has no process left; AssertionError where one stays."""
        until = time.monotonic() + within_s
        while self.processes():
            assert time.monotonic() < until, f"still running: {self.processes()}"
            time.sleep(0.1)

    def files(self, *folders: Path) -> dict[str, str]:
        """SHA-256 of every file below the folders, by path."""
        found = {}
        for folder in folders or (self.home,):
            for path in sorted(folder.rglob("*")):
                if path.is_file():
                    found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
        return found

    def socket_families(self) -> Counter[str]:
        """How many sockets of each family all traced programs have asked for."""
        found: Counter[str] = Counter()
        for log in self.traces:
            found.update(re.findall(r"\bsocket(?:pair)?\((\w+)", log.read_text(encoding="utf-8", errors="replace")))
        return found

    def internet_calls(self) -> list[str]:
        """Every traced line that has to do with the internet, whether or not the call succeeded."""
        lines = [line for log in self.traces for line in log.read_text(encoding="utf-8", errors="replace").splitlines()]
        return [line for line in lines if "AF_INET" in line or "sin_addr" in line or "sin6_addr" in line]

    def _prepare(self, program: Path | None) -> None:
        mount("--make-rprivate", "/")
        places = Path("/mnt")  # what must stay in sight when /tmp is hidden
        mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", str(places))
        self.out = bind(self.out, places / "out")
        self.source = bind(self.source, places / "source")
        if self.root != Path("/"):
            self.root = bind(self.root, places / "root")
            self.home = self.inside(HOME)
            mount("-t", "proc", "proc", str(self.inside("/proc")))
            mount("--rbind", "/dev", str(self.inside("/dev")))
            mount("--bind", str(self.inside(PROGRAM)), str(self.inside(PROGRAM)))
        if program is not None:
            mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", str(self.inside("/opt")))
            bind(program, self.inside(PROGRAM))
        mount("-o", "remount,ro,bind", str(self.inside(PROGRAM)))
        # This process's own /tmp too: another display may have left its lock there.
        for folder in {Path("/tmp"), *map(self.inside, ("/home", "/tmp", "/var/tmp"))}:
            mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", str(folder))
        sockets = self.inside("/tmp/.X11-unix")
        sockets.mkdir(mode=0o1777)
        if self.root != Path("/"):
            Path("/tmp/.X11-unix").mkdir(mode=0o1777)
            mount("--bind", "/tmp/.X11-unix", str(sockets))
        self.home.mkdir(parents=True)
        self.give(self.home)


def bind(source: Path, target: Path) -> Path:
    """Show the folder `source` at `target`, which is made; returns `target`."""
    target.mkdir()
    mount("--bind", str(source), str(target))
    return target


def mount(*arguments: str) -> None:
    """mount(8); CalledProcessError where it fails."""
    subprocess.run(["mount", *arguments], check=True)
