"""Goldens of late interaction: random checkpoints in the three layouts, and the token vectors that count.

For development only. The reference: sentence-transformers' MultiVectorEncoder, float32, one text at a time, its default
attention (torch's): a mask token so far behind a query that its window holds none of it attends to nothing there, and
to everything, padding included, in the eager one. Each folder's tokens.npz holds for both roles `{role}_names`,
`{role}_ids` and `{role}_vectors`, those of text i from `{role}_starts`[i].
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
import torch
import transformers
from safetensors.torch import load_file, save_file
from sentence_transformers import MultiVectorEncoder

from tests.goldens import small_tokenizers
from tests.goldens.checkpoint import shake, write_weights
from tests.goldens.small_tokenizers import write_json
from tests.goldens.texts import AWKWARD

HERE = Path(__file__).parent
TEXTS = (
    "empty", "space", "emoji only", "one character", "question mark", "punctuation only", "chinese", "thai", "arabic",
    "persian with zwnj", "accents composed", "ligatures and fractions", "500 repeats", "far too long", "code", "json",
    "url and mail", "markdown table", "query", "sentence", "medium", "russian", "hindi", "mathematics",
)  # fmt: skip
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
MODULE = "sentence_transformers.models"
PROJECTED = 16


def write_backbone(
    folder: Path, model: str, sizes: dict[str, Any], tokenizer: Callable[[Path, int], int], seed: int
) -> dict[str, torch.Tensor]:
    """config.json and the tokenizer; returns the encoder's tensors, not yet written."""
    folder.mkdir(exist_ok=True)
    vocab = tokenizer(folder, 96)
    config = getattr(transformers, f"{model}Config")(vocab_size=vocab, max_position_embeddings=96, **sizes)
    encoder = getattr(transformers, f"{model}Model")(config)
    shake(encoder, seed)
    encoder.save_pretrained(folder)
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    return {name: value.contiguous() for name, value in tensors.items() if "pooler" not in name}


def projection(hidden: int) -> torch.Tensor:
    return torch.randn(PROJECTED, hidden) * hidden**-0.5


def write_modules(folder: Path, *entries: tuple[str, str]) -> None:
    """modules.json from types and paths."""
    listing = [{"idx": i, "name": str(i), "path": path, "type": kind} for i, (kind, path) in enumerate(entries)]
    write_json(folder / "modules.json", listing)


def write_dense(folder: Path, hidden: int, **settings: Any) -> None:
    identity = "torch.nn.modules.linear.Identity"
    sizes = {"in_features": hidden, "out_features": PROJECTED, "bias": False, "activation_function": identity}
    write_json(folder / "config.json", {**sizes, **settings})
    save_file({"linear.weight": projection(hidden)}, folder / "model.safetensors", metadata={"format": "pt"})


def stanford(folder: Path) -> None:
    """As Stanford's code writes colbertv2.0: everything in one file, the settings in artifact.metadata."""
    tokenizer = partial(small_tokenizers.wordpiece, unused=2)
    tensors = write_backbone(folder, "Bert", SMALL, tokenizer, 31)
    tensors = {f"bert.{name}": value for name, value in tensors.items()} | {"linear.weight": projection(32)}
    write_weights(folder, tensors, 1)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    write_json(folder / "config.json", {**config, "architectures": ["HF_ColBERT"]})
    metadata = {
        "query_token_id": "[unused0]", "doc_token_id": "[unused1]", "query_token": "[Q]", "doc_token": "[D]",
        "query_maxlen": 32, "doc_maxlen": 70, "dim": PROJECTED, "mask_punctuation": True,
        "attend_to_mask_tokens": False, "similarity": "cosine",
    }  # fmt: skip
    write_json(folder / "artifact.metadata", metadata)


def with_markers(folder: Path, max_tokens: int) -> int:
    """ModernBERT's tokenizer with the two tokens that PyLate adds."""
    small_tokenizers.modernbert(folder, max_tokens)
    library = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    library.add_tokens(["[Q] ", "[D] "])
    library.save(str(folder / "tokenizer.json"), pretty=False)
    return int(library.get_vocab_size())


