"""A real model folder that computes in no time: one random layer, with the bundled model's own tokenizer and limits."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

import resources

HIDDEN, INNER, SEED = 64, 128, 7


def write_tiny_model(folder: Path) -> Path:
    """Write the model into `folder` and return it. The same bytes each time."""
    source = resources.path("models") / "all-MiniLM-L6-v2"
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns("model.safetensors"))
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    config |= {"hidden_size": HIDDEN, "intermediate_size": INNER, "num_hidden_layers": 1, "num_attention_heads": 2}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    pooling = folder / "1_Pooling" / "config.json"
    modes = json.loads(pooling.read_text(encoding="utf-8"))
    pooling.write_text(json.dumps({**modes, "word_embedding_dimension": HIDDEN}), encoding="utf-8")
    save_file(_weights(config), folder / "model.safetensors")
    return folder


def _weights(config: dict[str, int]) -> dict[str, np.ndarray]:
    random = np.random.default_rng(SEED)
    layer = "encoder.layer.0"
    shapes = {
        "embeddings.word_embeddings": (config["vocab_size"], HIDDEN),
        "embeddings.position_embeddings": (config["max_position_embeddings"], HIDDEN),
        "embeddings.token_type_embeddings": (config["type_vocab_size"], HIDDEN),
        f"{layer}.attention.self.query": (HIDDEN, HIDDEN),
        f"{layer}.attention.self.key": (HIDDEN, HIDDEN),
        f"{layer}.attention.self.value": (HIDDEN, HIDDEN),
        f"{layer}.attention.output.dense": (HIDDEN, HIDDEN),
        f"{layer}.intermediate.dense": (INNER, HIDDEN),
        f"{layer}.output.dense": (HIDDEN, INNER),
    }
    weights: dict[str, np.ndarray] = {}
    for name, shape in shapes.items():
        weights[f"{name}.weight"] = random.normal(0, 0.3, shape).astype(np.float32)
        if name.startswith(layer):
            weights[f"{name}.bias"] = random.normal(0, 0.1, shape[0]).astype(np.float32)
    for name in ("embeddings", f"{layer}.attention.output", f"{layer}.output"):
        weights[f"{name}.LayerNorm.weight"] = np.ones(HIDDEN, np.float32)
        weights[f"{name}.LayerNorm.bias"] = np.zeros(HIDDEN, np.float32)
    return weights
