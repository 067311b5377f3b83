"""Drive the packaged program as a user would, on a machine that gives it nothing.

    sudo python packaging/smoke_test.py dist/inkling-0.1.0-linux-x86_64 [--out FOLDER] [--only NAME,...]
    sudo python packaging/smoke_test.py --root CHROOT        the package installed in another system's folder

There is no network interface but loopback, which is down; the program's folder is read-only and the user unprivileged;
HOME is empty at first and has spaces and letters of other alphabets in its name; the locale is C; /tmp cannot be
written to. The programs run under strace, and at the end not one internet socket may have been asked for. Needs Xvfb,
xdotool, xclip and strace. Prints one line a step and ends with an error at the first that fails.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sandbox as sandboxes
from sandbox import HOME, PROGRAM, Sandbox
from screen import Screen

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = Path("resources", "samples")
FIXTURE = Path("tests", "packaged", "fixtures", "data-0.1.0.tar.xz")
UPGRADED = "/home/earlier"  # where the fixture's documents and data lay when it was made
WINDOW, CONSOLE = f"{PROGRAM}/inkling-window", f"{PROGRAM}/inkling"
DATA = f"{HOME}/.local/share/inkling"
QUESTION, ANSWER = "the carrier mislaid my belongings", "travel/lost-suitcase.txt"  # one that `inkling demo` asks
# What is written outside the data folder: the font library, which is the system's own, keeps a list of the fonts.
NOT_OURS = (".cache/fontconfig/",)
INDEXING_S = 150.0


def main() -> int:
    options = parse()
    options.out.mkdir(parents=True, exist_ok=True)
    sandboxes.enter()
    program = options.program.resolve() if options.program else None
    sandbox = Sandbox(program, options.out.resolve(), ROOT, options.root or Path("/"))
    if options.make_fixture:
        make_fixture(sandbox, options.make_fixture)
        return 0
    screen = Screen(sandbox.out)
    chosen = options.only.split(",") if options.only else list(STEPS)
    for name in chosen:
        started = time.monotonic()
        try:
            told = STEPS[name](sandbox, screen)
            sandbox.no_process_stays()
        except BaseException:
            screen.picture(f"failed-{name}")
            raise
        print(f"ok {name} ({time.monotonic() - started:.1f} s): {told}", flush=True)
    screen.close()
    families = ", ".join(f"{name} {count}" for name, count in sorted(sandbox.socket_families().items()))
    print(f"sockets asked for under strace in {len(sandbox.traces)} runs: {families}")
    internet = sandbox.internet_calls()
    assert not internet, "internet calls:\n" + "\n".join(internet[:20])
    assert sandbox.socket_families(), "strace saw nothing at all, so it proves nothing"
    print(f"ok: {len(chosen)} steps, no internet socket")
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("program", type=Path, nargs="?", help="the folder that packaging/build.py made")
    parser.add_argument("--root", type=Path, help="a system's folder in which the package is installed")
    parser.add_argument("--out", type=Path, default=Path("smoke-test"), help="pictures and traces go here")
    parser.add_argument("--only", default="", help=f"some of {','.join(STEPS)}")
    parser.add_argument("--make-fixture", type=Path, metavar="FILE", help="make the upgrade's data folder instead")
    options = parser.parse_args()
    if (options.program is None) == (options.root is None):
        parser.error("name either the program's folder or --root")
    return options


def documents(sandbox: Sandbox, place: str) -> Path:
    """The samples, copied to a folder of the user; one more has a name that is hard on programs."""
    folder = sandbox.inside(place)
    if not folder.exists():
        shutil.copytree(sandbox.source / SAMPLES, folder)
        text = "The spare key of the garden shed hangs behind the blue watering can.\n"
        (folder / "Schlüssel & Höfe — 鍵.txt").write_text(text, encoding="utf-8")
        sandbox.give(folder)
    return folder


def window_step(sandbox: Sandbox, screen: Screen) -> str:
    """Index a folder through the window, search, read the preview, quit."""
    folder = documents(sandbox, f"{HOME}/Documents")
    before = sandbox.files(folder)
    process = sandbox.start(WINDOW, trace="window", DISPLAY=screen.display)
    window = screen.wait_for_window("^Inkling$", 60)
    screen.focus(window)
    screen.picture("window-empty")
    screen.keys("ctrl+o")
    screen.focus(screen.wait_for_window("Choose a folder"))
    screen.type("~/Documents")
    screen.keys("Return")
    screen.wait_until_gone("Choose a folder")
    status = wait_indexed(sandbox, DATA, len(before))
    again = sandbox.run(WINDOW, trace="second-window", DISPLAY=screen.display)
    assert again.returncode == 0, again.stderr  # it has called the first one forward and left
    screen.focus(window)
    screen.keys("ctrl+f")
    screen.type(QUESTION)
    wait_until(lambda: copied(screen, "ctrl+shift+c").endswith(ANSWER), "the answer is the first hit")
    passage = copied(screen, "ctrl+alt+c")
    time.sleep(1.0)
    screen.picture("window-results")
    screen.click(window, 850, 500)  # into the preview
    screen.keys("ctrl+a")
    preview = copied(screen, "ctrl+c")
    assert "Palermo" in preview, preview
    assert passage.split() and " ".join(passage.split()) in " ".join(preview.split()), (passage, preview)
    screen.keys("ctrl+2")
    time.sleep(0.5)
    screen.picture("window-folders")
    screen.keys("ctrl+q")
    assert process.wait(30) == 0, "the window ended with an error"
    errors = (sandbox.out / "window.stderr").read_text(encoding="utf-8")
    # Qt notes the locale C, and helps itself.
    assert not errors or errors.startswith("Detected locale"), errors
    assert "Traceback" not in errors and "rror:" not in errors, errors
    assert sandbox.files(folder) == before, "a document was changed"
    return f"{status['documents']} documents, {status['chunks']} passages; {ANSWER} found and shown in the preview"


def command_step(sandbox: Sandbox, screen: Screen) -> str:
    """The same on the command line, in a data folder of its own."""
    folder = documents(sandbox, f"{HOME}/More documents")
    data = ["--data-dir", f"{HOME}/other data"]
    succeed(sandbox.run(CONSOLE, "index", "--once", f"{HOME}/More documents", *data, trace="index"))
    hits = answers(sandbox, "search", QUESTION, *data)
    assert hits[0]["path"].endswith(ANSWER), hits[0]
    strange = answers(sandbox, "search", "where is the key of the shed", *data)
    assert strange[0]["path"].endswith("Schlüssel & Höfe — 鍵.txt"), strange[0]
    status = json.loads(succeed(sandbox.run(CONSOLE, "status", "--json", *data)))
    assert status["documents"] == len(sandbox.files(folder)) and not status["pending"], status
    assert json.loads(succeed(sandbox.run(CONSOLE, "failures", "--json", *data))) == []
    doctor = sandbox.run(CONSOLE, "doctor", "--json", *data, trace="doctor", DISPLAY=screen.display)
    report = json.loads(succeed(doctor))
    bad = [name for name, finding in report.items() if finding["state"] != "ok"]
    assert not bad, {name: report[name] for name in bad}
    assert report["kernels"]["facts"]["isa"] != "reference"
    succeed(sandbox.run(CONSOLE, "models", "verify", *data, trace="models"))
    demo = sandbox.run(CONSOLE, "demo", "--no-window", QUESTION, *data, trace="demo")
    assert "lost-suitcase.txt" in succeed(demo)
    return f"{status['documents']} documents, {report['window']['message']}, kernels {report['kernels']['message']}"


def upgrade_step(sandbox: Sandbox, screen: Screen) -> str:
    """A data folder of an earlier version goes on working, and nothing is embedded again without a reason."""
    with tarfile.open(sandbox.source / FIXTURE) as archive:
        archive.extractall(sandbox.inside("/home"), filter="tar")
    sandbox.give(sandbox.inside(UPGRADED))
    data = ["--data-dir", f"{UPGRADED}/data"]
    before = json.loads(succeed(sandbox.run(CONSOLE, "status", "--json", *data)))
    found = answers(sandbox, "search", QUESTION, *data)
    succeed(sandbox.run(CONSOLE, "index", "--once", *data, trace="upgrade"))
    after = json.loads(succeed(sandbox.run(CONSOLE, "status", "--json", *data)))
    assert before["documents"] > 0 and after["documents"] == before["documents"], (before, after)
    again = after["embedded"] - before["embedded"]
    # All of it only where this version cuts passages in another way; a part of it never.
    assert again in (0, after["vectors"]), (before, after)
    for hits in (found, answers(sandbox, "search", QUESTION, *data)):
        assert hits[0]["path"].endswith(ANSWER), hits[0]
    return f"{after['documents']} documents kept, {again} of {after['vectors']} passages embedded again"


def newer_step(sandbox: Sandbox, screen: Screen) -> str:
    """An index made by a newer version is left as it is, with a sentence; the window says it too."""
    data = sandbox.inside(f"{HOME}/newer")
    shutil.copytree(sandbox.inside(f"{HOME}/other data"), data)
    index = data / "index.db"
    connection = sqlite3.connect(index)
    connection.execute("PRAGMA user_version = 1000000")
    connection.close()
    sandbox.give(data)
    before = sandbox.files(index.parent)[str(index)]
    sentences = []
    for words in (["search", QUESTION], ["index", "--once"]):
        done = sandbox.run(CONSOLE, *words, "--data-dir", f"{HOME}/newer", trace="newer")
        assert done.returncode == 1 and "newer" in done.stderr and "Traceback" not in done.stderr, done.stderr
        sentences.append(done.stderr.strip().splitlines()[-1])
    process = sandbox.start(WINDOW, "--data-dir", f"{HOME}/newer", trace="newer-window", DISPLAY=screen.display)
    screen.focus(screen.wait_for_window("^Inkling$", 60))
    time.sleep(4.0)
    screen.picture("window-newer")
    screen.keys("ctrl+q")
    assert process.wait(30) == 0
    assert sandbox.files(index.parent)[str(index)] == before, "the newer index was changed"
    return sentences[0].replace(HOME, "~")


def trouble_step(sandbox: Sandbox, screen: Screen) -> str:
    """What keeps the window from opening is shown in a box, because nobody reads what a window prints."""
    data = sandbox.inside(f"{HOME}/wrong settings")
    data.mkdir()
    (data / "settings.toml").write_text('theme = "purple"\n', encoding="utf-8")
    sandbox.give(data)
    process = sandbox.start(WINDOW, "--data-dir", f"{HOME}/wrong settings", trace="trouble", DISPLAY=screen.display)
    box = screen.wait_for_window("^Inkling$", 60)
    screen.focus(box)
    screen.picture("window-trouble")
    screen.keys("Return")
    assert process.wait(30) == 1
    told = (sandbox.out / "trouble.stderr").read_text(encoding="utf-8")
    assert "purple" in told and "system, light, dark" in told, told
    return next(line for line in told.splitlines() if "purple" in line).replace(HOME, "~")


def portable_step(sandbox: Sandbox, screen: Screen) -> str:
    """With a folder inkling-data beside the program, nothing at all is written to the user's home."""
    documents(sandbox, f"{HOME}/Documents")
    place = sandbox.inside("/home/stick/inkling")
    shutil.copytree(sandbox.inside(PROGRAM), place, symlinks=True)
    (place / "inkling-data").mkdir()
    sandbox.give(place.parent)
    before = set(sandbox.files())
    console = "/home/stick/inkling/inkling"
    succeed(sandbox.run(console, "index", "--once", f"{HOME}/Documents/travel", trace="portable"))
    process = sandbox.start("/home/stick/inkling/inkling-window", trace="portable-window", DISPLAY=screen.display)
    screen.focus(screen.wait_for_window("^Inkling$", 60))
    screen.keys("ctrl+q")
    assert process.wait(30) == 0
    written = sorted(path.name for path in (place / "inkling-data").iterdir())
    assert "index.db" in written, written
    beside = {path for path in set(sandbox.files()) - before if not is_not_ours(path)}
    assert not beside, beside
    shutil.rmtree(place.parent)
    return f"all in the program's folder: {', '.join(written)}"


