"""Models out of zip files and wheels: the one model folder inside, unpacked file by file, and nothing else of it.

Whatever an archive says of itself is doubted: names that lead out of the folder, links, encrypted and endless members
are refused, and only files that a model consists of are written. Nothing is ever executed.
"""

from __future__ import annotations

import os
import shutil
import stat
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from engine.errors import ModelError
from engine.published import MAX_VOCABULARY_BYTES
from engine.weights.importing import OF_FOLDER, OF_TRANSFORMER
from engine.weights.staging import SUFFIX

Progress = Callable[[int, int], None]  # bytes unpacked, bytes in all

SUFFIXES = (".zip", ".whl")
INSIDE = "::"  # between an archive and a folder in it
CHUNK_BYTES = 1 << 20
MOST_MEMBERS = 100_000
MOST_SETTINGS_BYTES = MAX_VOCABULARY_BYTES  # of a file that is no safetensors file
SPARE_BYTES = 64 << 20  # that a disk must have beyond what is unpacked
_WANTED = frozenset((*OF_FOLDER, *OF_TRANSFORMER))


def split(source: str) -> tuple[Path, str | None]:
    """`ARCHIVE::FOLDER` in its two parts; a path without a folder inside is itself, and None."""
    path, found, inner = source.partition(INSIDE)
    return (Path(path), inner.strip("/")) if found and not Path(source).exists() else (Path(source), None)


def is_archive(path: Path) -> bool:
    """Whether a path is to be read as an archive."""
    return path.is_file() and (path.suffix.lower() in SUFFIXES or zipfile.is_zipfile(path))


@contextmanager
def unpacked(archive: Path, inner: str | None, place: Path, progress: Progress | None = None) -> Iterator[Path]:
    """The model folder of an archive, unpacked below `place` for as long as the block lasts.

    inner: which folder, where there are several; None for the only one. Raises ModelError.
    """
    try:
        with zipfile.ZipFile(archive) as opened:
            members = _members(archive, opened)
            folder = _choose(archive, _model_folders(members), inner)
            wanted = [member for member in members if _belongs(member, folder)]
            with _staging(place, archive) as staging:
                name = folder.name or archive.name.removesuffix(archive.suffix)
                _unpack(archive, opened, wanted, folder, staging / name, progress)
                yield staging / name
    except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, EOFError) as error:
        raise ModelError(f"{archive} is no zip archive that can be read ({error}).") from error


@contextmanager
def _staging(place: Path, archive: Path) -> Iterator[Path]:
    """A folder that is gone afterwards, on the disk on which the model will be."""
    place.mkdir(parents=True, exist_ok=True)
    staging = place / f".{archive.name}.{os.getpid()}{SUFFIX}"
    shutil.rmtree(staging, ignore_errors=True)
    try:
        staging.mkdir()
        yield staging
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _members(archive: Path, opened: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """The files of an archive; one with names that lead elsewhere, or with links, is refused whole."""
    found = opened.infolist()
    if len(found) > MOST_MEMBERS:
        raise ModelError(f"{archive} holds {len(found):,} files; no model consists of so many.")
    for member in found:
        name = PurePosixPath(member.filename)
        if name.is_absolute() or ".." in name.parts or {"\\", ":"} & set(member.filename):
            raise ModelError(f"{archive}: {member.filename!r} leads out of the archive's own folder.")
        if stat.S_ISLNK(member.external_attr >> 16):
            raise ModelError(f"{archive}: {member.filename!r} is a link; unpack the archive and import the folder.")
    if len({member.filename for member in found}) < len(found):
        raise ModelError(f"{archive} holds several files of one name; unpack it and import the folder.")
    return [member for member in found if not member.is_dir()]


def _model_folders(members: Sequence[zipfile.ZipInfo]) -> list[PurePosixPath]:
    """The folders with settings and weights, less those that are modules of another one."""
    names = {PurePosixPath(member.filename) for member in members}
    weights = [name for name in names if name.suffix == ".safetensors"]
    listed = {name.parent for name in names if name.name == "modules.json"}
    found = {folder for folder in listed if any(name.is_relative_to(folder) for name in weights)}
    found |= {name.parent for name in weights if name.parent / "config.json" in names}
    return sorted(folder for folder in found if not any(other in folder.parents for other in found))


def _choose(archive: Path, folders: Sequence[PurePosixPath], inner: str | None) -> PurePosixPath:
    if inner is not None:
        if PurePosixPath(inner) in folders:
            return PurePosixPath(inner)
        raise ModelError(f"{archive} holds no model folder {inner!r}{_named(folders)}.")
    if not folders:
        raise ModelError(f"{archive} holds no model: no folder in it has a config.json and safetensors files.")
    if len(folders) > 1:
        raise ModelError(f"{archive} holds several models; say which: {archive.name}{INSIDE}FOLDER{_named(folders)}.")
    return folders[0]


def _named(folders: Sequence[PurePosixPath]) -> str:
    return f" (there are {', '.join(str(folder) for folder in folders)})" if folders else ""


def _belongs(member: zipfile.ZipInfo, folder: PurePosixPath) -> bool:
    """Whether a file is of the kind that models consist of, in the folder or in one of its modules'."""
    name = PurePosixPath(member.filename)
    near = name.parent == folder or name.parent.parent == folder
    return near and (name.suffix == ".safetensors" or name.name in _WANTED)


def _unpack(
    archive: Path,
    opened: zipfile.ZipFile,
    members: Sequence[zipfile.ZipInfo],
    folder: PurePosixPath,
    target: Path,
    progress: Progress | None,
) -> None:
    total = sum(member.file_size for member in members)
    target.mkdir()
    free = shutil.disk_usage(target).free
    if total + SPARE_BYTES > free:
        raise ModelError(f"{archive} holds {total / 1e9:,.1f} GB of a model; the disk has {free / 1e9:,.1f} GB left.")
    done = 0
    for member in members:
        name = PurePosixPath(member.filename)
        if member.flag_bits & 1:
            raise ModelError(f"{archive}: {member.filename!r} is encrypted; unpack the archive and import the folder.")
        if member.file_size > MOST_SETTINGS_BYTES and name.suffix != ".safetensors":
            raise ModelError(f"{archive}: {member.filename!r} has {member.file_size:,} bytes, too many for settings.")
        file = target / name.relative_to(folder)
        file.parent.mkdir(exist_ok=True)
        # zipfile gives at most as many bytes as the archive states, and compares their checksum at the end.
        with opened.open(member) as read, file.open("xb") as write:
            while chunk := read.read(CHUNK_BYTES):
                write.write(chunk)
                done += len(chunk)
                if progress is not None:
                    progress(done, total)
