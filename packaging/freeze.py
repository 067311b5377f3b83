"""What goes into the packaged program and what stays out. Used by inkling.spec; knows nothing of PyInstaller itself."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

OWN_PACKAGES = ("app", "engine", "indexer", "ui", "resources")
KERNELS = ("libinkling_kernels.so", "libinkling_kernels.dylib", "inkling_kernels.dll")

# Never used, and each of them draws more in. readline and gdbm are under the GPL and would bind the whole package.
EXCLUDED_MODULES = [
    *("readline", "gdbm", "_gdbm", "dbm.gnu", "rlcompleter", "pdb", "bdb", "cmd", "code", "codeop"),
    *("tkinter", "_tkinter", "turtle", "idlelib", "curses", "_curses", "_curses_panel"),
    *("unittest", "doctest", "test", "lib2to3", "distutils", "setuptools", "pkg_resources", "pip", "ensurepip"),
    *("pydoc", "pydoc_data", "pytest", "_pytest", "hypothesis", "mypy", "ziglang", "hatchling", "packaging"),
    *("numpy.f2py", "numpy.testing", "numpy.distutils", "numpy.typing.mypy_plugin", "numpy._pyinstaller"),
    *("lxml.isoschematron", "lxml.objectify", "lxml.html.clean", "pypdfium2._cli", "PIL", "yaml", "tqdm", "click"),
    # Clients of the network: the packaged program has none, not even what would encrypt a connection.
    *("huggingface_hub", "hf_xet", "httpx", "httpx2", "httpcore", "httpcore2", "h11", "anyio", "truststore", "idna"),
    *("requests", "urllib3", "fsspec", "ssl", "_ssl", "http.client", "http.server", "urllib.request"),
    *("ftplib", "imaplib", "nntplib", "poplib", "smtplib", "telnetlib", "xmlrpc", "socketserver", "asyncio"),
    *("PySide6.QtNetwork", "PySide6.QtQml", "PySide6.QtQuick", "PySide6.QtSql", "PySide6.QtTest", "PySide6.QtOpenGL"),
]

# Qt loads these by name while running; what is not in this list is not in the package.
QT_PLUGINS = {
    "platforms": ("qxcb", "qwayland", "qoffscreen", "qwindows", "qcocoa"),
    "platformthemes": ("qxdgdesktopportal",),
    "platforminputcontexts": ("composeplatforminputcontextplugin", "ibusplatforminputcontextplugin"),
    "iconengines": ("qsvgicon",),
    "imageformats": ("qsvg", "qico", "qjpeg", "qgif"),
    "styles": ("qmodernwindowsstyle", "qmacstyle"),
    "wayland-shell-integration": ("xdg-shell",),
    "wayland-decoration-client": ("bradient", "adwaita"),
    "xcbglintegrations": (),  # the window draws without OpenGL
}
QT_LIBRARIES = ("Core", "Gui", "Widgets", "Svg", "DBus", "XcbQpa", "WaylandClient")
PYSIDE_MODULES = ("QtCore", "QtGui", "QtWidgets", "QtSvg")

# On Linux a library of the building system is taken along only where a plain desktop may lack it. The others (C and C++
# libraries, OpenGL, X11, fonts, GLib, D-Bus) must be the system's own, because they speak to its other parts.
SYSTEM_LIBRARIES_TAKEN = re.compile(
    r"libxcb-(cursor|icccm|image|keysyms|randr|render-util|render|shape|shm|sync|util|xfixes|xkb)\.so"
    r"|libxkbcommon(-x11)?\.so|libsqlite3\.so"
    r"|libffi\.so|libcrypto\.so|libbz2\.so|liblzma\.so|libzstd\.so|libuuid\.so|libmpdec\.so"
)
SYSTEM_FOLDERS = ("/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/")

Entry = tuple[str, str, str]  # name inside the package, source path, kind: PyInstaller's row of a table of contents


def wanted(entries: Iterable[Entry]) -> list[Entry]:
    """The rows that stay in the package, sorted, so that two builds agree."""
    return sorted(entry for entry in entries if is_wanted(*entry))


def is_wanted(name: str, source: str, kind: str) -> bool:
    """Whether one file is taken along."""
    path = name.replace("\\", "/")
    if path.startswith(("PySide6/", "shiboken6/")):
        return is_wanted_of_qt(path)
    if re.search(r"numpy/.*_tests\.|\.dist-info/(?!METADATA)", path):
        return False
    if Path(path).name.startswith(("libQt6", "Qt6")) and "/" not in path:
        return is_wanted_library(Path(path).name)  # a link beside the executables to a library that is kept below
    if sys.platform == "linux" and kind in ("BINARY", "EXTENSION") and source.startswith(SYSTEM_FOLDERS):
        return is_own_python(source) or SYSTEM_LIBRARIES_TAKEN.match(Path(source).name) is not None
    return not re.search(r"\.(pyi|pxd|pyx|h|hpp|c|cpp|a|lib|pdb)$|/tests?/|/include/", path)


def is_own_python(source: str) -> bool:
    """Whether a file of the building system belongs to its Python: the library, or a module of its own."""
    return "/python3" in source or Path(source).name.startswith("libpython3")


def is_wanted_of_qt(path: str) -> bool:
    """The same for what PySide6 brings along."""
    if match := re.search(r"/plugins/([\w-]+)/(?:lib)?([\w-]+?)\.(?:so|dll|dylib)$", path):
        return match[2] in QT_PLUGINS.get(match[1], ())
    if re.search(r"/(translations|qml|resources|metatypes|typesystems|glue|scripts|libexec)/", path):
        return False
    name = Path(path).name
    if match := re.search(r"/(Qt\w+)\.framework/", path):
        return is_wanted_library(match[1])
    if name.startswith(("libQt6", "Qt6")):
        return is_wanted_library(name)
    if match := re.match(r"PySide6/(Qt\w+)\.", path):
        return match[1] in PYSIDE_MODULES
    return not re.search(r"opengl32sw|d3dcompiler|libpyside6qml|pyside6qml|\.pyi$|\.webp$", path)


def is_wanted_library(name: str) -> bool:
    """Whether a library of Qt itself (libQt6Core.so.6, Qt6Core.dll, QtCore) is used."""
    match = re.match(r"(?:lib)?Qt6?(\w+?)(?:\.|$)", name)
    return match is not None and match[1] in QT_LIBRARIES


def own_data(staging: Path) -> list[tuple[str, str]]:
    """(file, folder inside the package) of everything beside the modules in the unpacked wheel."""
    rows = []
    for package in OWN_PACKAGES:
        for file in sorted((staging / package).rglob("*")):
            source_code = file.suffix in (".py", ".c", ".h") or file.name in KERNELS
            if file.is_file() and not source_code:
                rows.append((str(file), file.relative_to(staging).parent.as_posix()))
    for folder in sorted(staging.glob("*.dist-info")):
        rows.append((str(folder / "METADATA"), folder.name))
    return rows


def sqlite_vec_library(folder: Path) -> list[tuple[str, str]]:
    """The extension that the store loads by its path, in the installed package `folder`."""
    return [(str(file), "sqlite_vec") for file in sorted(folder.glob("vec0.*"))]


def own_kernels(staging: Path) -> list[tuple[str, str]]:
    """The compiled kernels; a package without them would be many times slower, so there must be some."""
    found = [file for file in (staging / "engine" / "kernels").iterdir() if file.name in KERNELS]
    if len(found) != 1:
        raise SystemExit(f"the wheel holds {len(found)} libraries of kernels, not one; see not_built.txt in it")
    return [(str(found[0]), "engine/kernels")]
