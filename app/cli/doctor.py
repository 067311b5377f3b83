"""Check that everything Inkling needs is here, and say what to do about what is not."""

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from app import paths, settings
from app.index_process import child_command, child_environment
from app.single_instance import LOCK_NAME
from app.terminal import json_text, printable
from engine.errors import EngineError
from indexer.errors import IndexerError

State = Literal["ok", "warning", "missing"]
MARKS: dict[State, str] = {"ok": "ok", "warning": "note", "missing": "MISSING"}
LOW_SPACE_BYTES = 1 << 30
FEW_WATCHES = 65_536
# Reading an index through takes about a second for each gigabyte on a fast disk, and minutes on a slow one.
CHECKED_INDEX_BYTES = 2 << 30
INDEX_ADVICE = "delete it and index again: that costs time, but loses none of your files"
QT_PACKAGES = "libegl1 libgl1 libxkbcommon-x11-0 libdbus-1-3 libxcb-cursor0"


@dataclass(frozen=True)
class Finding:
    """One line of the report. `missing` means that Inkling cannot do its work; `advice` is what to do."""

    name: str
    state: State
    message: str
    advice: str = ""
    facts: dict[str, Any] = field(default_factory=dict)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No options of its own."""


def run(args: argparse.Namespace) -> int:
    """Print the report; 1 if something essential is missing."""
    findings = examine(args.folders)
    if args.json:
        print(json_text({finding.name: asdict(finding) for finding in findings}, indent=2))
    else:
        for finding in findings:
            print(f"{MARKS[finding.state]:8} {finding.name.replace('_', ' ')}: {printable(finding.message)}")
            if finding.advice:
                print(f"{'':8} -> {printable(finding.advice)}")
    return int(any(finding.state == "missing" for finding in findings))


def examine(folders: paths.Folders) -> list[Finding]:
    """All checks, in the order of the report."""
    return [_finding(check, folders) for check in CHECKS]


def _finding(check: Callable[[paths.Folders], Finding], folders: paths.Folders) -> Finding:
    """What a check finds; a file that it may not look at is a finding too."""
    try:
        return check(folders)
    except OSError as error:
        return Finding(check.__name__.removeprefix("check_"), "missing", f"{error.filename}: {error.strerror or error}")


def check_program(folders: paths.Folders) -> Finding:
    """Which Inkling runs on what."""
    from app.cli import program_version

    facts = {
        "inkling": program_version(),
        "python": platform.python_version(),
        "system": platform.platform(),
        "cores": os.cpu_count(),
    }
    return Finding(
        "program", "ok", "Inkling {inkling}, Python {python}, {system}, {cores} cores".format(**facts), facts=facts
    )


def check_kernels(folders: paths.Folders) -> Finding:
    """The compiled kernels and the instruction set in use."""
    from engine import kernels

    facts = kernels.info()
    if not facts["problem"]:
        others = ", ".join(facts["available"])
        return Finding("kernels", "ok", f"{facts['isa']} (this processor runs {others})", facts=facts)
    note = Path(kernels.__file__).with_name("not_built.txt")
    why = note.read_text(encoding="utf-8").strip() if note.exists() else ""
    # Without kernels all results are the same, only later. With a library that must not be used nothing computes.
    state: State = "warning" if facts["isa"] else "missing"
    advice = "install Inkling again with access to the package ziglang, or with CC set to a C compiler"
    return Finding("kernels", state, f"{facts['problem']} {why}".strip(), advice, facts | {"why_not_built": why})


def check_store(folders: paths.Folders) -> Finding:
    """SQLite and its extensions."""
    from indexer.store.versions import store_versions

    versions = store_versions()
    message = f"SQLite {versions.sqlite} (apsw {versions.apsw})"
    facts = asdict(versions)
    if versions.problem or not versions.fts5:
        lacking = versions.problem or "this SQLite has no full-text search (FTS5)"
        return Finding("store", "missing", f"{message}; {lacking}", "install apsw and sqlite-vec again", facts)
    return Finding("store", "ok", f"{message}, FTS5, sqlite-vec {versions.sqlite_vec}", facts=facts)


def check_settings(folders: paths.Folders) -> Finding:
    """Whether settings.toml can be used."""
    try:
        settings.load(folders.settings)
    except settings.SettingsError as error:
        return Finding("settings", "missing", str(error), "correct the line, or delete the file for the defaults")
    return Finding("settings", "ok", str(folders.settings) if os.path.exists(folders.settings) else "defaults")


def check_model(folders: paths.Folders) -> Finding:
    """The model that the settings name: present, readable, and able to compute."""
    from engine import Encoder
    from engine.catalog import model_path
    from engine.weights.importing import verify

    try:
        name = settings.load(folders.settings).model
        folder = model_path(name, folders.models)
        genuine = verify(folder).genuine
        with Encoder.load(folder, disk_weights=folders.disk_weights) as encoder:
            length = float((encoder.encode(["Inkling finds passages"]) ** 2).sum())
            numbers = {"dim": encoder.dim, "precision": encoder.precision, "genuine": genuine}
            facts = {"name": encoder.name, "folder": str(folder), **numbers}
    except (EngineError, settings.SettingsError) as error:
        return Finding("model", "missing", str(error), "see `inkling models list`, or install Inkling again")
    if abs(length - 1) > 1e-3:
        return Finding("model", "missing", f"{name} gives vectors of a wrong length", "import it again", facts)
    return Finding("model", "ok", "{name}, {dim} dimensions, {precision}, in {folder}".format(**facts), facts=facts)


def check_disk_weights(folders: paths.Folders) -> Finding:
    """The models that are kept in the kernels' layout, and what room they take."""
    from engine.weights import disk

    kept = disk.files(folders.disk_weights)
    size_bytes = sum(file.bytes for file in kept)
    facts = {"folder": str(folders.disk_weights), "files": len(kept), "bytes": size_bytes}
    if not kept:
        return Finding("disk_weights", "ok", "none: the bundled model needs none", facts=facts)
    message = f"{size_bytes / 1e6:.1f} MB in {folders.disk_weights}"
    return Finding("disk_weights", "ok", message, "`inkling models cache --clear` removes them", facts)


