"""Counts the instructions of one forward pass, which no other process on the machine can change.

`python -m tests.benchmarks.instructions` compares with instructions.json and fails where a count has grown by more than
3 %; `--update` writes the counts there. The pass is one text of 128 tokens through random weights in the shape of
all-MiniLM-L6-v2 with two of its six equal layers, one worker, the AVX2 kernels (callgrind has no AVX-512). Needs
valgrind with its headers.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from engine.backbone import Backbone
from engine.batch import Batch
from engine.computation import Computation
from engine.kernels import build
from engine.layers.norm import unit_length
from engine.layers.pooling import pool
from engine.plan import Graph, Plan
from engine.weights.opening import open_parameters
from engine.weights.safetensors import Weights

HERE = Path(__file__).parent
RECORD = HERE / "instructions.json"
HEADERS = Path("/usr/include/valgrind")
GROWTH = 0.03
PRECISIONS = ("fp32", "int8")  # int8-full has no AVX2 form
TOKENS = 128
CONFIG = {
    "model_type": "bert", "hidden_size": 384, "num_hidden_layers": 2, "num_attention_heads": 12,
    "intermediate_size": 1536, "vocab_size": 200, "max_position_embeddings": 128, "type_vocab_size": 2,
}  # fmt: skip


def available() -> bool:
    """Whether callgrind is there."""
    return shutil.which("valgrind") is not None and HEADERS.is_dir()


def recorded() -> dict[str, int]:
    """Instructions by precision, as they were last written down."""
    counts: dict[str, int] = json.loads(RECORD.read_text())
    return counts


def grown(counts: dict[str, int], before: dict[str, int]) -> list[str]:
    """The precisions whose count is past its record by more than GROWTH."""
    return [name for name, found in counts.items() if found > before[name] * (1 + GROWTH)]


def count(precisions: Iterable[str]) -> dict[str, int]:
    """Instructions of the pass by precision. Everything else, such as laying out weights, happens uncounted."""
    from tests.goldens.full_size import save_weights

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "config.json").write_text(json.dumps(CONFIG))
        backbone = Backbone.open(folder)
        save_weights(folder, backbone, backbone.family.parameters(backbone.config))
        target = build.target_of(None)
        source = [f"-I{HEADERS}", "-shared", "-fPIC", str(HERE / "counting.c"), "-o", f"{place}/counting.so"]
        build.run([*build.compiler(target, own=True), *source])
        found = {}
        for precision in precisions:
            computation(folder, precision)  # leaves the weights as the kernels want them
            found[precision] = _callgrind(folder, precision)
    return found


def _callgrind(folder: Path, precision: str) -> int:
    tool = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={folder}/out"]
    program = [sys.executable, "-m", "tests.benchmarks.instructions", "--pass", str(folder), precision]
    environment = {**os.environ, "INKLING_ISA": "avx2", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([*tool, *program], env=environment, cwd=HERE.parents[1], capture_output=True, text=True)
    match = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or match is None:
        raise RuntimeError(f"callgrind did not count: {done.stderr[-2000:]}")
    return int(match.group(1))


def computation(folder: Path, precision: str) -> Computation:
    """The plan with its weights, which are kept in the folder in the kernels' layout."""
    backbone = Backbone.open(folder)
    parameters = backbone.family.parameters(backbone.config)
    graph = Graph({parameter.name: parameter.shape for parameter in parameters})
    tokens = backbone.family.forward(graph, backbone.config)
    plan = Plan.of(graph, tokens, unit_length(graph, pool(graph, tokens, "mean")))
    weights = Weights.open(folder)
    loaded = open_parameters(parameters, weights, precision, ("",), name="counted", disk_weights=folder / "weights")
    return Computation("counted", plan, loaded, 1)


def run_pass(folder: Path, precision: str) -> None:
    """What is counted: one run of the plan, with the few thousand instructions of Python around it."""
    counting = ctypes.CDLL(str(folder / "counting.so"))
    batch, ready = Batch.of([np.arange(TOKENS, dtype=np.int32)]), computation(folder, precision)
    counting.start_counting()
    ready.run(batch, want_tokens=False)
    counting.stop_counting()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--pass", dest="only", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        run_pass(Path(options.only[0]), options.only[1])
        return
    if not available():
        raise SystemExit("valgrind is needed to count instructions.")
    counts = count(PRECISIONS)
    before = {**counts, **recorded()} if RECORD.exists() else counts
    for name, found in counts.items():
        print(f"{name}: {found / 1e6:.2f} million instructions, {found / before[name] - 1:+.2%} against the record")
    if options.update:
        RECORD.write_text(json.dumps(counts, indent=2) + "\n")
    elif more := grown(counts, before):
        raise SystemExit(f"More instructions than recorded: {', '.join(more)}.")


if __name__ == "__main__":
    main()
