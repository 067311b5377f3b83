"""Qwen3: causal decoder with grouped-query attention, normalised heads, rotary positions and gated inner layers.

Paper: Zhang et al. 2025 (Qwen3 Embedding), https://arxiv.org/abs/2506.05176. Reference followed:
https://github.com/huggingface/transformers/blob/v4.51.0/src/transformers/models/qwen3/modeling_qwen3.py
"""

from __future__ import annotations

from typing import Any

from engine.layers.attention import attention
from engine.layers.embedding import embedding
from engine.layers.gate import add, gate
from engine.layers.heads import Heads
from engine.layers.linear import linear
from engine.layers.norm import rms_norm
from engine.layers.rotary import rotary, rotation_table
from engine.models import parameters as p
from engine.models.checks import check_flags, check_layers
from engine.models.parameters import Parameter
from engine.models.rope import theta
from engine.plan import Graph, Value


def heads_of(config: dict[str, Any]) -> Heads:
    """The heads of a decoder's config; without head_dim they share the hidden size."""
    count = config["num_attention_heads"]
    width = config.get("head_dim") or config["hidden_size"] // count
    return Heads(count, config.get("num_key_value_heads") or count, width)


def attention_parameters(name: str, hidden: int, heads: Heads, *, bias: bool) -> list[Parameter]:
    """Query, key and value as one linear layer, the norms of query and key heads, and the output."""
    source = f"{name}.self_attn"
    return [
        *p.linear(f"{name}.qkv", heads.columns, hidden, *(f"{source}.{part}_proj" for part in "qkv"), bias=bias),
        *p.norm(f"{name}.query_norm", heads.width, f"{source}.q_norm", bias=False),
        *p.norm(f"{name}.key_norm", heads.width, f"{source}.k_norm", bias=False),
        *p.linear(f"{name}.out", hidden, heads.query * heads.width, f"{source}.o_proj", bias=bias),
    ]


def inner_parameters(name: str, hidden: int, inner: int) -> list[Parameter]:
    """The gated inner layer: the activated half first."""
    return [
        *p.linear(f"{name}.up", 2 * inner, hidden, f"{name}.mlp.gate_proj", f"{name}.mlp.up_proj", bias=False),
        *p.linear(f"{name}.down", hidden, inner, f"{name}.mlp.down_proj", bias=False),
    ]


class Qwen3:
    """Qwen3-Embedding in every size, and other models with `model_type` "qwen3"."""

    prefixes = ("", "model.")
    unsupported: dict[str, tuple[Any, ...]] = {"use_sliding_window": (False, None)}

    @staticmethod
    def canonical(config: dict[str, Any]) -> dict[str, Any]:
        found = {"rms_norm_eps": 1e-6, "hidden_act": "silu", "attention_bias": False} | config
        check_layers(found)
        check_flags(found, "attention_bias")
        return found | {"layer_norm_eps": found["rms_norm_eps"], "theta": theta(config, 1_000_000.0)}

    @staticmethod
    def parameters(config: dict[str, Any]) -> list[Parameter]:
        """Every parameter of the forward pass, in the order of use; the language model's head is not one of them."""
        hidden, heads = config["hidden_size"], heads_of(config)
        found = [p.table("embeddings.word", config["vocab_size"], hidden, "embed_tokens")]
        for i in range(config["num_hidden_layers"]):
            name = f"layers.{i}"
            found += p.norm(f"{name}.attention_norm", hidden, f"{name}.input_layernorm", bias=False)
            found += attention_parameters(name, hidden, heads, bias=config["attention_bias"])
            found += p.norm(f"{name}.inner_norm", hidden, f"{name}.post_attention_layernorm", bias=False)
            found += inner_parameters(name, hidden, config["intermediate_size"])
        return [*found, *p.norm("norm", hidden, "norm", bias=False)]

    @staticmethod
    def forward(g: Graph, config: dict[str, Any]) -> Value:
        """The hidden states behind the final norm: (tokens, hidden)."""
        eps, heads, act = config["rms_norm_eps"], heads_of(config), config["hidden_act"]
        table = rotation_table(config["max_tokens"], heads.width, config["theta"])
        x = embedding(g, word="embeddings.word")
        for i in range(config["num_hidden_layers"]):
            name = f"layers.{i}"
            qkv = linear(g, rms_norm(g, x, f"{name}.attention_norm", eps), f"{name}.qkv")
            norms = f"{name}.query_norm.weight", f"{name}.key_norm.weight"
            qkv = rotary(g, qkv, heads, table, norms=norms, eps=eps)
            x = add(g, x, linear(g, attention(g, qkv, heads, causal=True), f"{name}.out"))
            inner = gate(g, linear(g, rms_norm(g, x, f"{name}.inner_norm", eps), f"{name}.up"), act)
            x = add(g, x, linear(g, inner, f"{name}.down"))
        return rms_norm(g, x, "norm", eps)
