"""Some libraries have one home: what reaches the disk index, compiled code or the network is imported in one place."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import OWN_PACKAGES, ROOT

# Library -> the only places (module or package) that may import it.
HOMES: dict[str, tuple[str, ...]] = {
    "apsw": ("indexer.store",),
    "sqlite_vec": ("indexer.store",),
    "sqlite3": (),
    "ctypes": ("engine.kernels",),
    "huggingface_hub": ("engine.hub",),
    "socket": ("engine.hub",),
    "ssl": ("engine.hub",),
    # The one listening socket, of `inkling serve`: a server and no client.
    "http": ("engine.hub", "app.serving.listener"),
    "http.client": ("engine.hub",),
    "urllib.request": ("engine.hub",),
    "requests": ("engine.hub",),
    "httpx": ("engine.hub",),
    "httpx2": ("engine.hub",),
    "hf_xet": (),
    "urllib3": (),
    # Who may ask for a model to be fetched: one command. Nothing else leads to the network.
    "engine.hub": ("engine.pulling",),
    "engine.pulling": ("app.cli.model_sources",),
    "aiohttp": ("engine.hub",),
    "websockets": ("engine.hub",),
    "ftplib": (),
    "smtplib": (),
    "poplib": (),
    "imaplib": (),
    "telnetlib": (),
    "xmlrpc": (),
    "socketserver": (),
    "PySide6.QtNetwork": (),
    "PySide6.QtWebSockets": (),
    "PySide6.QtWebEngineCore": (),
    "torch": (),
    "transformers": (),
    "onnxruntime": (),
}
EMPTY_NAMES = ("utils", "util", "common", "helpers", "misc")


def modules() -> Iterator[tuple[str, Path]]:
    for package in OWN_PACKAGES:
        for source in sorted((ROOT / package).rglob("*.py")):
            yield ".".join(source.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"), source


def imported(source: Path) -> set[str]:
    """Every name a file imports, wherever the statement stands; `from a import b` counts as `a` and `a.b`."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def within(name: str, home: str) -> bool:
    return name == home or name.startswith(home + ".")


@pytest.mark.parametrize("library", HOMES)
def test_a_library_is_imported_only_at_its_home(library: str) -> None:
    strays = [
        module
        for module, source in modules()
        if any(within(name, library) for name in imported(source))
        and not any(within(module, home) for home in HOMES[library])
    ]
    assert not strays, f"{library} may be imported only in {HOMES[library] or 'no module'}"


def test_no_package_imports_from_the_tests() -> None:
    for module, source in modules():
        assert not any(within(name, "tests") for name in imported(source)), module


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert not [module for module, _ in modules() if module.rpartition(".")[2] in EMPTY_NAMES]


def test_packaging_and_tests_do_not_shadow_libraries() -> None:
    assert not (ROOT / "packaging" / "__init__.py").exists(), "it would hide the library `packaging`"
    for folder in (ROOT / "tests").rglob("*"):
        holds_tests = folder.is_dir() and any(folder.glob("test_*.py"))
        assert not holds_tests or (folder / "__init__.py").exists(), f"{folder} needs an __init__.py"
