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
from engine.models.checks import check_whole
from engine.models.parameters import Parameter
from engine.models.rope import theta
from engine.plan import Graph, Value

# Published files keep GPT-2's names for their settings; the transformers library writes BERT's. Tensors have one name.
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
            found = {"layer_norm_eps": 1e-12, "hidden_act": "silu", "type_vocab_size": 0} | config
        else:
            found = {"pad_vocab_size_multiple": 1, "type_vocab_size": 0} | config
            found |= {new: config[old] for new, old in PUBLISHED.items() if old in config}
            check_whole(found, "pad_vocab_size_multiple")
            multiple = found["pad_vocab_size_multiple"]
            found["vocab_size"] = -(-config["vocab_size"] // multiple) * multiple
            found["hidden_act"] = GATES[config.get("activation_function", "swiglu")]
        check_whole(found, "type_vocab_size", least=0)
        return found | {"theta": theta(found, 1000.0)}

    @staticmethod
    def parameters(config: dict[str, Any]) -> list[Parameter]:
        """Every parameter of the forward pass, in the order of use; fc12 is the half that is activated."""
        hidden, inner = config["hidden_size"], config["intermediate_size"]
        found = [
            p.table("embeddings.word", config["vocab_size"], hidden, "embeddings.word_embeddings"),
            *p.norm("embeddings.norm", hidden, "emb_ln"),
        ]
        if rows := config["type_vocab_size"]:
            found.insert(1, p.table("embeddings.type", rows, hidden, "embeddings.token_type_embeddings"))
        for i in range(config["num_hidden_layers"]):
            name, source = f"layers.{i}", f"encoder.layers.{i}"
            found += p.linear(f"{name}.qkv", 3 * hidden, hidden, f"{source}.attn.Wqkv", bias=False)
            found += p.linear(f"{name}.out", hidden, hidden, f"{source}.attn.out_proj", bias=False)
            found += p.norm(f"{name}.attention_norm", hidden, f"{source}.norm1")
            up = f"{source}.mlp.fc12", f"{source}.mlp.fc11"
            found += p.linear(f"{name}.up", 2 * inner, hidden, *up, bias=False)
            found += p.linear(f"{name}.down", hidden, inner, f"{source}.mlp.fc2", bias=False)
            found += p.norm(f"{name}.output_norm", hidden, f"{source}.norm2")
        return found

    @staticmethod
    def forward(g: Graph, config: dict[str, Any]) -> Value:
        """The hidden states of the last layer: (tokens, hidden)."""
        eps, count, act = config["layer_norm_eps"], config["num_attention_heads"], config["hidden_act"]
        heads = Heads(count, count, config["hidden_size"] // count)
        table = rotation_table(config["max_tokens"], heads.width, config["theta"])
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