def nothing_else_step(sandbox: Sandbox, screen: Screen) -> str:
    """After all that, the home holds the user's documents and the data folders, and nothing else was written."""
    home = str(sandbox.home) + "/"
    ours = ("Documents/", "More documents/", "other data/", "newer/", "wrong settings/", ".local/share/inkling/")
    paths = [path.removeprefix(home) for path in sandbox.files()]
    strange = [path for path in paths if not path.startswith(ours) and not is_not_ours(path)]
    assert not strange, strange
    for place in ("/tmp", "/var/tmp"):
        left = [path for path in sandbox.inside(place).iterdir() if path.stat().st_uid == sandboxes.NOBODY]
        assert not left, left
    theirs = sorted({path.split("/")[1] for path in paths if is_not_ours(path)})
    return f"{len(paths)} files; outside the data folders only {', '.join(theirs) or 'nothing'}"


def uninstall_step(sandbox: Sandbox, screen: Screen) -> str:
    """With the program gone, no process is left and the user's files are as they were."""
    documents_before = sandbox.files(sandbox.inside(f"{HOME}/Documents"))
    subprocess.run(["umount", str(sandbox.inside(PROGRAM))], check=True)
    if sandbox.root != Path("/"):
        remove = ["chroot", str(sandbox.root), "env", "TMPDIR=/run", "dpkg", "--purge", "inkling"]
        subprocess.run(remove, check=True, stdout=subprocess.DEVNULL)
        left = [sandbox.inside(path) for path in ("/opt/inkling", "/usr/bin/inkling", "/usr/bin/inkling-window")]
        assert not [path for path in left if path.exists() or path.is_symlink()], left
    assert not sandbox.processes(), sandbox.processes()
    assert sandbox.files(sandbox.inside(f"{HOME}/Documents")) == documents_before
    return "no process, and the documents are as they were"