def check_data_folder(folders: paths.Folders) -> Finding:
    """The data folder: there or to be made, writable, on a local disk with room."""
    from indexer.store.open import network_filesystem

    facts: dict[str, Any] = {"data": str(folders.data), "cache": str(folders.cache), "logs": str(folders.logs)}
    try:
        folders.check()
    except IndexerError as error:
        return Finding("data_folder", "missing", str(error), facts=facts)
    place = nearest_existing(folders.data)
    if not writable(place):
        advice = "choose another folder with --data-dir"
        return Finding("data_folder", "missing", f"{place} cannot be written to", advice, facts)
    facts["free_bytes"] = shutil.disk_usage(place).free
    facts["index_bytes"] = os.path.getsize(folders.index) if os.path.exists(folders.index) else 0
    network = network_filesystem(place)
    facts["network_file_system"] = network
    if network:
        advice = "choose a folder on a local disk with --data-dir; on a network one searches wait while indexing"
        message = f"{folders.data} is on a network file system ({network})"
        return Finding("data_folder", "warning", message, advice, facts)
    free = f"{facts['free_bytes'] / 1e9:.1f} GB free"
    if facts["free_bytes"] < LOW_SPACE_BYTES:
        return Finding("data_folder", "warning", f"{folders.data}, only {free}", "make room on this disk", facts)
    return Finding("data_folder", "ok", f"{folders.data}, {free}", facts=facts)


