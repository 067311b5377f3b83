"""MPNet: post-norm encoder with absolute positions and a relative attention bias shared by all layers.

Paper: Song et al. 2020, https://arxiv.org/abs/2004.09297. Reference followed:
https://github.com/huggingface/transformers/blob/v4.46.0/src/transformers/models/mpnet/modeling_mpnet.py
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.layers.attention import RelativeBias, attention
from engine.layers.embedding import embedding
from engine.layers.heads import Heads
from engine.layers.linear import linear
from engine.layers.norm import layer_norm
from engine.models import parameters as p
from engine.models.checks import check_whole
from engine.models.parameters import Parameter
from engine.plan import Graph, Value

POSITION_OFFSET = 2  # the padding id, 1 in every MPNet, plus 1
MAX_DISTANCE = 128  # keys farther away than this share the last bucket


def relative_buckets(longest: int, count: int) -> NDArray[np.int32]:
    """(2 * longest - 1,) int32: the bucket of every distance key - query, from -(longest - 1) up.

    Half of the buckets for each direction; half of those for single distances, the rest spread logarithmically up to
    MAX_DISTANCE. The logarithm is taken in float32, whose rounding decides at the borders as in the reference.
    """
    distance = np.arange(-(longest - 1), longest)
    half = count // 2
    exact = half // 2
    size = np.abs(distance)
    ratio = np.log(np.maximum(size, 1).astype(np.float32) / np.float32(exact), dtype=np.float32)
    spread = exact + (ratio / np.float32(math.log(MAX_DISTANCE / exact)) * np.float32(half - exact)).astype(np.int64)
    bucket = np.where(size < exact, size, np.minimum(spread, half - 1))
    return (bucket + np.where(distance > 0, half, 0)).astype(np.int32)


class MPNet:
    """all-mpnet-base-v2 and every other encoder with `model_type` "mpnet"."""

    prefixes = ("", "mpnet.")
    unsupported: dict[str, tuple[Any, ...]] = {}

    @staticmethod
    def canonical(config: dict[str, Any]) -> dict[str, Any]:
        defaults = {"layer_norm_eps": 1e-12, "hidden_act": "gelu", "relative_attention_num_buckets": 32}
        found = defaults | config | {"position_offset": POSITION_OFFSET}
        # Each direction has half of the buckets, and half of those are for single distances.
        check_whole(found, "relative_attention_num_buckets", least=4)
        return found

    @staticmethod
    def parameters(config: dict[str, Any]) -> list[Parameter]:
        """Every parameter of the forward pass, in the order of use; the pooler is not one of them."""
        hidden, inner, heads = config["hidden_size"], config["intermediate_size"], config["num_attention_heads"]
        buckets = config["relative_attention_num_buckets"]
        found = [
            p.table("embeddings.word", config["vocab_size"], hidden, "embeddings.word_embeddings"),
            p.table("embeddings.position", config["max_position_embeddings"], hidden, "embeddings.position_embeddings"),
            *p.norm("embeddings.norm", hidden, "embeddings.LayerNorm"),
            Parameter("bias", "small", (buckets, heads), ("encoder.relative_attention_bias.weight",)),
        ]
        for i in range(config["num_hidden_layers"]):
            name, source = f"layers.{i}", f"encoder.layer.{i}"
            found += p.linear(f"{name}.qkv", 3 * hidden, hidden, *(f"{source}.attention.attn.{part}" for part in "qkv"))
            found += p.linear(f"{name}.out", hidden, hidden, f"{source}.attention.attn.o")
            found += p.norm(f"{name}.attention_norm", hidden, f"{source}.attention.LayerNorm")
            found += p.linear(f"{name}.up", inner, hidden, f"{source}.intermediate.dense")
            found += p.linear(f"{name}.down", hidden, inner, f"{source}.output.dense")
            found += p.norm(f"{name}.output_norm", hidden, f"{source}.output.LayerNorm")
        return found

    @staticmethod
    def forward(g: Graph, config: dict[str, Any]) -> Value:
        """The hidden states of the last layer: (tokens, hidden)."""
        eps, count, act = config["layer_norm_eps"], config["num_attention_heads"], config["hidden_act"]
        heads = Heads(count, count, config["hidden_size"] // count)
        longest = config["max_position_embeddings"] - POSITION_OFFSET
        bias = RelativeBias("bias", relative_buckets(longest, config["relative_attention_num_buckets"]))
        x = embedding(g, word="embeddings.word", position="embeddings.position")
        x = layer_norm(g, x, "embeddings.norm", eps)
        for i in range(config["num_hidden_layers"]):
            name = f"layers.{i}"
            qkv = linear(g, x, f"{name}.qkv")
            attended = linear(g, attention(g, qkv, heads, bias=bias), f"{name}.out")
            x = layer_norm(g, attended, f"{name}.attention_norm", eps, residual=x)
            inner = linear(g, x, f"{name}.up", activation=act)
            x = layer_norm(g, linear(g, inner, f"{name}.down"), f"{name}.output_norm", eps, residual=x)
        return x
