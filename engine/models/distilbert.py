"""DistilBERT: BERT's encoder with half the layers, without token types and pooler.

Paper: Sanh et al. 2019, https://arxiv.org/abs/1910.01108. Reference followed:
https://github.com/huggingface/transformers/blob/v4.46.0/src/transformers/models/distilbert/modeling_distilbert.py
"""

from __future__ import annotations

from typing import Any

from engine.layers.attention import attention
from engine.layers.embedding import embedding
from engine.layers.heads import Heads
from engine.layers.linear import linear
from engine.layers.norm import layer_norm
from engine.models import parameters as p
from engine.models.parameters import Parameter
from engine.plan import Graph, Value

EPS = 1e-12  # fixed in the reference, not a key of config.json


class DistilBert:
    """Every encoder with `model_type` "distilbert"."""

    prefixes = ("", "distilbert.")
    unsupported: dict[str, tuple[Any, ...]] = {}

    @staticmethod
    def canonical(config: dict[str, Any]) -> dict[str, Any]:
        """The config under BERT's names, which the folder's checks read."""
        names = {
            "hidden_size": "dim", "num_hidden_layers": "n_layers", "num_attention_heads": "n_heads",
            "intermediate_size": "hidden_dim", "hidden_act": "activation",
        }  # fmt: skip
        renamed = {new: config[old] for new, old in names.items() if old in config}
        return {"hidden_act": "gelu", "layer_norm_eps": EPS} | config | renamed

    @staticmethod
    def parameters(config: dict[str, Any]) -> list[Parameter]:
        """Every parameter of the forward pass, in the order of use."""
        hidden, inner = config["hidden_size"], config["intermediate_size"]
        found = [
            p.table("embeddings.word", config["vocab_size"], hidden, "embeddings.word_embeddings"),
            p.table("embeddings.position", config["max_position_embeddings"], hidden, "embeddings.position_embeddings"),
            *p.norm("embeddings.norm", hidden, "embeddings.LayerNorm"),
        ]
        for i in range(config["num_hidden_layers"]):
            name, source = f"layers.{i}", f"transformer.layer.{i}"
            qkv = (f"{source}.attention.{part}_lin" for part in "qkv")
            found += p.linear(f"{name}.qkv", 3 * hidden, hidden, *qkv)
            found += p.linear(f"{name}.out", hidden, hidden, f"{source}.attention.out_lin")
            found += p.norm(f"{name}.attention_norm", hidden, f"{source}.sa_layer_norm")
            found += p.linear(f"{name}.up", inner, hidden, f"{source}.ffn.lin1")
            found += p.linear(f"{name}.down", hidden, inner, f"{source}.ffn.lin2")
            found += p.norm(f"{name}.output_norm", hidden, f"{source}.output_layer_norm")
        return found

    @staticmethod
    def forward(g: Graph, config: dict[str, Any]) -> Value:
        """The hidden states of the last layer: (tokens, hidden)."""
        count, act = config["num_attention_heads"], config["hidden_act"]
        heads = Heads(count, count, config["hidden_size"] // count)
        x = embedding(g, word="embeddings.word", position="embeddings.position")
        x = layer_norm(g, x, "embeddings.norm", EPS)
        for i in range(config["num_hidden_layers"]):
            name = f"layers.{i}"
            attended = linear(g, attention(g, linear(g, x, f"{name}.qkv"), heads), f"{name}.out")
            x = layer_norm(g, attended, f"{name}.attention_norm", EPS, residual=x)
            inner = linear(g, x, f"{name}.up", activation=act)
            x = layer_norm(g, linear(g, inner, f"{name}.down"), f"{name}.output_norm", EPS, residual=x)
        return x
