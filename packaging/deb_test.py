"""Install the Debian package in a clean Debian, drive it there without a network, and remove it again.

    sudo python packaging/deb_test.py dist/inkling_0.1.0_amd64.deb [--suite bookworm] [--chroot FOLDER] [--out FOLDER]

The clean system is made by debootstrap, unless FOLDER holds one; only what the package depends on is added to it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Lists and logs of the package manager itself, which always tell of what was once installed.
KEPT_BY_DPKG = ("var/lib/dpkg/", "var/lib/apt/", "var/log/", "var/cache/")


def main() -> int:
    options = parse()
    with tempfile.TemporaryDirectory(prefix="inkling-chroot-") as scratch:
        chroot = options.chroot or Path(scratch) / "system"
        if not (chroot / "usr").exists():
            subprocess.run(["debootstrap", "--variant=minbase", options.suite, str(chroot)], check=True)
        install(options.package, chroot)
        print(f"installed in {options.suite}: {count(chroot, '/opt/inkling')} files in /opt/inkling", flush=True)
        command = [sys.executable, str(HERE / "smoke_test.py"), "--root", str(chroot), "--out", str(options.out)]
        done = subprocess.run(command)
        left = [name for name in names(chroot) if "inkling" in name.lower() and not name.startswith(KEPT_BY_DPKG)]
        assert done.returncode == 0, "the drive failed"
        assert not left, left
        print("removed: no file with inkling in its name is left in the system")
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("package", type=Path)
    parser.add_argument("--suite", default="bookworm")
    parser.add_argument("--chroot", type=Path, help="a system that is there already, or where to keep the new one")
    parser.add_argument("--out", type=Path, default=Path("deb-test"), help="pictures and traces go here")
    return parser.parse_args()


def install(package: Path, chroot: Path) -> None:
    """Install the package file with what it depends on and nothing more."""
    shutil.copy(package, chroot / "root" / package.name)
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    get = ["chroot", str(chroot), "apt-get", "-q"]
    for words in (["update"], ["install", "-y", "--no-install-recommends", f"/root/{package.name}"]):
        subprocess.run([*get, *words], env=environment, check=True, stdout=subprocess.DEVNULL)
    (chroot / "root" / package.name).unlink()


def names(chroot: Path) -> list[str]:
    """Every path of the system, relative to it."""
    found = []
    for folder, folders, files in os.walk(chroot):
        folders[:] = [name for name in folders if folder != str(chroot) or name not in ("proc", "sys", "dev")]
        found += [os.path.relpath(os.path.join(folder, name), chroot) for name in (*folders, *files)]
    return found


def count(chroot: Path, folder: str) -> int:
    return sum(path.is_file() for path in (chroot / folder.lstrip("/")).rglob("*"))


if __name__ == "__main__":
    sys.exit(main())
