"""One encoder under eight threads: the bits that one thread gets, no growth in memory, and a clean end."""

import gc
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pytest

from engine import Encoder, EngineError, LongVector, TokenVectors
from engine.catalog import BUNDLED_MODELS, DEFAULT_MODEL
from tests.goldens.reading import HERE
from tests.goldens.texts import AWKWARD, ordinary

TINY, BUNDLED = HERE / "tiny_bert", BUNDLED_MODELS / DEFAULT_MODEL
THREADS, PORTION = 8, 12
TEXTS = [*[text for text in AWKWARD.values() if len(text) < 2000], *ordinary(60)]

# Past what has been reached after a third of the time. An encoder that kept the result of each call would grow by
# hundreds of megabytes; allocators keep a few for each thread.
GROWTH_BYTES = 24_000_000


@dataclass(frozen=True)
class Wanted:
    """What one thread makes of all texts, by one worker."""

    vectors: np.ndarray
    tokens: list[TokenVectors]
    long: list[LongVector]

    @classmethod
    def of(cls, encoder: Encoder) -> "Wanted":
        return cls(encoder.encode(TEXTS), encoder.encode_tokens(TEXTS), encoder.encode_long(TEXTS))

    def check(self, encoder: Encoder, random: np.random.Generator) -> None:
        """A call of one kind on some texts in some order, and every bit of its result."""
        chosen = random.choice(len(TEXTS), int(random.integers(1, PORTION)), replace=False)
        texts, kind = [TEXTS[i] for i in chosen], random.integers(4)
        if kind == 0:
            np.testing.assert_array_equal(encoder.encode(texts), self.vectors[chosen])
        elif kind == 1:
            for i, found in zip(chosen, encoder.encode_tokens(texts), strict=True):
                np.testing.assert_array_equal(found.vectors, self.tokens[i].vectors)
        elif kind == 2:
            vectors, tokens = encoder.encode_all(texts)
            np.testing.assert_array_equal(vectors, self.vectors[chosen])
            np.testing.assert_array_equal(tokens[-1].vectors, self.tokens[chosen[-1]].vectors)
        else:
            for i, window in zip(chosen, encoder.encode_long(texts), strict=True):
                np.testing.assert_array_equal(window.vector, self.long[i].vector)


def resident_bytes() -> int:
    gc.collect()
    return int(psutil.Process().memory_info().rss)


def hold_out(model: Path, precision: str, workers: int, seconds: float) -> None:
    """Eight threads for so long, then the encoder is closed under them."""
    with Encoder.load(model, precision=precision, workers=1) as single:
        wanted = Wanted.of(single)
    encoder, ending = Encoder.load(model, precision=precision, workers=workers), threading.Event()
    calls = [0] * THREADS

    def work(number: int) -> None:
        random = np.random.default_rng(number)
        try:
            while True:
                wanted.check(encoder, random)
                calls[number] += 1
        except EngineError as error:
            assert ending.is_set() and "was closed" in str(error)

    with ThreadPoolExecutor(THREADS) as pool:
        threads = [pool.submit(work, number) for number in range(THREADS)]
        try:
            begun = time.monotonic()
            while time.monotonic() < begun + seconds / 3 and not any(each.done() for each in threads):
                wanted.check(encoder, np.random.default_rng(100))
            early = resident_bytes()
            while time.monotonic() < begun + seconds and not any(each.done() for each in threads):
                wanted.check(encoder, np.random.default_rng(100))
            late = resident_bytes()
        finally:
            ending.set()
            encoder.close()
        for each in threads:
            each.result()
    assert min(calls) > 0
    assert late - early < GROWTH_BYTES, f"{(late - early) / 1e6:.1f} MB more after {sum(calls)} calls"


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_eight_threads_get_the_bits_of_one_for_a_moment(precision: str) -> None:
    hold_out(TINY, precision, workers=2, seconds=1.5)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "precision"), [(BUNDLED, "int8"), (TINY, "fp32")])
def test_eight_threads_get_the_bits_of_one_for_a_minute(model: Path, precision: str) -> None:
    hold_out(model, precision, workers=2, seconds=60)
