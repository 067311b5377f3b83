"""Models that are made for a test: of a published layout, any size, and numbers from a seed."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path
from typing import Any

import numpy as np

from engine.backbone import Backbone
from tests.goldens.full_size import tensors_of
from tests.goldens.reading import HERE

BLOCK = 1 << 22  # different numbers; large tensors repeat them, each from another place on
SHARD_BYTES = 1 << 30


def write_qwen3(folder: Path, **sizes: int) -> int:
    """A Qwen3 checkpoint in BF16 shards, with the tokenizer of the small one; the bytes of its weights.

    sizes: keys of config.json.
    """
    shutil.copytree(HERE / "qwen3", folder, ignore=shutil.ignore_patterns("*.safetensors", "*.npz"))
    config = {**json.loads((folder / "config.json").read_text()), **sizes, "dtype": "bfloat16"}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode": "lasttoken"}))
    shapes: dict[str, tuple[int, ...]] = {}
    backbone = Backbone.open(folder)
    for parameter in backbone.family.parameters(backbone.config):
        shapes |= tensors_of(parameter, backbone.config)
    numbers = np.random.default_rng(11).standard_normal(BLOCK).astype(np.float32)
    shards: list[dict[str, tuple[int, ...]]] = [{}]
    for name, shape in shapes.items():
        if sum(map(_bytes, shards[-1].values())) >= SHARD_BYTES:
            shards.append({})
        shards[-1][name] = shape
    weight_map = {}
    for i, tensors in enumerate(shards):
        file = f"model-{i + 1:05}-of-{len(shards):05}.safetensors"
        _write_shard(folder / file, tensors, numbers)
        weight_map |= dict.fromkeys(tensors, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    return sum(map(_bytes, shapes.values()))


def _bytes(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape)) * 2


def _write_shard(
    file: Path, tensors: dict[str, tuple[int, ...]], numbers: np.ndarray[Any, np.dtype[np.float32]]
) -> None:
    header, position = {}, 0
    for name, shape in tensors.items():
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [position, position + _bytes(shape)]}
        position += _bytes(shape)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with file.open("wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for i, shape in enumerate(tensors.values()):
            centre, spread = (1.0, 0.1) if len(shape) == 1 else (0.0, shape[1] ** -0.5)
            block = _bf16(np.roll(numbers, 1013 * i) * np.float32(spread) + np.float32(centre)).tobytes()
            left = _bytes(shape)
            while left:
                left -= out.write(block[:left])


def _bf16(values: np.ndarray[Any, np.dtype[np.float32]]) -> np.ndarray[Any, np.dtype[np.uint16]]:
    """Cut to BF16; that these are not rounded makes them no less random."""
    return (values.view(np.uint32) >> 16).astype(np.uint16)


def make_unfit_for_int8(tensors: dict[str, Any]) -> None:
    """Change the weights of a BERT so that eight bits do not suit them.

    Two columns of the word table, which the norm behind it drops, are so large that a row's scale leaves nothing of the
    others.
    """
    words, scale = tensors["embeddings.word_embeddings.weight"], tensors["embeddings.LayerNorm.weight"]
    spread = words.std()
    words[:, 0], words[:, 1] = 1e3, -1e3
    scale *= 1e3 * np.sqrt(2 / len(scale)) / spread
    scale[:2] = 0
