"""ModernBERT: pre-norm encoder with rotary positions, gated inner layers and mostly local attention.

Paper: Warner et al. 2024, https://arxiv.org/abs/2412.13663. Reference followed:
https://github.com/huggingface/transformers/blob/v4.48.0/src/transformers/models/modernbert/modeling_modernbert.py
"""

from __future__ import annotations

from typing import Any

from engine.layers.attention import attention
from engine.layers.embedding import embedding
from engine.layers.gate import add, gate
from engine.layers.heads import Heads
from engine.layers.linear import linear
from engine.layers.norm import layer_norm
from engine.layers.rotary import rotary, rotation_table
from engine.models import parameters as p
from engine.models.checks import check_flags, check_layer_kinds, check_layers, check_whole
from engine.models.parameters import Parameter
from engine.models.rope import thetas
from engine.plan import Graph, Value

DEFAULTS: dict[str, Any] = {
    "norm_eps": 1e-5, "norm_bias": False, "attention_bias": False, "mlp_bias": False, "local_attention": 128,
    "global_attn_every_n_layers": 3, "global_rope_theta": 160_000.0, "local_rope_theta": 10_000.0,
    "hidden_activation": "gelu",
}  # fmt: skip


class ModernBert:
    """modernbert-embed, gte-modernbert and every other encoder with `model_type` "modernbert"."""

    prefixes = ("", "model.")
    unsupported: dict[str, tuple[Any, ...]] = {}

    @staticmethod
    def canonical(config: dict[str, Any]) -> dict[str, Any]:
        full = DEFAULTS | config
        check_layers(full)
        check_flags(full, "norm_bias", "attention_bias", "mlp_bias")
        check_whole(full, "local_attention", "global_attn_every_n_layers")
        every = full["global_attn_every_n_layers"]
        kinds = ["sliding_attention" if i % every else "full_attention" for i in range(full["num_hidden_layers"])]
        full.setdefault("layer_types", kinds)
        check_layer_kinds(full)
        found = thetas(full, full="global_rope_theta", sliding="local_rope_theta")
        return full | {"hidden_act": full["hidden_activation"], "layer_norm_eps": full["norm_eps"], "thetas": found}

    @staticmethod
    def parameters(config: dict[str, Any]) -> list[Parameter]:
        """Every parameter of the forward pass, in the order of use. The first layer has no norm before attention."""
        hidden, inner, shift = config["hidden_size"], config["intermediate_size"], config["norm_bias"]
        found = [
            p.table("embeddings.word", config["vocab_size"], hidden, "embeddings.tok_embeddings"),
            *p.norm("embeddings.norm", hidden, "embeddings.norm", bias=shift),
        ]
        for i in range(config["num_hidden_layers"]):
            name = f"layers.{i}"
            if i > 0:
                found += p.norm(f"{name}.attention_norm", hidden, f"{name}.attn_norm", bias=shift)
            found += p.linear(f"{name}.qkv", 3 * hidden, hidden, f"{name}.attn.Wqkv", bias=config["attention_bias"])
            found += p.linear(f"{name}.out", hidden, hidden, f"{name}.attn.Wo", bias=config["attention_bias"])
            found += p.norm(f"{name}.inner_norm", hidden, f"{name}.mlp_norm", bias=shift)
            found += p.linear(f"{name}.up", 2 * inner, hidden, f"{name}.mlp.Wi", bias=config["mlp_bias"])
            found += p.linear(f"{name}.down", hidden, inner, f"{name}.mlp.Wo", bias=config["mlp_bias"])
        return [*found, *p.norm("norm", hidden, "final_norm", bias=shift)]

    @staticmethod
    def forward(g: Graph, config: dict[str, Any]) -> Value:
        """The hidden states behind the final norm: (tokens, hidden)."""
        eps, count, act = config["norm_eps"], config["num_attention_heads"], config["hidden_act"]
        heads = Heads(count, count, config["hidden_size"] // count)
        theta = config["thetas"]
        tables = {kind: rotation_table(config["max_tokens"], heads.width, theta[kind]) for kind in theta}
        x = layer_norm(g, embedding(g, word="embeddings.word"), "embeddings.norm", eps)
        for i, kind in enumerate(config["layer_types"]):
            name = f"layers.{i}"
            normed = x if i == 0 else layer_norm(g, x, f"{name}.attention_norm", eps)
            qkv = rotary(g, linear(g, normed, f"{name}.qkv"), heads, tables[kind])
            window = config["local_attention"] // 2 if kind == "sliding_attention" else None
            x = add(g, x, linear(g, attention(g, qkv, heads, window=window), f"{name}.out"))
            inner = gate(g, linear(g, layer_norm(g, x, f"{name}.inner_norm", eps), f"{name}.up"), act)
            x = add(g, x, linear(g, inner, f"{name}.down"))
        return layer_norm(g, x, "norm", eps)
