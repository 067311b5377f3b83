"""Make the goldens from the reference classes. For development only: needs torch, transformers, sentence-transformers.

    python -m tests.goldens.make [--real] [NAME ...]

Writes, beside this file, a folder for every entry of CHECKPOINTS and of the modules named after what they make (or for
the names given): a seeded random checkpoint in the layout in which its family is published, and what the reference
makes of AWKWARD.
--real: what the reference makes of the models of tests.real_models, into minilm.npz and real/.

The reference: sentence-transformers on transformers' classes, float32, eager attention, one text at a time, no padding.
reference.npz holds `names` of texts; `ids`, the ids of text i being ids[starts[i]:starts[i + 1]]; `vectors`, one row a
text; `states`, the token states of the texts `state_names` back to back; and for every role that has a prompt its
vectors of the texts `role_names`. Decomposed Hangul and kana stand for what the reference makes of the composed text.
ragged.npz beside it (ragged.py) has a text of every length. `python -m tests.goldens.table` prints how close we are.
"""

from __future__ import annotations

import argparse
import json
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer

from tests import real_models
from tests.goldens import late, ragged, rerankers, small_tokenizers, static
from tests.goldens.checkpoint import shake, write_weights
from tests.goldens.small_tokenizers import write_json
from tests.goldens.texts import AWKWARD, COMPOSED_BY_US

HERE = Path(__file__).parent

# Texts whose token states are kept too: few, so that the files stay small.
STATES_OF = ("empty", "one emoji", "query", "persian with zwnj", "sentence", "far too long")
ROLE_TEXTS = ("empty", "query", "sentence", "far too long")

MODULES = "sentence_transformers.models"
QWEN_PROMPT = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
GEMMA_PROMPTS = {"query": "task: search result | query: ", "document": "title: none | text: "}


@dataclass(frozen=True)
class Dense:
    """A Dense module: outputs, bias, the last part of its activation's name."""

    outputs: int
    bias: bool
    activation: str


@dataclass(frozen=True)
class Checkpoint:
    """One golden folder.

    model: prefix of the classes in transformers. sizes: keys of its config. tokenizer: a function of small_tokenizers.
    stored: dtype on disk. shards: weight files. prefix: put before every tensor's name. publish: config and tensors to
    what is published, where transformers' own files are not that.
    """

    model: str
    sizes: dict[str, Any]
    tokenizer: Callable[[Path, int], int]
    seed: int
    max_tokens: int = 64
    pooling: str = "mean"
    dense: tuple[Dense, ...] = ()
    normalize: bool = True
    include_prompt: bool = True
    prompts: dict[str, str] = field(default_factory=dict)
    default_prompt: str | None = None
    stored: torch.dtype = torch.float32
    shards: int = 1
    prefix: str = ""
    publish: Callable[[dict[str, Any]], dict[str, Any]] = dict


def nomic_names(config: dict[str, Any]) -> dict[str, Any]:
    """The settings of nomic-embed-text-v1.5, with GPT-2's names."""
    return {
        "model_type": "nomic_bert", "activation_function": "swiglu", "architectures": ["NomicBertModel"],
        "n_embd": config["hidden_size"], "n_head": config["num_attention_heads"],
        "n_inner": config["intermediate_size"], "n_layer": config["num_hidden_layers"],
        "n_positions": 128, "max_trained_positions": 32, "layer_norm_epsilon": config["layer_norm_eps"],
        "vocab_size": config["vocab_size"] - 3, "pad_vocab_size_multiple": 4, "type_vocab_size": 2,
        "rotary_emb_base": 1000, "rotary_emb_fraction": 1.0, "rotary_emb_interleaved": False,
        "rotary_emb_scale_base": None, "rotary_scaling_factor": None, "prenorm": False, "parallel_block": False,
        "qkv_proj_bias": False, "mlp_fc1_bias": False, "mlp_fc2_bias": False, "use_rms_norm": False, "causal": False,
        "scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False,
    }  # fmt: skip


