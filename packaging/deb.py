"""A Debian package of the built folder: /opt/inkling, the command in /usr/bin, an entry in the menu. No scripts in it.

What it depends on is read from the files inside: every library they ask for that is not among them, and the oldest C
library that has all symbols they use.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import archives

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
ICON_SIZES = (16, 32, 48, 64, 128, 256)
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
# The window is asked for on X11; where Wayland is used its libraries are there.
OPTIONAL = re.compile(r"wayland", re.IGNORECASE)
RECOMMENDED = ("fonts-dejavu-core | fonts-noto-core | fonts-liberation", "xdg-utils", "dbus")
# Asked for only on Wayland, so the building system may lack them.
NAMED = {"libwayland-client.so.0": "libwayland-client0", "libwayland-cursor.so.0": "libwayland-cursor0"}
# Newer Debians gave these packages new names; either is right.
RENAMED = {"libglib2.0-0": "libglib2.0-0t64"}
# Version of the C++ library's symbols -> version of the package that first had them.
GLIBCXX_PACKAGES = {"3.4.25": "8", "3.4.26": "9", "3.4.28": "10", "3.4.29": "11", "3.4.30": "12", "3.4.31": "13",
                    "3.4.32": "13.2", "3.4.33": "14"}  # fmt: skip
DESCRIPTION = """Find passages in your own files by meaning and by word, offline
 Inkling watches the folders you choose and finds the paragraph that answers
 what you half remember, although it may share no word with your question.
 .
 The embedding model is inside. Nothing leaves the machine: no connection is
 opened, there is no account and no update check."""


@dataclass
class Needs:
    """What the files of a program ask of the system: library names, and the newest symbol versions."""

    required: set[str] = field(default_factory=set)
    optional: set[str] = field(default_factory=set)
    glibc: tuple[int, ...] = (0,)
    glibcxx: tuple[int, ...] = (0,)


def build(program: Path, version: str, out: Path) -> Path:
    """Make out/inkling_VERSION_ARCH.deb from the program's folder."""
    architecture = ARCHITECTURES[os.uname().machine]
    target = out / f"inkling_{version}_{architecture}.deb"
    with tempfile.TemporaryDirectory(prefix="inkling-deb-", dir=out) as scratch:
        tree = Path(scratch)
        lay_out(program, version, tree)
        control(program, version, architecture, tree)
        archives.settle(tree)
        command = ["dpkg-deb", "--root-owner-group", "-Zxz", "-z6", "--build", str(tree), str(target)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return target


def lay_out(program: Path, version: str, tree: Path) -> None:
    """Every file where it will be installed."""
    (tree / "opt").mkdir(parents=True)
    shutil.copytree(program, tree / "opt" / "inkling", symlinks=True)
    place(tree / "usr/share/applications/inkling.desktop", desktop_entry("/opt/inkling/inkling-window"))
    for name in ("inkling", "inkling-window"):
        link = tree / "usr" / "bin" / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(f"/opt/inkling/{name}")
    icons = ROOT / "resources" / "icons"
    themes = tree / "usr/share/icons/hicolor"
    for size in ICON_SIZES:
        place(themes / f"{size}x{size}/apps/inkling.png", (icons / f"inkling-{size}.png").read_bytes())
    place(themes / "scalable/apps/inkling.svg", (icons / "inkling.svg").read_bytes())
    documents = tree / "usr/share/doc/inkling"
    head = "Inkling is under the Apache License 2.0. What else is inside: /opt/inkling/licences/INVENTORY.md\n\n"
    place(documents / "copyright", head + (ROOT / "LICENSE").read_text(encoding="utf-8"))
    changes = (ROOT / "CHANGELOG.md").read_bytes()
    place(documents / "changelog.gz", gzip.compress(changes, mtime=archives.epoch_s()))


def desktop_entry(command: str) -> str:
    """The menu entry that starts `command`."""
    return (HERE / "linux" / "inkling.desktop").read_text(encoding="utf-8").replace("@COMMAND@", command)


def place(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)


def control(program: Path, version: str, architecture: str, tree: Path) -> None:
    """The package's own description and the list of its files' checksums."""
    needs = needed(program)
    depends = packages_of(needs.required) - {"libc6"} | {f"libc6 (>= {dotted(needs.glibc)})"}
    stdcxx = GLIBCXX_PACKAGES.get(dotted(needs.glibcxx))
    depends = {f"libstdc++6 (>= {stdcxx})" if name == "libstdc++6" and stdcxx else name for name in depends}
    recommends = [*RECOMMENDED, *sorted(packages_of(needs.optional) - depends)]
    fields = {
        "Package": "inkling",
        "Version": version,
        "Architecture": architecture,
        "Maintainer": "The Inkling authors <inkling@localhost>",
        "Section": "utils",
        "Priority": "optional",
        "Installed-Size": str(archives.size_bytes(tree) // 1024),
        "Depends": ", ".join(sorted(depends)),
        "Recommends": ", ".join(recommends),
        "Description": DESCRIPTION,
    }
    place(tree / "DEBIAN" / "control", "".join(f"{key}: {value}\n" for key, value in fields.items()))
    sums = [
        f"{hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()}  {path.relative_to(tree).as_posix()}\n"
        for path in archives.files(tree)
        if not path.is_symlink() and path.relative_to(tree).parts[0] != "DEBIAN"
    ]
    place(tree / "DEBIAN" / "md5sums", "".join(sums))


def needed(program: Path) -> Needs:
    """What the program's executables and libraries ask for and do not bring along."""
    needs = Needs()
    own = {path.name for path in archives.files(program)}
    for path in archives.files(program):
        if path.is_symlink() or path.read_bytes()[:4] != b"\x7fELF":
            continue
        shown = subprocess.run(["objdump", "-p", str(path)], check=True, capture_output=True, text=True).stdout
        asked = set(re.findall(r"^\s+NEEDED\s+(\S+)", shown, re.MULTILINE)) - own
        (needs.optional if OPTIONAL.search(path.as_posix()) else needs.required).update(asked)
        needs.glibc = max([needs.glibc, *versions(shown, "GLIBC")])
        needs.glibcxx = max([needs.glibcxx, *versions(shown, "GLIBCXX")])
    needs.optional -= needs.required
    return needs


def versions(shown: str, prefix: str) -> list[tuple[int, ...]]:
    """The symbol versions PREFIX_x.y.z that objdump named."""
    return [tuple(map(int, text.split("."))) for text in re.findall(rf"\b{prefix}_(\d[\d.]*\d)", shown)]


def dotted(version: Iterable[int]) -> str:
    return ".".join(map(str, version))


def packages_of(libraries: set[str]) -> set[str]:
    """The Debian packages that hold these libraries on the building system."""
    cached = subprocess.run(["/sbin/ldconfig", "-p"], check=True, capture_output=True, text=True).stdout
    where = dict(re.findall(r"^\s+(\S+) \(.*?\) => (\S+)$", cached, re.MULTILINE)[::-1])
    found = set()
    for library in libraries:
        if library in NAMED:
            found.add(NAMED[library])
            continue
        if library not in where:
            raise SystemExit(f"{library} is not installed here, so the package that holds it cannot be named")
        name = owner(where[library])
        found.add(f"{name} | {RENAMED[name]}" if name in RENAMED else name)
    return found


def owner(path: str) -> str:
    """The Debian package of a file, which may be listed under /lib or /usr/lib."""
    real = os.path.realpath(path)
    for spelling in (path, real, f"/usr{path}", real.removeprefix("/usr")):
        done = subprocess.run(["dpkg-query", "-S", spelling], capture_output=True, text=True)
        if done.returncode == 0:
            return done.stdout.partition(":")[0]
    raise SystemExit(f"{path} belongs to no package")
