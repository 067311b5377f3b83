"""What a process that only embeds a question costs, measured in one of its own."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

PROGRAM = """
import json, sys
from engine import Encoder
with Encoder.load("all-MiniLM-L6-v2", workers=1) as encoder:
    encoder.encode(["how do wings behave in a slipstream?"], role="query")
    import psutil
    print(json.dumps({"isa": encoder.isa, "bytes": psutil.Process().memory_info().rss, "modules": list(sys.modules)}))
"""
MOST_BYTES = 120 << 20
# Loaded by other parts of the program, or by the reference that the compiled kernels replace; each takes its time.
NOT_NEEDED = {
    "huggingface_hub", "safetensors", "requests", "httpx", "PySide6", "apsw", "sqlite3", "watchdog", "pypdfium2",
    "lxml", "selectolax", "charset_normalizer", "pathspec", "platformdirs", "tqdm", "yaml", "asyncio",
    "multiprocessing", "ssl", "numpy.polynomial", "numpy.fft", "numpy.ma", "numpy.testing", "app", "indexer",
    "ui", "filelock",
}  # fmt: skip


@pytest.fixture(scope="module")
def seen() -> dict[str, object]:
    done = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True)
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_a_process_with_the_bundled_model_stays_within_its_memory(seen: dict[str, object]) -> None:
    assert isinstance(seen["bytes"], int)
    print(f"{seen['bytes'] / 2**20:.0f} MiB with the {seen['isa']} kernels")
    assert seen["bytes"] <= MOST_BYTES


def test_the_first_vector_needs_no_library_of_other_parts(seen: dict[str, object]) -> None:
    assert isinstance(seen["modules"], list)
    assert "tokenizers" in seen["modules"]
    assert not NOT_NEEDED & {*seen["modules"]}
