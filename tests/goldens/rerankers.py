"""Goldens of cross-encoders: random classifiers as published, and what the reference says of pairs.

For development only. The reference: sentence-transformers' CrossEncoder, float32, eager attention, one pair at a time.
Each folder's pairs.npz holds `queries` and `passages` (names of AWKWARD), `scores`, and for each pair in order its
`ids` and `types`, those of pair i from starts[i].
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from safetensors.torch import load_file
from sentence_transformers import CrossEncoder

from tests.goldens import small_tokenizers
from tests.goldens.checkpoint import shake, write_weights
from tests.goldens.small_tokenizers import write_json
from tests.goldens.texts import AWKWARD

HERE = Path(__file__).parent
QUERIES = ("query", "empty", "far too long")
PASSAGES = (
    "empty", "sentence", "medium", "far too long", "chinese", "persian with zwnj", "emoji joined", "code",
    "one character", "accents composed", "thai", "500 repeats", "question mark", "special tokens written out",
)  # fmt: skip
IDENTITY = "torch.nn.modules.linear.Identity"


@dataclass(frozen=True)
class Reranker:
    """model: prefix of the classes in transformers; settings: added to config.json."""

    model: str
    sizes: dict[str, Any]
    tokenizer: Callable[[Path, int], int]
    seed: int
    max_tokens: int
    settings: dict[str, Any]


SMALL = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
RERANKERS = {
    "reranker_bert": Reranker(
        "Bert", {**SMALL, "max_position_embeddings": 64}, small_tokenizers.wordpiece, 21, 64,
        {"sentence_transformers": {"activation_fn": IDENTITY, "version": "4.0.1"}},
    ),
    "reranker_distilbert": Reranker(
        "DistilBert", {"dim": 32, "n_layers": 1, "n_heads": 2, "hidden_dim": 64, "max_position_embeddings": 60},
        small_tokenizers.wordpiece, 22, 60, {"sbert_ce_default_activation_function": IDENTITY},
    ),
    "reranker_mpnet": Reranker("MPNet", {**SMALL, "max_position_embeddings": 62}, small_tokenizers.mpnet, 23, 60, {}),
    "reranker_roberta": Reranker(
        "Roberta", {**SMALL, "max_position_embeddings": 62, "type_vocab_size": 1}, small_tokenizers.roberta, 24, 60, {}
    ),
    "reranker_xlm_roberta": Reranker(
        "XLMRoberta", {**SMALL, "max_position_embeddings": 83, "type_vocab_size": 1},
        partial(small_tokenizers.xlm_roberta, normalization="identity"), 25, 81, {},
    ),
    "reranker_modernbert": Reranker(
        "ModernBert", {**SMALL, "num_hidden_layers": 3, "max_position_embeddings": 96, "local_attention": 16,
                       "pad_token_id": 0, "classifier_pooling": "mean"},
        small_tokenizers.modernbert, 26, 96, {},
    ),
}  # fmt: skip


def make(name: str, reranker: Reranker) -> None:
    """Write the checkpoint's folder and its pairs.npz."""
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    vocab = reranker.tokenizer(folder, reranker.max_tokens)
    config = getattr(transformers, f"{reranker.model}Config")(vocab_size=vocab, num_labels=1, **reranker.sizes)
    model = getattr(transformers, f"{reranker.model}ForSequenceClassification")(config)
    shake(model, reranker.seed)
    model.save_pretrained(folder)
    write_weights(folder, load_file(folder / "model.safetensors"), 1)
    published = json.loads((folder / "config.json").read_text("utf-8"))
    write_json(folder / "config.json", {**published, **reranker.settings})
    np.savez_compressed(folder / "pairs.npz", **run(folder))


def run(folder: Path) -> dict[str, Any]:
    model = CrossEncoder(
        str(folder), device="cpu", local_files_only=True,
        model_kwargs={"attn_implementation": "eager", "dtype": torch.float32},
    )  # fmt: skip
    found: dict[str, list[Any]] = {key: [] for key in ("queries", "passages", "scores", "ids", "types")}
    for query in QUERIES:
        for passage in PASSAGES:
            pair = (AWKWARD[query], AWKWARD[passage])
            features = model.preprocess([pair])
            ids = features["input_ids"][0].numpy().astype(np.int32)
            types = features.get("token_type_ids", torch.zeros(1, len(ids)))[0].numpy().astype(np.int32)
            for key, value in zip(found, (query, passage, model.predict([pair])[0], ids, types), strict=True):
                found[key].append(value)
    return {
        "queries": np.array(found["queries"]),
        "passages": np.array(found["passages"]),
        "scores": np.array(found["scores"], np.float32),
        "ids": np.concatenate(found["ids"]),
        "types": np.concatenate(found["types"]),
        "starts": np.cumsum([0, *map(len, found["ids"])]).astype(np.int64),
    }


MAKERS = {name: partial(make, name, reranker) for name, reranker in RERANKERS.items()}
