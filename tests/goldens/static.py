"""Goldens of static models: random tables in model2vec's layout, and what its own library makes of AWKWARD.

For development only: needs model2vec. See make.py for what reference.npz holds.
"""

from __future__ import annotations

import unicodedata
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from model2vec import StaticModel
from tokenizers import Tokenizer

from tests.goldens import small_tokenizers
from tests.goldens.texts import AWKWARD, COMPOSED_BY_US

HERE = Path(__file__).parent
STATES_OF = ("empty", "one emoji", "query", "sentence")


def make(name: str, kind: str, **options: Any) -> None:
    """A table of 24 numbers a token; `kind` of tokenizer; options of StaticModel."""
    folder = HERE / name
    with TemporaryDirectory() as place:
        getattr(small_tokenizers, kind)(Path(place), 512)
        tokenizer = Tokenizer.from_file(f"{place}/tokenizer.json")
    count, random = tokenizer.get_vocab_size(), np.random.default_rng(len(name))
    rows = 40 if options.pop("shared", False) else count
    if rows != count:
        options["token_mapping"] = random.integers(0, rows, count)
        options["weights"] = random.uniform(0.1, 2.0, count).astype(np.float32)
    table = random.standard_normal((rows, 24)).astype(np.float32)
    config = {"model_type": "model2vec", "architectures": ["StaticModel"], "hidden_dim": 24, "seq_length": 1000000}
    StaticModel(table, tokenizer, config=config, **options).save_pretrained(folder)
    (folder / "README.md").unlink(missing_ok=True)
    np.savez_compressed(folder / "reference.npz", **run(folder))


def run(folder: Path) -> dict[str, Any]:
    model = StaticModel.from_pretrained(folder, force_download=False)
    texts = {n: unicodedata.normalize("NFC", t) if n in COMPOSED_BY_US else t for n, t in AWKWARD.items()}
    longest = model.max_length * model.median_token_length
    ids = [np.array(found, np.int32) for found in model.tokenize([text[:longest] for text in texts.values()])]
    states = [model.encode_as_sequence(texts[n], max_length=model.max_length) for n in STATES_OF]
    return {
        "names": np.array(list(texts)),
        "ids": np.concatenate(ids),
        "starts": np.cumsum([0, *map(len, ids)]).astype(np.int64),
        "vectors": model.encode(list(texts.values())).astype(np.float32),
        "state_names": np.array(STATES_OF),
        "states": np.concatenate(states).astype(np.float32),
        "role_names": np.array([], dtype=str),
    }


MAKERS = {
    "static": partial(make, "static", "wordpiece", normalize=True),
    "static_shared": partial(make, "static_shared", "qwen", shared=True, normalize=False, max_length=64),
}
