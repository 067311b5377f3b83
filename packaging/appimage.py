"""The folder that becomes an AppImage, and the AppImage itself where the tool for it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import archives
import deb

HERE = Path(__file__).resolve().parent
ICONS = HERE.parent / "resources" / "icons"


def build(program: Path, version: str, out: Path) -> list[Path]:
    """Make out/Inkling-VERSION-MACHINE.AppDir, and .AppImage beside it where appimagetool is installed."""
    name = f"Inkling-{version}-{os.uname().machine}"
    tree = out / f"{name}.AppDir"
    if tree.exists():
        shutil.rmtree(tree)
    lay_out(program, tree)
    archives.settle(tree)
    image = out / f"{name}.AppImage"
    if shutil.which("appimagetool") is None:
        print("appimagetool is not installed: the AppDir is complete, packaging/linux/appimage.sh makes one file of it")
        return [tree]
    subprocess.run(["sh", str(HERE / "linux" / "appimage.sh"), str(tree), str(image)], check=True)
    return [tree, image]


def lay_out(program: Path, tree: Path) -> None:
    """The AppDir: program, first step, icon and menu entry."""
    shutil.copytree(program, tree / "usr" / "lib" / "inkling", symlinks=True)
    shutil.copy(HERE / "linux" / "AppRun", tree / "AppRun")
    (tree / "AppRun").chmod(0o755)
    deb.place(tree / "inkling.desktop", deb.desktop_entry("inkling"))
    for target in (tree / "inkling.png", tree / ".DirIcon", tree / "usr/share/icons/hicolor/256x256/apps/inkling.png"):
        deb.place(target, (ICONS / "inkling-256.png").read_bytes())
