"""Build the packaged program for the system this runs on.

    pip install ".[package]"
    python packaging/build.py [--model NAME_OR_FOLDER] [--precision int8|fp32] [--formats tar,deb,appimage] [--twice]

Makes in dist/: the program's folder, with a list of everything inside and its licences; on Linux a tar.xz, a .deb and
the folder of an AppImage; on Windows a zip; on macOS Inkling.app. Nothing is fetched: the wheel is built from this
tree, with the compiler that the extra `package` installs. The other files beside this one are the steps.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

import appimage
import archives
import deb
import icons
import inventory
import windows_version

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
FORMATS = {"linux": ("tar", "deb", "appimage"), "win32": ("zip",), "darwin": ("app",)}
FIRST_WORDS = """Inkling {version}

Start:      {window}   opens the window; `{console} --help` shows the commands.
Carry:      make a folder named inkling-data beside these files, and everything Inkling writes stays in it.
Update:     put the new version's folder in the place of this one. The index stays as it is.
Remove:     delete this folder. Your files are never touched; index and settings are in the folder that
            `{console} doctor` names as the data folder.
Licences:   licences/INVENTORY.md lists everything inside.
"""


def main() -> int:
    options = parse()
    formats = options.formats.split(",") if options.formats else list(FORMATS[sys.platform])
    unknown = set(formats) - set(FORMATS[sys.platform])
    if unknown:
        raise SystemExit(f"{', '.join(sorted(unknown))} cannot be made here; {', '.join(FORMATS[sys.platform])} can")
    os.environ.setdefault("SOURCE_DATE_EPOCH", last_change())
    target = options.out / f"inkling-{version()}-{system_name()}"
    build(target, options.model, options.precision)
    made = [target]
    if options.twice:
        # At the same place, because the place is part of what is compared.
        first = options.out / "first-build"
        archives.replace(target, first)
        build(target, options.model, options.precision)
        report_differences(first, target)
        shutil.rmtree(first)
    if "tar" in formats:
        made.append(archives.tar_xz(target))
    if "zip" in formats:
        made.append(archives.zip_folder(target))
    if "deb" in formats:
        made.append(deb.build(target, version(), options.out))
    if "appimage" in formats:
        made += appimage.build(target, version(), options.out)
    for path in made:
        print(f"{path.relative_to(options.out)}: {archives.describe(path)}")
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=lambda text: Path(text).resolve(), default=ROOT / "dist", help="where to (dist)")
    parser.add_argument("--model", default="", help="bundle this model in the place of the usual one: a folder")
    parser.add_argument("--precision", choices=("int8", "fp32"), default="int8", help="weights of --model (int8)")
    parser.add_argument("--formats", default="", help="some of tar,deb,appimage / zip / app (all of this system's)")
    parser.add_argument("--twice", action="store_true", help="build twice and say where the two differ")
    return parser.parse_args()


def version() -> str:
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])


def system_name() -> str:
    """Such as linux-x86_64."""
    system = {"linux": "linux", "win32": "windows", "darwin": "macos"}[sys.platform]
    machine = platform.machine().lower()
    return f"{system}-{({'amd64': 'x86_64', 'arm64': 'aarch64'}).get(machine, machine)}"


def last_change() -> str:
    """Seconds since 1970 of the last commit: the one date in the package, so that building again gives the same."""
    done = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else str(int((ROOT / "pyproject.toml").stat().st_mtime))


def build(target: Path, model: str, precision: str) -> None:
    """Freeze this tree into the folder `target`."""
    with tempfile.TemporaryDirectory(prefix="inkling-package-") as scratch:
        work = Path(scratch)
        staging = unpacked_wheel(work)
        if model:
            bundle_model(staging, Path(model), precision)
        contents = freeze(work, staging)
        made = work / "dist" / ("Inkling.app" if sys.platform == "darwin" else "inkling")
        inside = made / "Contents" / "Resources" if sys.platform == "darwin" else made
        slim(made)
        words = FIRST_WORDS.format(version=version(), window="inkling-window", console="inkling")
        (inside / "README.txt").write_text(words, encoding="utf-8", newline="\n")
        if sys.platform == "win32":
            shutil.copy(work / "icons" / "inkling.ico", inside)  # for the installer
        problems = inventory.write(contents, staging, inside / "licences")
        for problem in problems:
            print(f"not allowed in the package: {problem}", file=sys.stderr)
        if problems:
            raise SystemExit(1)
        if sys.platform == "darwin":
            target.mkdir(parents=True, exist_ok=True)
            archives.replace(made, target / "Inkling.app")
        else:
            archives.replace(made, target)
    archives.settle(target)


def unpacked_wheel(work: Path) -> Path:
    """The wheel of this tree, unpacked: what an install would bring, kernels included."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(work / "wheel")]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = (work / "wheel").glob("*.whl")
    staging = work / "staging"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(staging)
    return staging


