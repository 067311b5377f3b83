"""Our own engine as the benchmark drives it: with token ids that were read before."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from engine.catalog import BUNDLED_MODELS
from engine.encoder import Encoder
from tests.benchmarks.peers import Inkling
from tests.benchmarks.workloads import Work

TEXTS = ["A short text.", "Another one, which is somewhat longer than the first."]


def test_the_benchmark_times_what_encode_gives() -> None:
    folder = bundled()
    with Encoder.load(folder, precision="int8", workers=1) as encoder:
        wanted, ids = encoder.encode(TEXTS), encoder.token_ids(TEXTS)
    once = Inkling("minilm", folder, 1, "int8").prepare(Work("two", ids), 0)
    assert np.array_equal(once(), wanted)


def bundled() -> Path:
    return next(path.parent for path in sorted(BUNDLED_MODELS.glob("*/model.safetensors")))
