"""The models that are timed: real weights out of a folder, or seeded random ones in the shape of a known model."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.backbone import Backbone
from engine.models.classifier import CLASSIFIERS
from tests.benchmarks.workloads import LONGEST
from tests.goldens import full_size

VOCABULARY = {"vocab_size": 30522, "max_position_embeddings": 512}
BERT = {**VOCABULARY, "type_vocab_size": 2, "pad_token_id": 0}
SMALL = {"hidden_size": 384, "num_attention_heads": 12, "intermediate_size": 1536}
ROPE = {
    "global_rope_theta": 160000.0, "local_rope_theta": 10000.0, "pad_token_id": 0, "local_attention": 128,
    "global_attn_every_n_layers": 3,
}  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """family: the `model_type`; config: of the made model; limit: max_tokens as published; like: what it looks like.

    pooling: "mean" or "cls", as the model that it looks like is published.
    """

    family: str
    like: str
    limit: int
    config: dict[str, Any] | None = None
    is_reranker: bool = False
    pooling: str = "mean"


SHAPES = {
    "minilm": Shape("bert", "all-MiniLM-L6-v2, its real weights", 256),
    "bge-small": Shape(
        "bert", "bge-small, 12 x 384", 512, {**BERT, **SMALL, "num_hidden_layers": 12}, pooling="cls",
    ),
    "base": Shape("bert", "BERT base, 12 x 768, mean pooling", 512, {**BERT, **full_size.ENCODER}),
    "bge-base": Shape("bert", "bge-base, 12 x 768", 512, {**BERT, **full_size.ENCODER}, pooling="cls"),
    "modernbert": Shape(
        "modernbert", "granite-embedding-small-r2 (RoPE, GeGLU, windows of 128), 12 x 384", 512,
        {**VOCABULARY, **SMALL, **ROPE, "num_hidden_layers": 12}, pooling="cls",
    ),
    "reranker": Shape(
        "bert", "ms-marco-MiniLM-L6", 512, {**BERT, **SMALL, "num_hidden_layers": 6}, is_reranker=True,
    ),
}  # fmt: skip


def folder(name: str, real: Path, store: Path) -> Path:
    """The model's folder, made at the first call; `real` is all-MiniLM-L6-v2 as published.

    Every folder takes texts of 512 tokens, and has the tokenizer of the real one.
    """
    place = store / "models" / name
    if place.is_dir():
        return place
    shape, made = SHAPES[name], place.with_suffix(".part")
    shutil.rmtree(made, ignore_errors=True)
    if shape.config is None:
        shutil.copytree(real, made, symlinks=False)
    elif shape.is_reranker:
        _write_reranker(made, shape)
    else:
        full_size.write(made, shape.family, shape.config, shape.pooling)
    for file in ("tokenizer.json", "tokenizer_config.json", "vocab.txt"):
        shutil.copyfile(real / file, made / file)
    (made / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": LONGEST}))
    made.rename(place)
    return place


def _write_reranker(made: Path, shape: Shape) -> None:
    made.mkdir(parents=True)
    config = {
        "model_type": shape.family, "architectures": ["BertForSequenceClassification"], "id2label": {"0": "LABEL_0"},
        "label2id": {"LABEL_0": 0}, "sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity",
        "hidden_act": "gelu", **(shape.config or {}),
    }  # fmt: skip
    (made / "config.json").write_text(json.dumps(config))
    backbone = Backbone.open(made)
    head = CLASSIFIERS[shape.family](backbone.config).parameters(backbone.config["hidden_size"])
    full_size.save_weights(made, backbone, [*backbone.family.parameters(backbone.config), *head], prefix="bert.")
