"""The committed goldens, and the comparison of an encoder with what the reference classes made."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from engine import Encoder
from tests.goldens.texts import AWKWARD

HERE = Path(__file__).parent

# fp32: the same arithmetic in another order. States have no length of their own: relative to the largest of them.
VECTOR_BOUND, STATE_BOUND = 1e-5, 1e-4


@cache
def reference(name: str) -> dict[str, Any]:
    """What the reference made of AWKWARD: of a golden folder, or "minilm" for the real weights."""
    with np.load(HERE / "minilm.npz" if name == "minilm" else HERE / name / "reference.npz") as file:
        return dict(file)


def checkpoints() -> dict[str, str]:
    """The golden folders of encoders, by name: their `model_type`."""
    files = sorted(HERE.glob("*/reference.npz"))
    return {file.parent.name: json.loads((file.parent / "config.json").read_text())["model_type"] for file in files}


def assert_equals_reference(encoder: Encoder, wanted: dict[str, Any]) -> None:
    """Ids first, then vectors, then token states, then the vectors of every role that has a prompt."""
    names, starts = list(wanted["names"]), wanted["starts"]
    vectors, tokens = encoder.encode_all([AWKWARD[name] for name in names])
    for i, found in enumerate(tokens):
        np.testing.assert_array_equal(found.ids, wanted["ids"][starts[i] : starts[i + 1]], err_msg=names[i])
    assert np.abs(vectors - wanted["vectors"]).max() <= VECTOR_BOUND
    states = np.concatenate([tokens[names.index(name)].vectors for name in wanted["state_names"]])
    assert np.abs(states - wanted["states"]).max() <= STATE_BOUND * np.abs(wanted["states"]).max()
    texts = [AWKWARD[name] for name in wanted["role_names"]]
    for role in ("query", "document"):
        if role in wanted:
            assert np.abs(encoder.encode(texts, role=role) - wanted[role]).max() <= VECTOR_BOUND


def cosines(vectors: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Cosine of each pair of rows, whatever their lengths; 1 where both are zero."""
    product = (vectors * wanted).sum(axis=1)
    length: np.ndarray[Any, Any] = np.linalg.norm(vectors, axis=1) * np.linalg.norm(wanted, axis=1)
    both_zero = ~vectors.any(axis=1) & ~wanted.any(axis=1)
    return np.where(both_zero, 1.0, product / np.where(length > 0, length, 1))