STEPS: dict[str, Callable[[Sandbox, Screen], str]] = {
    "window": window_step,
    "commands": command_step,
    "upgrade": upgrade_step,
    "newer": newer_step,
    "trouble": trouble_step,
    "portable": portable_step,
    "nothing-else": nothing_else_step,
    "uninstall": uninstall_step,
}


def wait_indexed(sandbox: Sandbox, data: str, count: int) -> dict[str, Any]:
    """Until the window's indexer has everything; asked through the command line, as the window goes on."""

    def is_done() -> bool:
        nonlocal status
        status = json.loads(succeed(sandbox.run(CONSOLE, "status", "--json", "--data-dir", data)))
        return bool(status["documents"] == count and not status["pending"])

    status: dict[str, Any] = {}
    wait_until(is_done, f"{count} documents are indexed", INDEXING_S)
    return status


def wait_until(condition: Callable[[], bool], what: str, within_s: float = 30.0) -> None:
    until = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < until, f"not within {within_s} s: {what}"
        time.sleep(0.5)


def copied(screen: Screen, keys: str) -> str:
    """What the clipboard holds after these keys."""
    screen.keys(keys)
    return screen.clipboard()


def answers(sandbox: Sandbox, *words: str) -> list[dict[str, Any]]:
    """The hits of a search on the command line."""
    found: list[dict[str, Any]] = json.loads(succeed(sandbox.run(CONSOLE, *words, "--json", trace="search")))["hits"]
    assert found, "no hits"
    return found


