"""A model larger than the memory: with disk weights it is laid out and computes, and the vectors are those of memory.

The limit is a memory cgroup of 1 GB where this account may make one (root on Linux); without it the anonymous memory,
which is what cannot be given back, is measured all the same.
"""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.made_models import write_qwen3

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="measured by /proc")]

LIMIT_BYTES = 1 << 30
ANONYMOUS_LIMIT_BYTES = 400 << 20
SIZES = {
    "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 24, "num_attention_heads": 16,
    "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151_936, "max_position_embeddings": 512,
}  # fmt: skip
GROUPS = Path("/sys/fs/cgroup")

# Joins the cgroup, loads, encodes, and tells how much anonymous memory it had at most.
CHILD = """
import json, os, sys, threading
model, precision, place, out, group = sys.argv[1:]
if group:
    open(group, "w").write(str(os.getpid()))
peak, ended = 0, threading.Event()
def watch():
    global peak
    while not ended.wait(0.005):
        with open("/proc/self/status") as status:
            peak = max(peak, *(int(line.split()[1]) << 10 for line in status if line.startswith("RssAnon")))
watching = threading.Thread(target=watch, daemon=True)
watching.start()
from pathlib import Path
import numpy as np
from engine import Encoder
with Encoder.load(model, precision=precision, workers=1, disk_weights=Path(place) if place else None) as encoder:
    np.save(out, encoder.encode(["The cat sat on the mat.", "rain " * 40, ""]))
    print(json.dumps({"fingerprint": encoder.fingerprint}))
ended.set()
watching.join()
print(json.dumps({"anonymous": peak}))
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """3 GB of BF16 in shards, removed afterwards."""
    folder = tmp_path_factory.mktemp("large") / "made-qwen3"
    assert write_qwen3(folder, **SIZES) >= 3_000_000_000
    yield folder
    for file in folder.glob("*.safetensors"):
        file.unlink()


@contextmanager
def memory_limit() -> Iterator[str]:
    """The file that takes the process into a cgroup of LIMIT_BYTES; empty where none can be made."""
    for group, key in (
        (GROUPS / "memory" / "inkling-test", "memory.limit_in_bytes"),
        (GROUPS / "inkling-test", "memory.max"),
    ):
        try:
            group.mkdir(exist_ok=True)
        except OSError:
            continue
        try:
            if (group / key).is_file():
                (group / key).write_text(str(LIMIT_BYTES))
                yield str(group / "cgroup.procs")
                return
        finally:
            group.rmdir()
    warnings.warn("no memory cgroup can be made here: only the anonymous memory is measured", stacklevel=2)
    yield ""


def encode(model: Path, precision: str, place: Path | None, out: Path, group: str = "") -> dict[str, Any]:
    """Run CHILD; what it said of itself. It must not have been killed for its memory."""
    command = [sys.executable, "-c", CHILD, str(model), precision, str(place or ""), str(out), group]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"exit {done.returncode}: {done.stderr[-2000:]}"
    found: dict[str, Any] = {}
    for line in done.stdout.splitlines():
        found |= json.loads(line)
    return found


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_a_model_of_3_gb_computes_in_1_gb(model: Path, tmp_path: Path, precision: str) -> None:
    place, files = tmp_path / "disk", [tmp_path / f"{i}.npy" for i in range(3)]
    in_memory = encode(model, precision, None, files[0])
    with memory_limit() as group:
        made = encode(model, precision, place, files[1], group)  # lays the weights out
        found = encode(model, precision, place, files[2], group)  # maps them
    (file,) = place.glob("*.weights")
    size = file.stat().st_size
    file.unlink()
    peaks = [run["anonymous"] / 1e6 for run in (in_memory, made, found)]
    print(f"{precision}: file {size / 1e9:.2f} GB; anonymous MB in memory, made, mapped: {peaks}")
    assert size > LIMIT_BYTES and in_memory["anonymous"] > 0.9 * size
    for run, vectors in ((made, files[1]), (found, files[2])):
        assert run["anonymous"] <= ANONYMOUS_LIMIT_BYTES and run["fingerprint"] == in_memory["fingerprint"]
        np.testing.assert_array_equal(np.load(vectors), np.load(files[0]))
    assert np.isfinite(np.load(files[0])).all() and not np.allclose(*np.load(files[0])[:2])
