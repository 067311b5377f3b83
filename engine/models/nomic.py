"""Nomic BERT: post-norm encoder with rotary positions, gated inner layers and no biases in the linear layers.

Paper: Nussbaum et al. 2024, https://arxiv.org/abs/2402.01613. References followed:
https://huggingface.co/nomic-ai/nomic-bert-2048 (modeling_hf_nomic_bert.py) and
https://github.com/huggingface/transformers/tree/main/src/transformers/models/nomic_bert
"""

from __future__ import annotations

from typing import Any

from engine.layers.attention import attention
from engine.layers.embedding import embedding
from engine.layers.gate import gate
from engine.layers.heads import Heads
from engine.layers.linear import linear
from engine.layers.norm import layer_norm
from engine.layers.rotary import rotary, rotation_table
from engine.models import parameters as p
from engine.models.parameters import Parameter
from engine.models.rope import theta
from engine.plan import Graph, Value

# The published checkpoints keep GPT-2's names for their settings.
PUBLISHED = {
    "hidden_size": "n_embd", "num_hidden_layers": "n_layer", "num_attention_heads": "n_head",
    "intermediate_size": "n_inner", "max_position_embeddings": "n_positions", "layer_norm_eps": "layer_norm_epsilon",
    "rope_theta": "rotary_emb_base",
}  # fmt: skip
GATES = {"swiglu": "silu", "geglu": "gelu"}


class NomicBert:
    """nomic-embed-text v1 and v1.5, and every other encoder with `model_type` "nomic_bert"."""

    prefixes = ("", "nomic_bert.", "bert.")
    unsupported: dict[str, tuple[Any, ...]] = {
        "prenorm": (False,), "rotary_emb_fraction": (1.0, 1), "rotary_emb_interleaved": (False,),
        "rotary_emb_scale_base": (None,), "rotary_scaling_factor": (None,), "qkv_proj_bias": (False,),
        "mlp_fc1_bias": (False,), "mlp_fc2_bias": (False,), "use_rms_norm": (False, None), "causal": (False,),
        "parallel_block": (False,), "activation_function": ("swiglu", "geglu"), "num_experts": (0, None),
    }  # fmt: skip

    @staticmethod
    def canonical(config: dict[str, Any]) -> dict[str, Any]:
        if "n_embd" not in config:
            return {"layer_norm_eps": 1e-12, "hidden_act": "silu", "rope_theta": 1000.0} | config
        found = config | {new: config[old] for new, old in PUBLISHED.items() if old in config}
        found["max_position_embeddings"] = config.get("max_trained_positions") or found["max_position_embeddings"]
        multiple = config.get("pad_vocab_size_multiple", 1)
        found["vocab_size"] = -(-config["vocab_size"] // multiple) * multiple
        return found | {"hidden_act": GATES.get(config.get("activation_function", "swiglu"), "")}

    @staticmethod
    def parameters(config: dict[str, Any]) -> list[Parameter]:
        """Every parameter of the forward pass; the published layout and the one of the transformers library."""
        hidden, inner, published = config["hidden_size"], config["intermediate_size"], "n_embd" in config
        found = [
            p.table("embeddings.word", config["vocab_size"], hidden, "embeddings.word_embeddings"),
            *p.norm("embeddings.norm", hidden, "emb_ln" if published else "embeddings.LayerNorm"),
        ]
        if config.get("type_vocab_size", 0):
            rows = config["type_vocab_size"]
            found.insert(1, p.table("embeddings.type", rows, hidden, "embeddings.token_type_embeddings"))
        for i in range(config["num_hidden_layers"]):
            name = f"layers.{i}"
            sources = _published(f"encoder.{name}") if published else _native(name)
            found += p.linear(f"{name}.qkv", 3 * hidden, hidden, *sources["qkv"], bias=False)
            found += p.linear(f"{name}.out", hidden, hidden, *sources["out"], bias=False)
            found += p.norm(f"{name}.attention_norm", hidden, *sources["attention_norm"])
            found += p.linear(f"{name}.up", 2 * inner, hidden, *sources["up"], bias=False)
            found += p.linear(f"{name}.down", hidden, inner, *sources["down"], bias=False)
            found += p.norm(f"{name}.output_norm", hidden, *sources["output_norm"])
        return found

    @staticmethod
    def forward(g: Graph, config: dict[str, Any]) -> Value:
        """The hidden states of the last layer: (tokens, hidden)."""
        eps, count, act = config["layer_norm_eps"], config["num_attention_heads"], config["hidden_act"]
        heads = Heads(count, count, config["hidden_size"] // count)
        table = rotation_table(config["max_tokens"], heads.width, theta(config, 1000.0))
        types = "embeddings.type" if "embeddings.type" in g.shapes else None
        x = layer_norm(g, embedding(g, word="embeddings.word", token_type=types), "embeddings.norm", eps)
        for i in range(config["num_hidden_layers"]):
            name = f"layers.{i}"
            qkv = rotary(g, linear(g, x, f"{name}.qkv"), heads, table)
            attended = linear(g, attention(g, qkv, heads), f"{name}.out")
            x = layer_norm(g, attended, f"{name}.attention_norm", eps, residual=x)
            inner = gate(g, linear(g, x, f"{name}.up"), act)
            x = layer_norm(g, linear(g, inner, f"{name}.down"), f"{name}.output_norm", eps, residual=x)
        return x


def _published(layer: str) -> dict[str, tuple[str, ...]]:
    # fc12 is the half that is activated, fc11 the half that it gates.
    return {
        "qkv": (f"{layer}.attn.Wqkv",), "out": (f"{layer}.attn.out_proj",), "attention_norm": (f"{layer}.norm1",),
        "up": (f"{layer}.mlp.fc12", f"{layer}.mlp.fc11"), "down": (f"{layer}.mlp.fc2",),
        "output_norm": (f"{layer}.norm2",),
    }  # fmt: skip


def _native(layer: str) -> dict[str, tuple[str, ...]]:
    return {
        "qkv": tuple(f"{layer}.self_attn.{part}_proj" for part in "qkv"), "out": (f"{layer}.self_attn.o_proj",),
        "attention_norm": (f"{layer}.post_attention_layernorm",),
        "up": (f"{layer}.mlp.gate_proj", f"{layer}.mlp.up_proj"), "down": (f"{layer}.mlp.down_proj",),
        "output_norm": (f"{layer}.post_mlp_layernorm",),
    }  # fmt: skip
