"""From the start of a process to its first vector, and the memory it then takes; for each engine, alternating.

`python -m tests.benchmarks.first_vector [--peers REAL_MODEL]`: the bundled model against a process that imports no more
than numpy and tokenizers; with --peers other runtimes too, on their graphs of all-MiniLM-L6-v2. Whole processes, files
in the page cache, one thread. Linux.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from tests.benchmarks import graphs, shapes
from tests.benchmarks.engine import STORE

BARE = "import numpy, tokenizers"
QUESTION = "how do wings behave in a slipstream?"
INKLING = f"""
from engine import Encoder
encoder = Encoder.load({{model!r}}, precision={{precision!r}}, workers=1)
vector = encoder.encode([{QUESTION!r}])[0]
"""
READ = f"""
import numpy as np
from tokenizers import Tokenizer
found = Tokenizer.from_file({{folder!r}} + "/tokenizer.json").encode({QUESTION!r})
size = sum(found.attention_mask)
ids = np.array([found.ids[:size]], np.int64)
feed = {{{{"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}}}}
"""
PEERS = {
    "onnxruntime fused": READ + """
import onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession({folder!r} + "/fused.onnx", options)
vector = session.run(None, feed)[0][0]
""",
    "onnxruntime int8": READ + """
import onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession({folder!r} + "/int8.onnx", options)
vector = session.run(None, feed)[0][0]
""",
    "openvino": READ + """
import openvino
settings = {{"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32"}}
compiled = openvino.Core().compile_model({folder!r} + "/plain.onnx", "CPU", settings)
vector = compiled(feed)[0][0]
""",
    "sentence-transformers": f"""
import torch
from sentence_transformers import SentenceTransformer
torch.set_num_threads(1)
vector = SentenceTransformer({{folder!r}}, device="cpu", local_files_only=True).encode([{QUESTION!r}])[0]
""",
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=Path, metavar="REAL_MODEL")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    programs = {"bare import": BARE, "inkling, bundled": INKLING.format(model="all-MiniLM-L6-v2", precision="auto")}
    if options.peers is not None:
        folder = str(shapes.folder("minilm", options.peers, STORE))
        for kind in graphs.MAKERS:
            graphs.make("minilm", Path(folder), kind)
        for precision in ("int8", "fp32"):
            programs[f"inkling {precision}, published weights"] = INKLING.format(model=folder, precision=precision)
        programs |= {name: program.format(folder=folder) for name, program in PEERS.items()}
    with tempfile.TemporaryDirectory(prefix="inkling-bytecode-") as bytecode:
        _measure(programs, options.rounds, bytecode)


def _measure(programs: dict[str, str], rounds: int, bytecode: str) -> None:
    """bytecode: a folder for it, in case the environment forbids writing it where it belongs."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in programs}
    for number in range(rounds + 1):
        for name in programs if number % 2 == 0 else reversed(programs):
            seen = _run(programs[name], environment)
            if number > 0:  # the first round fills the caches
                found[name].append(seen)
    bare = np.median([wall for wall, _, _ in found["bare import"]])
    bare_cpu = np.median([cpu for _, cpu, _ in found["bare import"]])
    print("| process | median s | min s | above bare | processor s above bare | peak MB |\n|---|---|---|---|---|---|")
    for name, runs in found.items():
        wall, cpu, peak = np.array(runs).T
        print(
            f"| {name} | {np.median(wall):.3f} | {wall.min():.3f} | {np.median(wall) - bare:.3f} "
            f"| {np.median(cpu) - bare_cpu:.3f} | {np.median(peak):.0f} |"
        )


def _run(program: str, environment: dict[str, str]) -> tuple[float, float, float]:
    """Seconds by the clock, processor seconds, and peak resident megabytes of a whole process."""
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-W", "ignore", "-c", program], env=environment, stderr=subprocess.PIPE)
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    took = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    if process.returncode != 0:
        raise SystemExit(said.decode())
    return took, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


if __name__ == "__main__":
    main()