def pylate(folder: Path) -> None:
    """As PyLate writes GTE-ModernColBERT, with a window so small that some mask tokens see nothing."""
    sizes = {**SMALL, "num_hidden_layers": 3, "local_attention": 16, "pad_token_id": 0}
    write_weights(folder, write_backbone(folder, "ModernBert", sizes, with_markers, 32), 1)
    write_dense(folder / "1_Dense", 32, use_residual=False)
    write_modules(folder, (f"{MODULE}.Transformer", ""), ("pylate.models.Dense.Dense", "1_Dense"))
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 79, "do_lower_case": False})
    settings = {
        "model_type": "ColBERT", "prompts": {}, "default_prompt_name": None, "similarity_fn_name": "MaxSim",
        "query_prefix": "[Q] ", "document_prefix": "[D] ", "query_length": 12, "document_length": 80,
        "attend_to_expansion_tokens": False, "skiplist_words": [".", ",", "?", "|", "("],
    }  # fmt: skip
    write_json(folder / "config_sentence_transformers.json", settings)


def native(folder: Path) -> None:
    """As sentence-transformers writes its own: expansion that attends and cuts nothing, a mask module."""
    tokenizer = partial(small_tokenizers.wordpiece, kind="DistilBertTokenizer")
    sizes = {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 64}
    write_weights(folder, write_backbone(folder, "DistilBert", sizes, tokenizer, 33), 1)
    tokens = {"module_input_name": "token_embeddings", "module_output_name": "token_embeddings"}
    write_dense(folder / "1_Dense", 32, **tokens)
    mask = {"skiplist_words": ["the", "."], "skiplist_tasks": ["document"]}
    write_json(folder / "2_MultiVectorMask/config.json", mask)
    write_json(folder / "3_Normalize/config.json", tokens)
    write_modules(
        folder,
        ("sentence_transformers.base.modules.transformer.Transformer", ""),
        ("sentence_transformers.base.modules.dense.Dense", "1_Dense"),
        ("sentence_transformers.multi_vector_encoder.modules.multi_vector_mask.MultiVectorMask", "2_MultiVectorMask"),
        ("sentence_transformers.base.modules.normalize.Normalize", "3_Normalize"),
    )
    expansion = {"strategy": "min", "attend": True, "token": None, "length": 16}
    settings = {"max_seq_length": 60, "do_lower_case": False, "query_length": 24, "query_expansion": expansion}
    write_json(folder / "sentence_bert_config.json", settings)
    prompts = {"query": "query: ", "document": "passage: "}
    own = {"model_type": "MultiVectorEncoder", "prompts": prompts, "default_prompt_name": None}
    write_json(folder / "config_sentence_transformers.json", {**own, "similarity_fn_name": "maxsim"})


def make(name: str, write: Callable[[Path], None]) -> None:
    """Write the checkpoint's folder and its tokens.npz."""
    write(HERE / name)
    np.savez_compressed(HERE / name / "tokens.npz", **run(HERE / name))


def run(folder: Path, texts: Sequence[str] = TEXTS) -> dict[str, Any]:
    model = MultiVectorEncoder(
        str(folder), device="cpu", local_files_only=True,
        model_kwargs={"attn_implementation": "sdpa", "dtype": torch.float32},
    )  # fmt: skip
    found: dict[str, Any] = {}
    for role, encode in (("query", model.encode_query), ("document", model.encode_document)):
        ids, vectors = [], []
        for name in texts:
            (item,) = encode([AWKWARD[name]], output_value=None)
            counted = item["attention_mask"].bool()
            ids.append(item["input_ids"][counted].numpy().astype(np.int32))
            (rows,) = encode([AWKWARD[name]], convert_to_numpy=True)
            vectors.append(rows.astype(np.float32))
        found |= {
            f"{role}_names": np.array(texts),
            f"{role}_ids": np.concatenate(ids),
            f"{role}_vectors": np.concatenate(vectors),
            f"{role}_starts": np.cumsum([0, *map(len, ids)]).astype(np.int64),
        }
    return found


MAKERS = {
    name: partial(make, name, write)
    for name, write in (("late_stanford", stanford), ("late_pylate", pylate), ("late_native", native))
}