BERT_SIZES = {"num_attention_heads": 2, "max_position_embeddings": 64}
CHECKPOINTS = {
    "tiny_bert": Checkpoint(
        "Bert", {**BERT_SIZES, "hidden_size": 64, "num_hidden_layers": 2, "intermediate_size": 128},
        small_tokenizers.wordpiece, 1, max_tokens=48, prompts={"query": "query: ", "passage": "passage: "},
    ),
    "odd_bert": Checkpoint(  # sizes that fill no panel and no group of inputs
        "Bert", {**BERT_SIZES, "hidden_size": 40, "num_hidden_layers": 1, "intermediate_size": 72},
        small_tokenizers.wordpiece, 2, max_tokens=40, pooling="cls",
        prompts={"query": "query: ", "passage": "passage: "},
    ),
    "distilbert": Checkpoint(
        "DistilBert", {"dim": 48, "n_layers": 2, "n_heads": 3, "hidden_dim": 96, "max_position_embeddings": 72},
        lambda folder, limit: small_tokenizers.wordpiece(folder, limit, "DistilBertTokenizer"), 3, pooling="max",
        dense=(Dense(32, True, "Tanh"),), prefix="distilbert.", stored=torch.float16,
    ),
    "mpnet": Checkpoint(  # longer than the 128 tokens at which the buckets of the attention bias end
        "MPNet", {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 80,
                  "max_position_embeddings": 202},
        small_tokenizers.mpnet, 4, max_tokens=200,
    ),
    "roberta": Checkpoint(
        "Roberta", {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 96,
                    "max_position_embeddings": 66, "type_vocab_size": 1, "layer_norm_eps": 1e-5},
        small_tokenizers.roberta, 5, pooling="weightedmean", include_prompt=False, default_prompt="query",
        prompts={"query": "search query: ", "document": "passage: "}, stored=torch.float16, prefix="roberta.",
    ),
    "xlm_roberta": Checkpoint(
        "XLMRoberta", {"hidden_size": 56, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 100,
                       "max_position_embeddings": 66, "type_vocab_size": 1, "layer_norm_eps": 1e-5},
        small_tokenizers.xlm_roberta, 6, pooling="cls", shards=2, stored=torch.float16,
    ),
    "modernbert": Checkpoint(
        "ModernBert", {"hidden_size": 48, "num_hidden_layers": 4, "num_attention_heads": 3, "intermediate_size": 72,
                       "max_position_embeddings": 128, "local_attention": 16, "pad_token_id": 0},
        small_tokenizers.modernbert, 7, max_tokens=96, prefix="model.", stored=torch.float16,
        prompts={"query": "search_query: "},
    ),
    "nomic": Checkpoint(
        "NomicBert", {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 80,
                      "max_position_embeddings": 128},
        small_tokenizers.wordpiece, 8, max_tokens=96, pooling="mean_sqrt_len_tokens", publish=nomic_names,
        stored=torch.bfloat16,
    ),
    "qwen3": Checkpoint(
        "Qwen3", {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
                  "head_dim": 24, "intermediate_size": 96, "max_position_embeddings": 256},
        small_tokenizers.qwen, 9, max_tokens=96, pooling="lasttoken", stored=torch.bfloat16,
        prompts={"query": QWEN_PROMPT, "document": ""},
    ),
    "gemma3": Checkpoint(
        "Gemma3Text", {"hidden_size": 48, "num_hidden_layers": 4, "num_attention_heads": 3, "num_key_value_heads": 1,
                       "head_dim": 32, "intermediate_size": 72, "max_position_embeddings": 128, "sliding_window": 16,
                       "query_pre_attn_scalar": 24, "use_bidirectional_attention": True,
                       "layer_types": ["sliding_attention", "full_attention"] * 2},
        small_tokenizers.gemma, 10, max_tokens=96, prompts=GEMMA_PROMPTS, stored=torch.float16,
        dense=(Dense(96, False, "Identity"), Dense(40, False, "Identity")),
    ),
}  # fmt: skip


def write_modules(folder: Path, checkpoint: Checkpoint, hidden: int) -> None:
    """modules.json and the folder of each module."""
    listing = [("", "Transformer"), ("1_Pooling", "Pooling")]
    modes = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken")
    wanted = checkpoint.pooling if checkpoint.pooling.endswith("token") else f"{checkpoint.pooling}_tokens"
    wanted = {"cls_tokens": "cls_token", "mean_sqrt_len_tokens_tokens": "mean_sqrt_len_tokens"}.get(wanted, wanted)
    switches = {f"pooling_mode_{mode}": mode == wanted for mode in modes}
    pooling = {"word_embedding_dimension": hidden, **switches, "include_prompt": checkpoint.include_prompt}
    write_json(folder / "1_Pooling/config.json", pooling)
    for dense in checkpoint.dense:
        path = f"{len(listing)}_Dense"
        linear = torch.nn.Linear(hidden, dense.outputs, bias=dense.bias)
        activation = "activation.Tanh" if dense.activation == "Tanh" else "linear.Identity"
        settings = {"in_features": hidden, "out_features": dense.outputs, "bias": dense.bias}
        write_json(folder / path / "config.json", {**settings, "activation_function": f"torch.nn.modules.{activation}"})
        weights = {f"linear.{name}": value.detach() for name, value in linear.named_parameters()}
        save_file(weights, folder / path / "model.safetensors", metadata={"format": "pt"})
        listing.append((path, "Dense"))
        hidden = dense.outputs
    if checkpoint.normalize:
        listing.append((f"{len(listing)}_Normalize", "Normalize"))
    write_json(
        folder / "modules.json",
        [
            {"idx": i, "name": str(i), "path": path, "type": f"{MODULES}.{kind}"}
            for i, (path, kind) in enumerate(listing)
        ],
    )


