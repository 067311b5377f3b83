"""Model folders with random damage: an EngineError or an encoder that works, and never anything else, nor a long wait.

Two kinds of damage: bytes (flipped, cut, doubled, left out) of every file that loading reads, and values of its JSON
(a leaf becomes another one, of any kind and size). Seeds are fixed, so that what fails fails again.
"""

import copy
import json
import random
import shutil
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import CrossEncoder, Encoder, EngineError
from engine.reranker_folder import is_reranker
from tests.goldens.reading import HERE

BASES = (
    "tiny_bert", "distilbert", "xlm_roberta", "mpnet", "modernbert", "nomic", "qwen3", "gemma3", "static_shared",
    "late_native", "late_pylate", "late_stanford", "reranker_bert", "reranker_modernbert",
)  # fmt: skip
TEXTS = ["The lease ends on 30 June.", "", "서울 🦑 ﬁn"]
LIMIT_S = 2.0

# What a value of a JSON file may become. A number is also moved by one, doubled and negated.
ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 7, 2**31 - 1, 2**31, 2**32, 2**63, 2**64, 10**30, 0.5, -0.5, 1e-300, 1e308,
    float("nan"), float("inf"), "", "x", "..", "/", "a" * 3000, "\ud800", "\0", [], {}, [[]], {"": None}, [None] * 3,
)  # fmt: skip


def files(folder: Path) -> list[Path]:
    """All that loading reads."""
    return sorted(file for file in folder.rglob("*") if file.is_file())


def damage_bytes(pick: random.Random, data: bytes) -> bytes:
    """One to three changes; half of them near the start, where headers are."""
    for _ in range(pick.randint(1, 3)):
        reach = len(data) if pick.random() < 0.5 else min(len(data), 2000)
        place = pick.randrange(max(1, reach))
        kind = pick.randrange(5)
        if kind == 0:
            data = data[:place] + bytes([pick.randrange(256)]) + data[place + 1 :]
        elif kind == 1:
            data = data[:place]
        elif kind == 2:
            data = data[:place] + data[place + pick.randint(1, 40) :]
        elif kind == 3:
            data = data[:place] + data[place : place + pick.randint(1, 40)] * 2 + data[place:]
        else:
            data = data[:place] + bytes([data[place] ^ (1 << pick.randrange(8))] if data else b"") + data[place + 1 :]
    return data


def damage_value(pick: random.Random, content: Any) -> Any:
    """Another value in one random place of a JSON value: mostly a leaf, sometimes a whole branch."""
    if isinstance(content, dict | list) and content and pick.random() > 0.05:
        keys = list(content) if isinstance(content, dict) else list(range(len(content)))
        key = pick.choice(keys)
        if pick.random() < 0.03:
            del content[key]
        else:
            content[key] = damage_value(pick, content[key])
        return content
    if isinstance(content, int | float) and not isinstance(content, bool) and pick.random() < 0.5:
        return pick.choice((content + 1, content - 1, content * 2, -content, content * 1000))
    return copy.deepcopy(pick.choice(ODD))


def damage_json(pick: random.Random, data: bytes) -> bytes:
    """A JSON file, or the header of a safetensors file, with one value changed."""
    (length,) = struct.unpack("<Q", data[:8])
    start = 8 if data[8:9] == b"{" and length < len(data) else 0
    end = 8 + length if start else len(data)
    content = json.loads(data[start:end])
    for _ in range(pick.choice((1, 1, 1, 2, 3))):
        content = damage_value(pick, content)
    text = json.dumps(content).encode()
    return (struct.pack("<Q", len(text)) if start else b"") + text + (data[end:] if start else b"")


def is_json(file: Path) -> bool:
    return file.suffix in (".json", ".safetensors", ".metadata")


def load_and_use(folder: Path, precision: str) -> None:
    """Compute something with the model; raises EngineError where it is refused."""
    if is_reranker(folder):
        with CrossEncoder.load(folder, precision=precision, workers=1) as reranker:
            assert reranker.score(TEXTS[0], TEXTS).shape == (len(TEXTS),)
        return
    with Encoder.load(folder, precision=precision, workers=1) as encoder:
        for tokens in encoder.encode_tokens(TEXTS, role="document"):
            assert tokens.vectors.dtype == np.float32 and len(tokens.ids) == len(tokens.vectors)


def try_damage(base: str, place: Path, seeds: range) -> int:
    """How many of so many damaged folders were refused."""
    folder, refused = place / base, 0
    shutil.copytree(HERE / base, folder, ignore=shutil.ignore_patterns("*.npz"))
    originals = {file: file.read_bytes() for file in files(folder)}
    for seed in seeds:
        pick = random.Random(f"{base} {seed}")
        by_value = pick.random() < 0.6
        file = pick.choice([file for file in originals if is_json(file) or not by_value])
        change: Callable[[random.Random, bytes], bytes] = damage_json if by_value else damage_bytes
        file.write_bytes(change(pick, originals[file]))
        start = time.process_time()
        try:
            load_and_use(folder, pick.choice(("fp32", "int8")))
        except EngineError as error:
            assert str(error).endswith(".") and "\n" not in str(error)[:-1], f"{base} {seed}: {error}"
            refused += 1
        except BaseException as error:
            raise AssertionError(f"{base} {seed} ({file.name}): {type(error).__name__}: {error}") from error
        assert time.process_time() - start < LIMIT_S, f"{base} {seed} ({file.name}) took too long"
        file.write_bytes(originals[file])
    load_and_use(folder, "fp32")
    return refused


@pytest.mark.parametrize("base", BASES)
def test_random_damage_is_refused_or_harmless(tmp_path: Path, base: str) -> None:
    assert try_damage(base, tmp_path, range(24)) > 5


@pytest.mark.slow
@pytest.mark.parametrize("base", BASES)
def test_much_random_damage_is_refused_or_harmless(tmp_path: Path, base: str) -> None:
    assert try_damage(base, tmp_path, range(24, 2024)) > 400
