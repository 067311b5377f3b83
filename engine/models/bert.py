"""BERT: post-norm encoder with learned absolute positions.

Paper: Devlin et al. 2018, https://arxiv.org/abs/1810.04805. Reference followed:
https://github.com/huggingface/transformers/blob/v4.46.0/src/transformers/models/bert/modeling_bert.py
"""

from __future__ import annotations

from typing import Any

from engine.layers.attention import attention
from engine.layers.embedding import embedding
from engine.layers.heads import Heads
from engine.layers.linear import linear
from engine.layers.norm import layer_norm
from engine.models import parameters as p
from engine.models.checks import check_whole
from engine.models.parameters import Parameter
from engine.plan import Graph, Value


class Bert:
    """all-MiniLM, bge, e5 and every other encoder with `model_type` "bert"."""

    prefixes = ("", "bert.")
    unsupported = {"position_embedding_type": ("absolute",), "is_decoder": (False,)}

    @staticmethod
    def canonical(config: dict[str, Any]) -> dict[str, Any]:
        """The config with what older files leave out."""
        found = {"layer_norm_eps": 1e-12, "hidden_act": "gelu", "type_vocab_size": 2} | config
        check_whole(found, "type_vocab_size")
        return found

    @staticmethod
    def parameters(config: dict[str, Any]) -> list[Parameter]:
        """Every parameter of the forward pass, in the order of use; the pooler is not one of them."""
        hidden, inner = config["hidden_size"], config["intermediate_size"]
        found = [
            p.table("embeddings.word", config["vocab_size"], hidden, "embeddings.word_embeddings"),
            p.table("embeddings.position", config["max_position_embeddings"], hidden, "embeddings.position_embeddings"),
            p.table("embeddings.type", config["type_vocab_size"], hidden, "embeddings.token_type_embeddings"),
            *p.norm("embeddings.norm", hidden, "embeddings.LayerNorm"),
        ]
        for i in range(config["num_hidden_layers"]):
            name, source = f"layers.{i}", f"encoder.layer.{i}"
            attend = f"{source}.attention.self"
            found += p.linear(f"{name}.qkv", 3 * hidden, hidden, *(f"{attend}.{x}" for x in ("query", "key", "value")))
            found += p.linear(f"{name}.out", hidden, hidden, f"{source}.attention.output.dense")
            found += p.norm(f"{name}.attention_norm", hidden, f"{source}.attention.output.LayerNorm")
            found += p.linear(f"{name}.up", inner, hidden, f"{source}.intermediate.dense")
            found += p.linear(f"{name}.down", hidden, inner, f"{source}.output.dense")
            found += p.norm(f"{name}.output_norm", hidden, f"{source}.output.LayerNorm")
        return found

    @staticmethod
    def forward(g: Graph, config: dict[str, Any]) -> Value:
        """The hidden states of the last layer: (tokens, hidden)."""
        eps, count, act = config["layer_norm_eps"], config["num_attention_heads"], config["hidden_act"]
        heads = Heads(count, count, config["hidden_size"] // count)
        x = embedding(g, word="embeddings.word", position="embeddings.position", token_type="embeddings.type")
        x = layer_norm(g, x, "embeddings.norm", eps)
        for i in range(config["num_hidden_layers"]):
            name = f"layers.{i}"
            qkv = linear(g, x, f"{name}.qkv")
            attended = linear(g, attention(g, qkv, heads), f"{name}.out")
            x = layer_norm(g, attended, f"{name}.attention_norm", eps, residual=x)
            inner = linear(g, x, f"{name}.up", activation=act)
            x = layer_norm(g, linear(g, inner, f"{name}.down"), f"{name}.output_norm", eps, residual=x)
        return x