def make(name: str, checkpoint: Checkpoint) -> None:
    """Write the checkpoint's folder and its reference.npz."""
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    vocab = checkpoint.tokenizer(folder, checkpoint.max_tokens)
    padded = -(-vocab // 4) * 4 if checkpoint.publish is nomic_names else vocab
    config = getattr(transformers, f"{checkpoint.model}Config")(vocab_size=padded, **checkpoint.sizes)
    model = getattr(transformers, f"{checkpoint.model}Model")(config)
    shake(model, checkpoint.seed)
    model.save_pretrained(folder)
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    tensors = {
        checkpoint.prefix + key: value.to(checkpoint.stored).contiguous()
        for key, value in tensors.items()
        if "pooler" not in key or name == "mpnet"
    }
    write_weights(folder, tensors, checkpoint.shards)
    write_modules(folder, checkpoint, config.hidden_size)
    published = checkpoint.publish(json.loads((folder / "config.json").read_text("utf-8")))
    write_json(folder / "config.json", published)
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": checkpoint.max_tokens, "do_lower_case": False})
    prompts = {"prompts": checkpoint.prompts, "default_prompt_name": checkpoint.default_prompt}
    write_json(folder / "config_sentence_transformers.json", prompts)
    np.savez_compressed(folder / "reference.npz", **run(folder, STATES_OF, overrides(name)))
    ragged.make(folder, load_reference(folder, overrides(name)), checkpoint.max_tokens)


def overrides(name: str) -> dict[str, Any]:
    """What the reference must be told of a folder whose config.json has names that it does not know."""
    checkpoint = CHECKPOINTS[name]
    if checkpoint.publish is not nomic_names:
        return {}
    rows = json.loads((HERE / name / "config.json").read_text("utf-8"))["vocab_size"] + 3
    config: dict[str, Any] = transformers.NomicBertConfig(vocab_size=rows, **checkpoint.sizes).to_dict()
    return config


def load_reference(folder: Path, config: dict[str, Any]) -> SentenceTransformer:
    """The reference of a folder; config: what goes before its config.json."""
    return SentenceTransformer(
        str(folder), device="cpu", local_files_only=True, config_kwargs=config,
        model_kwargs={"attn_implementation": "eager", "dtype": torch.float32},
    ).eval()  # fmt: skip


def make_real(name: str) -> None:
    """What the reference makes of a real model: of its vectors, its scores or its token vectors."""
    folder = getattr(real_models, name)()
    file = HERE / "minilm.npz" if name == "minilm" else HERE / "real" / f"{name}.npz"
    file.parent.mkdir(exist_ok=True)
    np.savez_compressed(file, **REAL[name](folder))


def run(folder: Path, states_of: Sequence[str], config: dict[str, Any] | None = None) -> dict[str, Any]:
    """What the reference makes of AWKWARD; see the top of this file."""
    model = load_reference(folder, config or {})
    ids, vectors, states = [], [], []
    for name, text in AWKWARD.items():
        features, out = forward(model, name, text)
        ids.append(features["input_ids"][0].numpy().astype(np.int32))
        vectors.append(out["sentence_embedding"][0].numpy())
        if name in states_of:
            states.append(out["token_embeddings"][0].numpy())
    found = {
        "names": np.array(list(AWKWARD)),
        "ids": np.concatenate(ids),
        "starts": np.cumsum([0, *map(len, ids)]).astype(np.int64),
        "vectors": np.stack(vectors).astype(np.float32),
        "state_names": np.array([name for name in AWKWARD if name in states_of]),
        "states": np.concatenate(states).astype(np.float32),
        "role_names": np.array(ROLE_TEXTS),
    }
    for role, names in (("query", ("query",)), ("document", ("document", "passage"))):
        prompt = next((model.prompts[name] for name in names if model.prompts.get(name)), None)
        if prompt is not None:
            rows = [forward(model, name, AWKWARD[name], prompt)[1]["sentence_embedding"][0] for name in ROLE_TEXTS]
            found[role] = torch.stack(rows).numpy().astype(np.float32)
    return found


def forward(
    model: SentenceTransformer, name: str, text: str, prompt: str | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """One text through the reference: what the tokenizer made, and what the modules made of that."""
    text = unicodedata.normalize("NFC", text) if name in COMPOSED_BY_US else text
    if prompt is None and model.default_prompt_name is not None:
        prompt = model.prompts[model.default_prompt_name]
    features = model.preprocess([text], prompt=prompt)
    with torch.no_grad():
        return features, model(dict(features.items()))


# What is made of each model of tests.real_models.
REAL: dict[str, Callable[[Path], dict[str, Any]]] = {
    "minilm": partial(run, states_of=STATES_OF[:-1]),
    "mpnet": partial(run, states_of=("one emoji", "query")),
    "bge_small": partial(run, states_of=("query",)),
    "e5_small": partial(run, states_of=("query",)),
    "multilingual_e5_small": partial(run, states_of=("query",)),
    "ms_marco": rerankers.run,
    "colbert_small": partial(late.run, texts=("empty", "query", "sentence", "url and mail")),
}


def main() -> None:
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="folders to make; all where none is named")
    parser.add_argument("--real", action="store_true", help="of real models: fetches some 700 MB once")
    options = parser.parse_args()
    makers = {name: partial(make, name, checkpoint) for name, checkpoint in CHECKPOINTS.items()}
    makers |= static.MAKERS | rerankers.MAKERS | late.MAKERS
    if options.real:
        makers = {name: partial(make_real, name) for name in REAL}
    for name in options.names or makers:
        print(name)
        makers[name]()


if __name__ == "__main__":
    main()
