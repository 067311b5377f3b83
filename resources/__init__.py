"""Files that come with the program: icons, translations, models, sample documents. Knows no other package."""

import sys
from pathlib import Path


class ResourceError(FileNotFoundError):
    """A file that should have come with the program is missing."""


def folder() -> Path:
    """The folder that holds them: beside this file, or inside the frozen program."""
    frozen = getattr(sys, "_MEIPASS", None)
    return Path(frozen, "resources") if frozen else Path(__file__).resolve().parent


def default_model() -> str:
    """The name of the bundled model that a new index uses; a package built with another one says so in a file."""
    named = folder() / "models" / "default.txt"
    return named.read_text(encoding="utf-8").strip() if named.exists() else "all-MiniLM-L6-v2"


def path(*parts: str) -> Path:
    """The absolute path of a file or folder, e.g. `path("icons", "inkling.svg")`. Raises ResourceError."""
    found = folder().joinpath(*parts)
    if not found.exists():
        raise ResourceError(f"{found} should have come with the program; install it again.")
    return found
