"""One model of full size for every family, made on the spot: seeded random weights that NumPy alone can make again.

`python -m tests.goldens.full_size [FAMILY ...]` writes full_size/FAMILY.npz: what the reference classes make of it (for
development only: needs torch and transformers, and 8 GB of memory for the largest). The slow suite makes the same
weights, and compares. The files hold `vectors`: one row for each of `texts()`, pooled and of unit length.

The numbers come from NumPy's old generator, the one whose stream is promised never to change.
"""

from __future__ import annotations

import json
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from engine.backbone import Backbone
from engine.models.parameters import Parameter
from engine.models.qwen3 import heads_of

HERE = Path(__file__).parent / "full_size"
LENGTHS = (1, 9, 65, 300)

ENCODER = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
ROPE = {"rope_type": "default"}
# config.json of each family's best-known model, as far as the computation needs it.
CONFIGS: dict[str, dict[str, Any]] = {
    "bert": {**ENCODER, "vocab_size": 30522, "max_position_embeddings": 512, "type_vocab_size": 2},
    "distilbert": {
        "dim": 768, "n_layers": 6, "n_heads": 12, "hidden_dim": 3072, "vocab_size": 30522,
        "max_position_embeddings": 512,
    },
    "gemma3_text": {
        "hidden_size": 768, "num_hidden_layers": 24, "num_attention_heads": 3, "num_key_value_heads": 1,
        "head_dim": 256, "intermediate_size": 1152, "vocab_size": 262144, "max_position_embeddings": 2048,
        "query_pre_attn_scalar": 256, "sliding_window": 512, "use_bidirectional_attention": True,
        "layer_types": (["sliding_attention"] * 5 + ["full_attention"]) * 4,
        "rope_parameters": {
            "full_attention": {**ROPE, "rope_theta": 1e6}, "sliding_attention": {**ROPE, "rope_theta": 1e4},
        },
    },
    "modernbert": {
        "hidden_size": 768, "num_hidden_layers": 22, "num_attention_heads": 12, "intermediate_size": 1152,
        "vocab_size": 50368, "max_position_embeddings": 8192, "local_attention": 128,
        "global_attn_every_n_layers": 3, "global_rope_theta": 160000.0, "local_rope_theta": 10000.0,
    },
    "mpnet": {**ENCODER, "vocab_size": 30527, "max_position_embeddings": 514, "relative_attention_num_buckets": 32},
    "nomic_bert": {
        **ENCODER, "vocab_size": 30528, "max_position_embeddings": 8192, "type_vocab_size": 2,
        "rope_parameters": {**ROPE, "rope_theta": 1000.0},
    },
    "qwen3": {
        "hidden_size": 1024, "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8,
        "head_dim": 128, "intermediate_size": 3072, "vocab_size": 151936, "max_position_embeddings": 32768,
        "rope_theta": 1000000.0,
    },
    "roberta": {
        **ENCODER, "vocab_size": 50265, "max_position_embeddings": 514, "type_vocab_size": 1, "pad_token_id": 1,
        "layer_norm_eps": 1e-5,
    },
    "xlm-roberta": {
        **ENCODER, "vocab_size": 250002, "max_position_embeddings": 514, "type_vocab_size": 1, "pad_token_id": 1,
        "layer_norm_eps": 1e-5,
    },
}  # fmt: skip


def texts(vocab_size: int) -> list[NDArray[np.int32]]:
    """Token ids out of the whole vocabulary but its first, which may be special: one array for each of LENGTHS."""
    random = np.random.RandomState(7)
    return [random.randint(10, vocab_size, length).astype(np.int32) for length in LENGTHS]


def write(folder: Path, family: str, config: dict[str, Any] | None = None, pooling: str | None = None) -> None:
    """A published folder of the family: config.json, modules.json, 1_Pooling and float16 weights; no tokenizer.

    config: of another size than that in CONFIGS. pooling: another than the family's usual one.
    """
    module, pooling = "sentence_transformers.models", pooling or ("lasttoken" if family == "qwen3" else "mean")
    parts = (("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize"))
    listing = [{"idx": i, "name": str(i), "path": path, "type": f"{module}.{t}"} for i, (path, t) in enumerate(parts)]
    (folder / "1_Pooling").mkdir(parents=True)
    for name, content in (
        ("config.json", {"model_type": family, **(config or CONFIGS[family])}),
        ("modules.json", listing),
        ("1_Pooling/config.json", {"pooling_mode": pooling}),
    ):
        (folder / name).write_text(json.dumps(content))
    backbone = Backbone.open(folder)
    save_weights(folder, backbone, backbone.family.parameters(backbone.config))


def save_weights(folder: Path, backbone: Backbone, parameters: list[Parameter], prefix: str = "") -> None:
    """model.safetensors with random values for these parameters; prefix: of the tensors of the family itself."""
    tensors = {}
    for parameter in parameters:
        for name, shape in tensors_of(parameter, backbone.config):
            published = name[1:] if name.startswith("/") else prefix + name
            tensors[published] = _values(name, shape, backbone.model_type)
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")


def tensors_of(parameter: Parameter, config: dict[str, Any]) -> list[tuple[str, tuple[int, ...]]]:
    """The published tensors of one parameter: queries, keys and values may differ in width, other parts are equal."""
    count, shape = len(parameter.sources), parameter.shape
    rows = [shape[0] // count] * count
    if count == 3:
        heads = heads_of(config)
        rows = [heads.query * heads.width, *[heads.key_value * heads.width] * 2]
    return [(name, (n, *shape[1:])) for name, n in zip(parameter.sources, rows, strict=True)]


def _values(name: str, shape: tuple[int, ...], family: str) -> NDArray[np.float16]:
    """Normal numbers by the tensor's name; as wide as keeps activations of a trained model's size."""
    random = np.random.RandomState(zlib.crc32(name.encode()))
    wide = len(shape) == 2 and "embed" not in name
    spread = 0.7 * shape[1] ** -0.5 if wide else 0.5 if len(shape) == 2 else 0.1
    values = random.standard_normal(shape).astype(np.float32) * np.float32(spread)
    if len(shape) == 1 and name.endswith("weight") and family != "gemma3_text":
        values += 1
    return values.astype(np.float16)


def reference(folder: Path, family: str) -> NDArray[np.float32]:
    """What the reference class makes of `texts`, float32, eager attention, one at a time."""
    import torch
    from transformers import AutoModel
    from transformers.utils import logging

    logging.set_verbosity_error()
    torch.set_num_threads(1)
    model, report = AutoModel.from_pretrained(
        folder, attn_implementation="eager", dtype=torch.float32, output_loading_info=True
    )
    missing = [key for key in report["missing_keys"] if "pooler" not in key]
    assert not missing and not report["unexpected_keys"], report
    rows = []
    for ids in texts(CONFIGS[family]["vocab_size"]):
        with torch.no_grad():
            states = model.eval()(input_ids=torch.from_numpy(ids.astype(np.int64))[None]).last_hidden_state[0]
        pooled = states[-1] if family == "qwen3" else states.mean(dim=0)
        rows.append(torch.nn.functional.normalize(pooled, dim=0).numpy())
    return np.stack(rows)


def main() -> None:
    HERE.mkdir(exist_ok=True)
    for family in sys.argv[1:] or CONFIGS:
        with tempfile.TemporaryDirectory() as place:
            write(Path(place) / family, family)
            np.savez_compressed(HERE / f"{family}.npz", vectors=reference(Path(place) / family, family))
        print(family, flush=True)


if __name__ == "__main__":
    main()
