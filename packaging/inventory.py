"""What is inside the packaged program and under which licence: written into it, and checked.

Every module and every shared library is traced to what it came from: a Python package (by the list of files that its
installation left), Python itself, the building system, or Inkling. A library that nobody has looked at, and a licence
that would bind the package as a whole (GPL, AGPL), ends the build.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path

import licences

HERE = Path(__file__).resolve().parent
TEXTS = HERE / "licence_texts"
APACHE = HERE.parent / "LICENSE"

# Shared libraries that came from elsewhere than the package which carries them: name, what it is, licence.
LIBRARIES = [
    (r"libscipy_openblas|libopenblas", "OpenBLAS", "BSD-3-Clause"),
    (r"libgfortran", "GCC Fortran library", "GPL-3.0-or-later WITH GCC-exception-3.1"),
    (r"libgcc_s|libstdc\+\+|libgomp", "GCC run-time library", "GPL-3.0-or-later WITH GCC-exception-3.1"),
    (r"libquadmath", "GCC quad-precision library", "LGPL-2.1-or-later"),
    (r"libQt6|Qt6|Qt[A-Z]\w+$", "Qt 6", "LGPL-3.0-only"),
    (r"libicu(data|i18n|uc)|icu", "ICU", "Unicode-3.0"),
    (r"libpyside6|pyside6|libshiboken6|shiboken6", "Qt for Python", "LGPL-3.0-only"),
    (r"(lib)?pdfium", "PDFium", "BSD-3-Clause AND Apache-2.0"),
    (r"vec0", "sqlite-vec", "MIT OR Apache-2.0"),
    (r"(lib)?inkling_kernels", "Inkling", "Apache-2.0"),
    (r"libxcb|libxkbcommon", "X.Org and xkbcommon client libraries", "MIT AND X11"),
    (r"libsqlite3", "SQLite", "public domain"),
    (r"libffi", "libffi", "MIT"),
    (r"libcrypto(\.so\.3|[-.]3|\.3)", "OpenSSL 3", "Apache-2.0"),
    (r"libbz2", "bzip2", "bzip2-1.0.6"),
    (r"liblzma", "XZ Utils (liblzma)", "0BSD"),
    (r"libzstd", "Zstandard", "BSD-3-Clause (one of two that may be chosen)"),
    (r"libuuid", "libuuid", "BSD-3-Clause"),
    (r"libmpdec", "libmpdec", "BSD-2-Clause"),
    (r"libpython3|python3\d*\.dll|Python$", "Python", "PSF-2.0"),
    (r"vcruntime|msvcp|ucrtbase|api-ms-win|concrt", "Microsoft C run-time", "Microsoft's terms for redistribution"),
]
# Where a package brings no text of its licence: the text that applies.
TEXTS_OF = {
    "pyside6-essentials": (TEXTS / "LGPL-3.0.txt", TEXTS / "GPL-3.0.txt"),
    "shiboken6": (TEXTS / "LGPL-3.0.txt", TEXTS / "GPL-3.0.txt"),
    "tokenizers": (APACHE,),
    "sqlite-vec": (APACHE,),
}
FORBIDDEN_MODULES = re.compile(r"^(readline|_?gdbm|dbm\.gnu|ssl|_ssl|huggingface_hub|httpx2?)(\.|$)")
BOOTLOADER = "PyInstaller"
LIBRARY_NAME = re.compile(r"\.(so(\.[\d.]+)?|dll|dylib|pyd)$")


@dataclass
class Component:
    """One thing inside the package."""

    name: str
    licence: str
    version: str = ""
    modules: int = 0
    files: int = 0
    texts: list[Path] = field(default_factory=list)


def write(contents: Path, staging: Path, folder: Path) -> list[str]:
    """Write INVENTORY.md and the texts of all licences into `folder`; returns what may not be in a package."""
    listed = json.loads(contents.read_text(encoding="utf-8"))
    rows = [(name, source, kind) for name, source, kind in [*listed["modules"], *listed["files"]] if kind != "SYMLINK"]
    owners = Owners(staging, contents.parent)
    components: dict[str, Component] = {}
    libraries: list[tuple[str, str, str]] = []
    problems = [f"module {name}" for name, _, kind in listed["modules"] if FORBIDDEN_MODULES.match(name)]
    for name, source, kind in rows:
        owner = owners.owner(source)
        component = components.setdefault(owner.name, owner)
        if kind == "PYMODULE":
            component.modules += 1
            continue
        component.files += 1
        if LIBRARY_NAME.search(name) or kind in ("BINARY", "EXTENSION"):
            what, licence = library(name, kind, component)
            libraries.append((name.replace(os.sep, "/"), what, licence))
    bootloader = owners.of_distribution(distribution("pyinstaller"))
    components.setdefault(bootloader.name, bootloader).files += 2
    problems += [f"{name}: {licence}" for name, _, licence in libraries if is_forbidden(licence)]
    problems += [f"{each.name}: {each.licence}" for each in components.values() if is_forbidden(each.licence)]
    problems += [f"{each.name}: no text of its licence" for each in components.values() if not each.texts]
    copy_texts(components.values(), folder)
    (folder / "INVENTORY.md").write_text(table(components, libraries), encoding="utf-8", newline="\n")
    return problems


def is_forbidden(licence: str) -> bool:
    """Whether a licence is unknown, or would bind everything it is shipped with."""
    return bool(licences.forbidden([licences.Package("", licence, "", "")]))


def library(name: str, kind: str, component: Component) -> tuple[str, str]:
    """(what it is, licence) of a shared library; UNKNOWN for one that nobody has looked at."""
    file = Path(name.replace("\\", "/"))
    for pattern, what, licence in LIBRARIES:
        if re.match(pattern, file.name, re.IGNORECASE):
            return what, licence
    # A module's own compiled part is under the module's licence; what was put beside it to serve it may not be.
    beside = re.search(r"\.libs/|\.dylibs/", file.as_posix()) is not None
    if kind == "EXTENSION" or (not beside and component.licence and component.name != "the building system"):
        return component.name, component.licence
    return "?", "UNKNOWN"


class Owners:
    """Traces source files to what they came from."""

    def __init__(self, staging: Path, work: Path) -> None:
        self._staging, self._work = staging.resolve(), work.resolve()
        self._base = {Path(sys.base_prefix).resolve(), Path(os.__file__).resolve().parent}
        self._by_file: dict[str, Distribution] = {}
        for found in distributions():
            for file in found.files or ():
                self._by_file[os.path.realpath(str(found.locate_file(file)))] = found
        self._components: dict[str, Component] = {}

    def owner(self, source: str) -> Component:
        """The component that a source file belongs to."""
        path = Path(os.path.realpath(source))
        if path.is_relative_to(self._staging) or path.is_relative_to(HERE):
            return self._component("Inkling", "Apache-2.0", "", [APACHE])
        if found := self._by_file.get(str(path)):
            return self.of_distribution(found)
        # What PyInstaller wrote while building is Python's own modules in an archive.
        if path.is_relative_to(self._work) or any(path.is_relative_to(base) for base in self._base):
            return self._component("Python", "PSF-2.0", sys.version.split()[0], list(python_licence()))
        return self._of_system(path)

    def of_distribution(self, found: Distribution) -> Component:
        """An installed Python package."""
        name = str(found.metadata["Name"])
        licence = licences.licence_of(found)
        if name.lower() in ("pyinstaller", "pyinstaller-hooks-contrib"):
            name, licence = BOOTLOADER, "GPL-2.0-or-later WITH Bootloader-exception"
        texts = [Path(str(found.locate_file(file))) for file in found.files or () if is_licence_text(file.as_posix())]
        key = name.lower().replace("_", "-")
        return self._component(name, licence, found.version, texts or list(TEXTS_OF.get(key, ())))

    def _of_system(self, path: Path) -> Component:
        for pattern, what, licence in LIBRARIES:
            if re.match(pattern, path.name, re.IGNORECASE):
                return self._component(what, licence, "", list(system_licence(path)))
        return self._component("the building system", f"UNKNOWN ({path})", "", [])

    def _component(self, name: str, licence: str, version: str, texts: list[Path]) -> Component:
        known = self._components.setdefault(name, Component(name, licence, version))
        known.texts += [text for text in texts if text not in known.texts]
        return known


def is_licence_text(path: str) -> bool:
    """Whether a file of an installed package states its terms."""
    name = path.rpartition("/")[2].upper()
    return ".dist-info/" in path and (
        "/licenses/" in path or name.startswith(("LICENSE", "LICENCE", "COPYING", "NOTICE", "AUTHORS"))
    )


def python_licence() -> Iterator[Path]:
    """The text of Python's own licence, wherever this Python keeps it."""
    for place in (Path(os.__file__).with_name("LICENSE.txt"), Path(sys.base_prefix, "LICENSE.txt"),
                  Path(f"/usr/share/doc/python{sys.version_info[0]}.{sys.version_info[1]}/copyright")):  # fmt: skip
        if place.exists():
            yield place
            return