def succeed(done: subprocess.CompletedProcess[str]) -> str:
    """What the program printed; AssertionError with its last words where it failed."""
    assert done.returncode == 0, f"ended with {done.returncode}: {done.stderr[-2000:]}"
    return done.stdout


def is_not_ours(path: str) -> bool:
    return any(part in path for part in NOT_OURS)


def make_fixture(sandbox: Sandbox, target: Path) -> None:
    """Make the data folder for the upgrade: a few samples and their index, as this version leaves them."""
    folder = sandbox.inside(f"{UPGRADED}/papers")
    for name in ("travel/lost-suitcase.txt", "home/bike-repair.md", "letters/noise-complaint.txt",
                 "poems/first-snow.md", "languages/huiyi-jilu.md", "health/vet-visit.html"):  # fmt: skip
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(sandbox.source / SAMPLES / name, folder / name)
    sandbox.give(sandbox.inside(UPGRADED))
    data = ["--data-dir", f"{UPGRADED}/data"]
    succeed(sandbox.run(CONSOLE, "index", "--once", f"{UPGRADED}/papers", *data))
    made = sandbox.out / target.name
    with tarfile.open(made, "w:xz", format=tarfile.PAX_FORMAT) as archive:
        archive.add(sandbox.inside(UPGRADED), "earlier", filter=without_logs)
    print(f"{target.name}: {made.stat().st_size:,} bytes in the folder that --out names")


def without_logs(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if "/logs/" in member.name or "/cache/" in member.name else member


if __name__ == "__main__":
    sys.exit(main())
