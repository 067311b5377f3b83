"""Make the BERT goldens from the reference classes. For development only: needs torch and transformers.

    python -m tests.goldens.make_bert MINILM_FOLDER

MINILM_FOLDER is all-MiniLM-L6-v2 as published. Writes, beside this file,
minilm.npz          what the reference makes of AWKWARD with the published weights
tiny_bert/          a seeded random checkpoint in the published layout (mean pooling), with the reference's answers
odd_bert/           the same with sizes that fill no panel and no group (CLS pooling)

The reference: transformers' BertModel in float32 with eager attention, one text at a time, no padding; mean over all
token rows or the first row; unit length. token_ids of text i are ids[starts[i]:starts[i + 1]].
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
import torch
from safetensors.torch import save_file
from transformers import AutoTokenizer, BertConfig, BertModel

from tests.goldens.texts import AWKWARD, SENTENCES

HERE = Path(__file__).parent

# Texts whose token states are kept too; a few short ones, so that the file stays small.
STATES_OF = ("empty", "one emoji", "question mark", "query", "persian with zwnj", "sentence")
TINY_TEXTS = (
    "empty",
    "space",
    "one character",
    "query",
    "chinese",
    "sentence",
    "medium",
    "far too long",
    "accents decomposed",
)


def run(folder: Path, texts: dict[str, str], max_tokens: int, states_of: tuple[str, ...]) -> dict[str, Any]:
    """The reference's ids, mean and CLS vectors, and the token states of some texts."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = BertModel.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
    ids, means, firsts, states = [], [], [], []
    for name, text in texts.items():
        encoded = tokenizer(text, truncation=True, max_length=max_tokens, padding=False, return_tensors="pt")
        with torch.no_grad():
            rows = model(**encoded).last_hidden_state[0]
        ids.append(encoded["input_ids"][0].numpy().astype(np.int32))
        means.append(torch.nn.functional.normalize(rows.mean(dim=0), dim=0).numpy())
        firsts.append(torch.nn.functional.normalize(rows[0], dim=0).numpy())
        if name in states_of:
            states.append(rows.numpy())
    return {
        "names": np.array(list(texts)),
        "ids": np.concatenate(ids),
        "starts": np.cumsum([0, *map(len, ids)]).astype(np.int64),
        "mean": np.stack(means).astype(np.float32),
        "cls": np.stack(firsts).astype(np.float32),
        "state_names": np.array([name for name in texts if name in states_of]),
        "states": np.concatenate(states).astype(np.float32),
    }


def vocabulary() -> dict[str, int]:
    """Specials first, then single characters alone and continued, then frequent words of SENTENCES, sorted."""
    characters = sorted({c for text in SENTENCES[:49] for c in text.lower() if c.isascii() and not c.isspace()})
    words: dict[str, int] = {}
    for text in SENTENCES[:49]:
        for word in text.lower().replace(".", "").replace(",", "").split():
            words[word] = words.get(word, 0) + 1
    frequent = sorted(word for word, count in words.items() if count > 1 and len(word) > 1 and word.isalpha())
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *characters, *(f"##{c}" for c in characters), *frequent]
    return {token: i for i, token in enumerate([*tokens, "人", "工", "智", "北", "京"])}


def write_tokenizer(folder: Path, max_tokens: int) -> int:
    """Write a small tokenizer.json, truncation and padding baked in as published; returns its vocabulary size."""
    vocab = vocabulary()
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocab, unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocab["[CLS]"]), ("[SEP]", vocab["[SEP]"])],
    )
    tokenizer.decoder = tokenizers.decoders.WordPiece()
    tokenizer.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    tokenizer.enable_truncation(8)
    tokenizer.enable_padding(length=8)
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    config = {"tokenizer_class": "BertTokenizer", "do_lower_case": True, "model_max_length": max_tokens}
    names = ("pad", "unk", "cls", "sep", "mask")
    write_json(folder / "tokenizer_config.json", {**config, **{f"{n}_token": f"[{n.upper()}]" for n in names}})
    return len(vocab)


def write_json(file: Path, value: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def make_random(folder: Path, pooling: str, seed: int, max_tokens: int, **sizes: int) -> None:
    """A random checkpoint in the published layout, and the reference's answers beside it."""
    folder.mkdir(exist_ok=True)
    torch.manual_seed(seed)
    config = BertConfig(vocab_size=write_tokenizer(folder, max_tokens), max_position_embeddings=64, **sizes)
    model = BertModel(config, add_pooling_layer=False)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            # Wider than a fresh model's, so that attention and the norms have something to do.
            parameter.normal_(1.0 if name.endswith("LayerNorm.weight") else 0.0, 0.25)
    tensors = {name: value.contiguous() for name, value in model.state_dict().items() if "position_ids" not in name}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    plain = {k: v for k, v in config.to_dict().items() if isinstance(v, str | int | float)}
    write_json(folder / "config.json", {**plain, "model_type": "bert", "architectures": ["BertModel"]})
    module = "sentence_transformers.models"
    parts = (("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize"))
    listing = [{"idx": i, "name": str(i), "path": path, "type": f"{module}.{t}"} for i, (path, t) in enumerate(parts)]
    write_json(folder / "modules.json", listing)
    modes = {f"pooling_mode_{key}": pooling in key for key in ("cls_token", "mean_tokens", "max_tokens")}
    write_json(folder / "1_Pooling/config.json", {"word_embedding_dimension": config.hidden_size, **modes})
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": max_tokens, "do_lower_case": False})
    prompts = {"query": "query: ", "passage": "passage: "}
    write_json(folder / "config_sentence_transformers.json", {"prompts": prompts, "default_prompt_name": None})
    texts = {name: AWKWARD[name] for name in TINY_TEXTS}
    np.savez_compressed(folder / "reference.npz", **run(folder, texts, max_tokens, ("empty", "query", "far too long")))


def main() -> None:
    torch.set_num_threads(1)
    make_random(
        HERE / "tiny_bert",
        "mean",
        1,
        48,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=128,
    )
    make_random(
        HERE / "odd_bert",
        "cls",
        2,
        40,
        hidden_size=40,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=72,
    )
    np.savez_compressed(HERE / "minilm.npz", **run(Path(sys.argv[1]), AWKWARD, 256, STATES_OF))


if __name__ == "__main__":
    main()
