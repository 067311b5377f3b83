"""Write packaging/THIRD_PARTY.md: everything that is installed with Inkling, and under which licence.

    python packaging/licences.py

Names and licences are read from the metadata of the installed packages, beginning with the dependencies in
pyproject.toml and following theirs. A licence that Inkling may not carry along ends the script with an error.
"""

import re
import sys
import tomllib
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "packaging" / "THIRD_PARTY.md"

# What the metadata says, or fails to say, about packages whose licence was read in their own files.
READ_BY_HAND = {
    "PySide6_Essentials": "LGPL-3.0-only (one of three that may be chosen)",
    "shiboken6": "LGPL-3.0-only (one of three that may be chosen)",
    "sqlite-vec": "MIT OR Apache-2.0",
}
INSIDE = {
    "PySide6_Essentials": "Qt 6 (LGPL-3.0), loaded as separate shared libraries that may be exchanged",
    "apsw": "SQLite (public domain)",
    "lxml": "libxml2, libxslt, zlib (MIT, MIT, zlib)",
    "numpy": "OpenBLAS (BSD-3-Clause), libgfortran (GPL-3.0 with the runtime library exception)",
    "pypdfium2": "PDFium (BSD-3-Clause, Apache-2.0) and what it builds on",
    "selectolax": "lexbor (Apache-2.0)",
}
# A homepage that the metadata leaves out.
HOMEPAGES = {"sqlite-vec": "https://github.com/asg017/sqlite-vec"}
FORBIDDEN = re.compile(r"\bA?GPL|General Public License", re.IGNORECASE)
ALLOWED_DESPITE = re.compile(r"LGPL|Lesser|exception", re.IGNORECASE)

HEAD = """# What Inkling builds on

Made by `python packaging/licences.py` from the metadata of the installed packages. Inkling itself is Apache-2.0.

| package | licence | what it carries inside | homepage |
|---|---|---|---|
"""
TAIL = """
Besides these packages:

- The bundled model all-MiniLM-L6-v2 (sentence-transformers) is Apache-2.0; its text lies beside the model.
- The native kernels are Inkling's own. They are compiled with the `ziglang` package (MIT), which is needed only while
  installing, and link to nothing but the system's C library.
- Qt is used through PySide6 under the LGPL: its libraries lie beside the program as files of their own, so that another
  build of them can be put in their place.
"""


@dataclass(frozen=True)
class Package:
    """One row of the table."""

    name: str
    licence: str
    inside: str
    homepage: str


def installed_closure(names: list[str]) -> list[Package]:
    """The named packages and everything they need on this system, by name."""
    found: dict[str, Package] = {}
    waiting = list(names)
    while waiting:
        try:
            package = distribution(waiting.pop())
        except PackageNotFoundError as error:
            raise SystemExit(f"{error.name} is not installed, so its licence cannot be read") from error
        name = package.metadata["Name"]
        if name in found:
            continue
        found[name] = Package(name, licence_of(package), INSIDE.get(name, ""), homepage_of(package))
        needed = [Requirement(line) for line in package.requires or ()]
        waiting += [each.name for each in needed if each.marker is None or each.marker.evaluate({"extra": ""})]
    return sorted(found.values(), key=lambda package: package.name.lower())


def licence_of(package: Distribution) -> str:
    """The licence in as few words as the metadata allows."""
    metadata = package.metadata
    if metadata["Name"] in READ_BY_HAND:
        return READ_BY_HAND[metadata["Name"]]
    classifiers = [line for line in metadata.get_all("Classifier") or () if line.startswith("License ::")]
    named = [line.rpartition(" :: ")[2] for line in classifiers]
    short = metadata.get("License") or ""
    return metadata.get("License-Expression") or ", ".join(named) or (short if 0 < len(short) < 60 else "") or "UNKNOWN"


def homepage_of(package: Distribution) -> str:
    """The address that the package gives, else an empty text."""
    if package.metadata["Name"] in HOMEPAGES:
        return HOMEPAGES[package.metadata["Name"]]
    urls = dict(line.split(", ", 1) for line in package.metadata.get_all("Project-URL") or ())
    by_word = {label.lower(): url for label, url in urls.items()}
    words = ("homepage", "home", "repository", "source", "source code", "github", "documentation")
    return package.metadata.get("Home-page") or next((by_word[word] for word in words if word in by_word), "")


def core_dependencies() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [Requirement(line).name for line in project["dependencies"]]


def forbidden(packages: list[Package]) -> list[str]:
    """Packages that would put Inkling as a whole under a licence it does not have, or say nothing about theirs."""
    return [
        f"{package.name}: {package.licence}"
        for package in packages
        if package.licence == "UNKNOWN"
        or (FORBIDDEN.search(package.licence) and not ALLOWED_DESPITE.search(package.licence))
    ]


def main() -> int:
    packages = installed_closure(core_dependencies())
    rows = "".join(f"| {each.name} | {each.licence} | {each.inside} | {each.homepage} |\n" for each in packages)
    TARGET.write_text(HEAD + rows + TAIL, encoding="utf-8")
    print(f"{len(packages)} packages listed in {TARGET.relative_to(ROOT)}")
    bad = forbidden(packages)
    for line in bad:
        print(f"not allowed: {line}", file=sys.stderr)
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