def bundle_model(staging: Path, source: Path, precision: str) -> None:
    """Put the model in the folder `source` in the place of the bundled one: packed to int8, or as published."""
    models = staging / "resources" / "models"
    for folder in [folder for folder in models.iterdir() if (folder / "config.json").exists()]:
        shutil.rmtree(folder)
    with tempfile.TemporaryDirectory(prefix="inkling-model-") as scratch:
        told = inkling(staging, "models", "import", str(source), "--json", "--data-dir", scratch)
        imported = json.loads(told)
        target = models / imported["name"]
        if precision == "int8":
            inkling(staging, "models", "convert", imported["path"], str(target))
        else:
            shutil.copytree(imported["path"], target)
    if not any((target / file).exists() for file in ("LICENSE", "LICENSE.txt", "LICENSE.md")):
        raise SystemExit(f"{source} has no LICENSE file; a package may not carry a model whose terms it does not state")
    (models / "default.txt").write_text(target.name + "\n", encoding="utf-8", newline="\n")


def inkling(staging: Path, *arguments: str) -> str:
    """Run a command of the program that is being packaged; returns what it printed."""
    command = [sys.executable, "-P", "-m", "app", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(staging)}
    return subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout


def freeze(work: Path, staging: Path) -> Path:
    """Run PyInstaller; returns the list of what went in."""
    images = icons.read(ROOT / "resources" / "icons")
    (work / "icons").mkdir()
    (work / "icons" / "inkling.ico").write_bytes(icons.ico(images))
    (work / "icons" / "inkling.icns").write_bytes(icons.icns(images))
    for name in ("inkling", "inkling-window"):
        text = windows_version.text(version(), name)
        (work / "icons" / f"version_{name}.txt").write_text(text, encoding="utf-8")
    contents = work / "contents.json"
    places = ["--distpath", str(work / "dist"), "--workpath", str(work / "work"), "--noconfirm", "--log-level", "WARN"]
    own = ["--staging", str(staging), "--icons", str(work / "icons"), "--contents", str(contents)]
    command = [sys.executable, "-m", "PyInstaller", str(HERE / "inkling.spec"), *places, "--", *own]
    # A set's order would otherwise differ from build to build; the cache is the builder's own, not the user's.
    environment = {**os.environ, "PYTHONHASHSEED": "1", "PYINSTALLER_CONFIG_DIR": str(work / "cache")}
    subprocess.run([*command, "--version", version()], cwd=work, env=environment, check=True)
    return contents


def slim(folder: Path) -> None:
    """Take the symbol table out of Python's own library, which some builds of Python leave in (15 MB)."""
    if sys.platform == "linux" and shutil.which("strip"):
        for library in (folder / "_internal").glob("libpython3*.so*"):
            subprocess.run(["strip", "--strip-unneeded", str(library)], check=True)


def report_differences(first: Path, second: Path) -> None:
    """Say whether two builds are the same, file by file; ends with an error where they are not."""
    before, after = archives.hashes(first), archives.hashes(second)
    lost = [f"only in one of them: {name}" for name in sorted(before.keys() ^ after.keys())]
    changed = [f"differs: {name}" for name in sorted(before.keys() & after.keys()) if before[name] != after[name]]
    if lost or changed:
        raise SystemExit("the two builds are not the same:\n" + "\n".join([*lost, *changed]))
    print(f"two builds gave the same {len(after)} files, byte for byte")


if __name__ == "__main__":
    sys.exit(main())