def system_licence(path: Path) -> Iterator[Path]:
    """The terms that Debian states for the package which a library came from."""
    for name in (path, Path("/", *path.parts[2:]) if path.parts[1:2] == ("usr",) else path):
        done = subprocess.run(["dpkg-query", "-S", str(name)], capture_output=True, text=True) if has_dpkg() else None
        if done is not None and done.returncode == 0:
            text = Path("/usr/share/doc", done.stdout.partition(":")[0], "copyright")
            if text.exists():
                yield text
                return


def has_dpkg() -> bool:
    return shutil.which("dpkg-query") is not None


def copy_texts(components: Iterable[Component], folder: Path) -> None:
    """Copy the text of each licence to folder/COMPONENT/."""
    folder.mkdir(parents=True, exist_ok=True)
    for each in components:
        place = folder / re.sub(r"[^\w.-]+", "-", each.name)
        place.mkdir(exist_ok=True)
        for text in each.texts:
            below = text.as_posix().partition(".dist-info/")[2].removeprefix("licenses/").replace("/", "-")
            name = f"{text.parent.name}-copyright.txt" if text.name == "copyright" else below or text.name
            shutil.copyfile(text, place / name)


def table(components: dict[str, Component], libraries: list[tuple[str, str, str]]) -> str:
    """The inventory in Markdown."""
    lines = [
        "# What is inside\n",
        "Made while building, from the list of everything that went in. The texts lie in folders of these names.\n",
        "| component | version | licence | modules | other files | what it carries inside |",
        "|---|---|---|---|---|---|",
    ]
    for each in sorted(components.values(), key=lambda component: component.name.lower()):
        inside = licences.INSIDE.get(each.name, "")
        lines.append(f"| {each.name} | {each.version} | {each.licence} | {each.modules} | {each.files} | {inside} |")
    grouped: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, what, licence in libraries:
        grouped[what, licence].append(name)
    lines += ["", f"## Shared libraries ({len(libraries)})", "", "| what | licence | files |", "|---|---|---|"]
    for (what, licence), names in sorted(grouped.items()):
        shown = ", ".join(f"`{Path(name).name}`" for name in sorted(names))
        lines.append(f"| {what} | {licence} | {shown} |")
    return "\n".join([*lines, "", *NOTES])


NOTES = (
    "Qt and Qt for Python are used under the LGPL: their libraries are files of their own in `_internal/PySide6` and",
    "`_internal/shiboken6`, and may be replaced by another build of the same version.",
    "",
    "The two executables begin with PyInstaller's bootloader. It is under the GPL with an exception that allows",
    "programs of any licence to be shipped with it; the text is in `PyInstaller`.",
    "",
    "The model in `_internal/resources/models` has its own LICENSE beside it.",
    "",
)
