"""Folders and archives whose bytes depend on their content alone: one date, one owner, one order."""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
import zipfile
from pathlib import Path

XZ_PRESET = 6


def epoch_s() -> int:
    """The date of everything in a package, in seconds since 1970."""
    return int(os.environ["SOURCE_DATE_EPOCH"])


def replace(source: Path, target: Path) -> None:
    """Move a folder to `target`, in the place of whatever is there."""
    if target.exists():
        shutil.rmtree(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(source, target)


def files(folder: Path) -> list[Path]:
    """All files and links below a folder, sorted by name."""
    found = [path for path in folder.rglob("*") if path.is_symlink() or path.is_file()]
    return sorted(found, key=lambda path: path.relative_to(folder).as_posix())


def settle(folder: Path) -> None:
    """Give all files the same date, and permissions that say only whether something can be run."""
    for path in [folder, *folder.rglob("*")]:
        if not path.is_symlink():
            runnable = path.is_dir() or os.access(path, os.X_OK)
            path.chmod(0o755 if runnable else 0o644)
            os.utime(path, (epoch_s(), epoch_s()))


def hashes(folder: Path) -> dict[str, str]:
    """SHA-256 by path below the folder; a link's is that of what it points to by name."""
    found = {}
    for path in files(folder):
        data = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
        found[path.relative_to(folder).as_posix()] = hashlib.sha256(data).hexdigest()
    return found


def tar(folder: Path, target: Path, root: str, mode: str = "w:") -> None:
    """Write the folder as a tar file whose names begin with `root`."""
    keywords = {"preset": XZ_PRESET} if mode == "w:xz" else {}
    with tarfile.open(target, mode, format=tarfile.GNU_FORMAT, **keywords) as archive:
        for path in [folder, *sorted(folder.rglob("*"))]:
            name = root if path == folder else f"{root}/{path.relative_to(folder).as_posix()}"
            info = archive.gettarinfo(str(path), arcname=name)
            info.uid = info.gid = 0
            info.uname = info.gname = "root"
            info.mtime = epoch_s()
            if info.isreg():
                with path.open("rb") as file:
                    archive.addfile(info, file)
            else:
                archive.addfile(info)


def tar_xz(folder: Path) -> Path:
    """folder.tar.xz beside the folder."""
    target = folder.with_name(folder.name + ".tar.xz")
    tar(folder, target, folder.name, "w:xz")
    return target


def zip_folder(folder: Path) -> Path:
    """folder.zip beside the folder."""
    target = folder.with_name(folder.name + ".zip")
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in files(folder):
            info = zipfile.ZipInfo(f"{folder.name}/{path.relative_to(folder).as_posix()}", (2024, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (path.stat().st_mode & 0xFFFF) << 16
            archive.writestr(info, path.read_bytes())
    return target


def size_bytes(path: Path) -> int:
    """Bytes of a file, or of all files below a folder; links count nothing."""
    if path.is_file():
        return path.stat().st_size
    return sum(file.lstat().st_size for file in files(path) if not file.is_symlink())


def describe(path: Path) -> str:
    """Size and number of files, for people."""
    size = f"{size_bytes(path) / 1e6:.1f} MB"
    return size if path.is_file() else f"{size} in {len(files(path))} files"
