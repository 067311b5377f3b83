"""Gemma 3 text models (EmbeddingGemma): norms around every block, two rotary bases, mostly local attention.

Report: Gemma Team 2025, https://arxiv.org/abs/2503.19786. Reference followed:
https://github.com/huggingface/transformers/blob/v4.57.0/src/transformers/models/gemma3/modeling_gemma3.py
"""

from __future__ import annotations

import math
from typing import Any

from engine.layers.attention import attention
from engine.layers.embedding import embedding
from engine.layers.gate import gate
from engine.layers.linear import linear
from engine.layers.norm import rms_norm
from engine.layers.rotary import rotary, rotation_table
from engine.models import parameters as p
from engine.models.checks import check_flags, check_layer_kinds, check_layers, check_positive, check_whole
from engine.models.parameters import Parameter
from engine.models.qwen3 import attention_parameters, heads_of, inner_parameters
from engine.models.rope import thetas
from engine.plan import Graph, Value

DEFAULTS: dict[str, Any] = {
    "rms_norm_eps": 1e-6, "hidden_activation": "gelu_pytorch_tanh", "attention_bias": False, "rope_theta": 1_000_000.0,
    "rope_local_base_freq": 10_000.0, "query_pre_attn_scalar": 256, "sliding_window": 4096, "head_dim": 256,
    "sliding_window_pattern": 6, "use_bidirectional_attention": False,
}  # fmt: skip
OFFSET = 1.0  # norm weights are stored less one

# The four norms of a layer: plan name -> published name.
NORMS = {
    "attention_norm": "input_layernorm", "attention_end_norm": "post_attention_layernorm",
    "inner_norm": "pre_feedforward_layernorm", "inner_end_norm": "post_feedforward_layernorm",
}  # fmt: skip


class Gemma3Text:
    """EmbeddingGemma and other models with `model_type` "gemma3_text"."""

    prefixes = ("", "model.")
    unsupported: dict[str, tuple[Any, ...]] = {"attn_logit_softcapping": (None,)}

    @staticmethod
    def canonical(config: dict[str, Any]) -> dict[str, Any]:
        full = DEFAULTS | config
        check_layers(full)
        check_flags(full, "attention_bias", "use_bidirectional_attention")
        check_positive(full, "query_pre_attn_scalar")
        check_whole(full, "sliding_window")
        # Older files call the pattern _sliding_window_pattern.
        every = config.get("_sliding_window_pattern", full["sliding_window_pattern"])
        check_whole({"sliding_window_pattern": every}, "sliding_window_pattern")
        kinds = ["sliding_attention" if (i + 1) % every else "full_attention" for i in range(full["num_hidden_layers"])]
        full.setdefault("layer_types", kinds)
        check_layer_kinds(full)
        found = thetas(full, full="rope_theta", sliding="rope_local_base_freq")
        names = {"hidden_act": full["hidden_activation"], "layer_norm_eps": full["rms_norm_eps"]}
        return full | names | {"thetas": found}

    @staticmethod
    def parameters(config: dict[str, Any]) -> list[Parameter]:
        """Every parameter of the forward pass, in the order of use; the language model's head is not one of them."""
        hidden, heads = config["hidden_size"], heads_of(config)
        found = [p.table("embeddings.word", config["vocab_size"], hidden, "embed_tokens")]
        for i in range(config["num_hidden_layers"]):
            name = f"layers.{i}"
            for norm, source in NORMS.items():
                found += p.norm(f"{name}.{norm}", hidden, f"{name}.{source}", bias=False)
            found += attention_parameters(name, hidden, heads, bias=config["attention_bias"])
            found += inner_parameters(name, hidden, config["intermediate_size"])
        return [*found, *p.norm("norm", hidden, "norm", bias=False)]

    @staticmethod
    def forward(g: Graph, config: dict[str, Any]) -> Value:
        """The hidden states behind the final norm: (tokens, hidden)."""
        eps, heads, act = config["rms_norm_eps"], heads_of(config), config["hidden_act"]
        both_ways = config["use_bidirectional_attention"]
        # Read both ways the window is shared by the two sides; causal, it counts the query itself.
        near = config["sliding_window"] // 2 if both_ways else config["sliding_window"] - 1
        theta = config["thetas"]
        tables = {kind: rotation_table(config["max_tokens"], heads.width, theta[kind]) for kind in theta}
        scale = 1.0 / math.sqrt(config["query_pre_attn_scalar"])
        x = embedding(g, word="embeddings.word", factor=math.sqrt(config["hidden_size"]))
        for i, kind in enumerate(config["layer_types"]):
            name, window = f"layers.{i}", near if kind == "sliding_attention" else None
            qkv = linear(g, rms_norm(g, x, f"{name}.attention_norm", eps, offset=OFFSET), f"{name}.qkv")
            norms = f"{name}.query_norm.weight", f"{name}.key_norm.weight"
            qkv = rotary(g, qkv, heads, tables[kind], norms=norms, eps=eps, offset=OFFSET)
            attended = attention(g, qkv, heads, scale=scale, causal=not both_ways, window=window)
            attended = linear(g, attended, f"{name}.out")
            x = rms_norm(g, attended, f"{name}.attention_end_norm", eps, residual=x, offset=OFFSET, norm_first=True)
            inner = linear(g, rms_norm(g, x, f"{name}.inner_norm", eps, offset=OFFSET), f"{name}.up")
            inner = linear(g, gate(g, inner, act), f"{name}.down")
            x = rms_norm(g, inner, f"{name}.inner_end_norm", eps, residual=x, offset=OFFSET, norm_first=True)
        return rms_norm(g, x, "norm", eps, offset=OFFSET)