def check_index(folders: paths.Folders) -> Finding:
    """Whether the index can be opened by this version, and is sound as far as a short look can tell."""
    from indexer.store.reader import Reader

    if not os.path.exists(folders.index):
        return Finding("index", "ok", "none yet: add a folder in the window or with `inkling index FOLDER`")
    try:
        with Reader.open(folders.data) as reader:
            size_bytes = reader.index_size_bytes()
            checked = size_bytes <= CHECKED_INDEX_BYTES
            damage = [row[0] for row in reader.rows("PRAGMA quick_check(1)") if row[0] != "ok"] if checked else []
    except IndexerError as error:
        return Finding("index", "missing", str(error), INDEX_ADVICE)
    facts = {"bytes": size_bytes, "checked": checked}
    if damage:
        return Finding("index", "missing", f"{folders.index} is damaged ({damage[0]})", INDEX_ADVICE, facts)
    sound = "sound" if checked else "too large to be read through here"
    return Finding("index", "ok", f"{size_bytes / 1e6:.1f} MB, {sound}", facts=facts)


def check_locks(folders: paths.Folders) -> Finding:
    """Which lock files there are, and whether somebody holds them."""
    held = {file.name: is_locked(file) for file in sorted(folders.data.glob("*.lock"))}
    words = {LOCK_NAME: "a window is open"}
    busy = [words.get(name, f"{name} is held by a running indexer") for name, locked in held.items() if locked]
    return Finding("locks", "ok", "; ".join(busy) or "nobody holds one", facts=held)


def check_watching(folders: paths.Folders) -> Finding:
    """Linux limits how many folders may be watched; elsewhere there is no such limit."""
    limits = {}
    for name in ("max_user_watches", "max_user_instances"):
        file = Path("/proc/sys/fs/inotify", name)
        if file.exists():
            limits[name] = int(file.read_text(encoding="ascii"))
    if not limits:
        return Finding("watching", "ok", "no limit to the number of watched folders is known")
    watches = limits["max_user_watches"]
    if watches < FEW_WATCHES:
        advice = "sudo sysctl fs.inotify.max_user_watches=524288 (folders beyond the limit are looked at once a minute)"
        return Finding("watching", "warning", f"only {watches:,} folders can be watched", advice, limits)
    return Finding("watching", "ok", f"up to {watches:,} folders can be watched", facts=limits)


def check_window(folders: paths.Folders) -> Finding:
    """Whether Qt can open a window here; a child asks, because Qt ends a process in which it cannot."""
    platform_name, problem = probe_qt()
    facts = {"platform": platform_name}
    if not problem:
        return Finding("window", "ok", f"Qt can draw on this display ({platform_name})", facts=facts)
    advice = f"searching on the command line works; for the window, on Debian: apt install {QT_PACKAGES}"
    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        problem, advice = "no display here", "searching on the command line works without one"
    return Finding("window", "warning", problem, advice, facts)


def probe_qt() -> tuple[str, str]:
    """(name of Qt's platform, reason why no window can be opened): one of the two is empty."""
    ask = child_command("qt-probe")
    try:
        done = subprocess.run(ask, env=child_environment(1), capture_output=True, text=True, timeout=30)
    except subprocess.TimeoutExpired:
        return "", "Qt did not answer within 30 seconds"
    if done.returncode == 0:
        return done.stdout.strip(), ""
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    return "", f"Qt cannot open a window: {lines[-1].strip() if lines else f'it ended with {done.returncode}'}"


def nearest_existing(folder: Path) -> Path:
    """`folder` itself, or the closest folder above it that exists."""
    return next(place for place in (folder, *folder.parents) if os.path.exists(place))


def writable(folder: Path) -> bool:
    """Whether a file can really be made in `folder`."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def is_locked(file: Path) -> bool:
    """Whether another process holds the lock on `file`; nothing is changed by asking."""
    from app.single_instance import try_lock

    try:
        with file.open("rb+") as handle:
            return not try_lock(handle)
    except OSError:
        return True


CHECKS: list[Callable[[paths.Folders], Finding]] = [
    check_program,
    check_kernels,
    check_store,
    check_settings,
    check_model,
    check_disk_weights,
    check_data_folder,
    check_index,
    check_locks,
    check_watching,
    check_window,
]
