"""Small tokenizers of every published kind, trained on the texts beside this file. For development only.

Each function writes the files that a published folder carries (tokenizer.json, tokenizer_config.json, and the older
vocabulary files) and returns the number of token ids.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sentencepiece
import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from tokenizers.pre_tokenizers import ByteLevel

from tests.goldens.texts import AWKWARD, SENTENCES

BERT_SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
MPNET_SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")
ROBERTA_SPECIALS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")


def write_json(file: Path, value: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


def write_config(folder: Path, kind: str, max_tokens: int, **values: Any) -> None:
    """tokenizer_config.json."""
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": kind, "model_max_length": max_tokens, **values})


def corpus() -> Iterator[str]:
    """What the vocabularies are trained on."""
    for _ in range(3):
        yield from SENTENCES
    yield from (text for text in AWKWARD.values() if len(text) < 400)


def words(specials: tuple[str, ...]) -> list[str]:
    """A WordPiece vocabulary: specials, single characters alone and continued, frequent words of SENTENCES, sorted."""
    characters = sorted({c for text in SENTENCES[:49] for c in text.lower() if c.isascii() and not c.isspace()})
    counts: dict[str, int] = {}
    for text in SENTENCES[:49]:
        for word in text.lower().replace(".", "").replace(",", "").split():
            counts[word] = counts.get(word, 0) + 1
    frequent = sorted(word for word, count in counts.items() if count > 1 and len(word) > 1 and word.isalpha())
    return [*specials, *characters, *(f"##{c}" for c in characters), *frequent, "人", "工", "智", "北", "京"]


def wordpiece(folder: Path, max_tokens: int, kind: str = "BertTokenizer", unused: int = 0) -> int:
    """BERT's: vocab.txt and a tokenizer.json that has truncation and padding baked in, as some are published."""
    tokens = words((*BERT_SPECIALS, *(f"[unused{i}]" for i in range(unused))))
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in tokens), encoding="utf-8")
    library = Tokenizer(models.WordPiece({token: i for i, token in enumerate(tokens)}, unk_token="[UNK]"))
    library.normalizer = normalizers.BertNormalizer(lowercase=True)
    library.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    library.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", tokens.index("[CLS]")), ("[SEP]", tokens.index("[SEP]"))],
    )
    library.decoder = decoders.WordPiece()
    library.add_special_tokens(list(BERT_SPECIALS))
    library.enable_truncation(8)
    library.enable_padding(length=8)
    library.save(str(folder / "tokenizer.json"), pretty=False)
    names = {f"{token[1:-1].lower()}_token": token for token in BERT_SPECIALS}
    write_config(folder, kind, max_tokens, do_lower_case=True, **names)
    return len(tokens)


def mpnet(folder: Path, max_tokens: int) -> int:
    """MPNet's: BERT's words between RoBERTa's special tokens; an unknown word is [UNK]."""
    tokens = [*words((*MPNET_SPECIALS, "[UNK]")), "<mask>"]
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in tokens), encoding="utf-8")
    built = transformers.MPNetTokenizer(vocab={token: i for i, token in enumerate(tokens)})
    built.backend_tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    write_config(folder, "MPNetTokenizer", max_tokens, do_lower_case=True, pad_token="<pad>", unk_token="[UNK]")
    return len(tokens)


def _byte_pairs(size: int, specials: tuple[str, ...]) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Trained byte-level vocabulary and merges; the specials come first."""
    library = Tokenizer(models.BPE())
    library.pre_tokenizer = ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=list(specials), initial_alphabet=ByteLevel.alphabet(), show_progress=False
    )
    library.train_from_iterator(corpus(), trainer)
    model = json.loads(library.to_str())["model"]
    return model["vocab"], [tuple(pair) for pair in model["merges"]]


def _write_byte_pairs(folder: Path, vocab: dict[str, int], merges: list[tuple[str, str]]) -> None:
    (folder / "vocab.json").write_text(json.dumps(vocab, ensure_ascii=False), encoding="utf-8")
    lines = ["#version: 0.2", *(" ".join(pair) for pair in merges)]
    (folder / "merges.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def roberta(folder: Path, max_tokens: int) -> int:
    """RoBERTa's byte-level pairs; the mask token is written out with the space before it, as published."""
    vocab, merges = _byte_pairs(420, ROBERTA_SPECIALS)
    _write_byte_pairs(folder, vocab, merges)
    mask = AddedToken("<mask>", lstrip=True, special=True)
    built = transformers.RobertaTokenizer(vocab=vocab, merges=merges, mask_token=mask)
    built.backend_tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    write_config(folder, "RobertaTokenizer", max_tokens, add_prefix_space=False)
    return int(built.backend_tokenizer.get_vocab_size())


def modernbert(folder: Path, max_tokens: int) -> int:
    """ModernBERT's: byte-level pairs of composed text, runs of spaces as added tokens, BERT's special tokens."""
    vocab, merges = _byte_pairs(400, ())
    library = Tokenizer(models.BPE(vocab, merges))
    library.normalizer = normalizers.NFC()
    library.pre_tokenizer = ByteLevel(add_prefix_space=False)
    library.add_tokens([AddedToken(" " * n, normalized=True) for n in (4, 3, 2)])
    library.add_special_tokens([AddedToken(token, lstrip=token == "[MASK]") for token in BERT_SPECIALS])
    ids = [(token, library.token_to_id(token)) for token in ("[CLS]", "[SEP]")]
    library.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=ids
    )
    library.decoder = decoders.ByteLevel()
    library.save(str(folder / "tokenizer.json"), pretty=False)
    names = {f"{token[1:-1].lower()}_token": token for token in BERT_SPECIALS}
    write_config(folder, "PreTrainedTokenizerFast", max_tokens, **names)
    return int(library.get_vocab_size())


def qwen(folder: Path, max_tokens: int) -> int:
    """Qwen3-Embedding's: byte-level pairs of composed text, <|endoftext|> appended to every text."""
    vocab, merges = _byte_pairs(400, ())
    _write_byte_pairs(folder, vocab, merges)
    built = transformers.Qwen2Tokenizer(vocab=vocab, merges=merges)
    library = built.backend_tokenizer
    library.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    library.post_processor = processors.Sequence(
        [
            processors.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False),
            processors.TemplateProcessing(
                single="$A <|endoftext|>",
                pair="$A $B <|endoftext|>",
                special_tokens=[("<|endoftext|>", library.token_to_id("<|endoftext|>"))],
            ),
        ]
    )
    library.save(str(folder / "tokenizer.json"), pretty=False)
    ids = {library.token_to_id(token): token for token in ("<|endoftext|>", "<|im_start|>", "<|im_end|>")}
    added = {str(i): {"content": token, "special": True} for i, token in ids.items()}
    write_config(
        folder, "Qwen2Tokenizer", max_tokens, added_tokens_decoder=added, pad_token="<|endoftext|>",
        eos_token="<|im_end|>", padding_side="left",
    )  # fmt: skip
    return int(library.get_vocab_size())


def _train_sentencepiece(file: Path, **options: Any) -> None:
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=corpus(), model_writer=written, num_threads=1, minloglevel=2, **options
    )
    file.write_bytes(written.getvalue())


def xlm_roberta(folder: Path, max_tokens: int, normalization: str = "nmt_nfkc") -> int:
    """XLM-RoBERTa's: a sentencepiece unigram model under fairseq's ids."""
    _train_sentencepiece(
        folder / "sentencepiece.bpe.model", vocab_size=420, model_type="unigram", character_coverage=0.98,
        normalization_rule_name=normalization,
    )  # fmt: skip
    mask = {"__type": "AddedToken", "content": "<mask>", "lstrip": True, "normalized": False}
    write_config(folder, "XLMRobertaTokenizer", max_tokens, mask_token=mask)
    (folder / "tokenizer.json").unlink(missing_ok=True)
    built = transformers.XLMRobertaTokenizer.from_pretrained(folder)
    built.backend_tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False)])
    built.backend_tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    return int(built.backend_tokenizer.get_vocab_size())


def _published_merges(library: Tokenizer, model: Path) -> Tokenizer:
    """Merges in the order of Gemma's published file: by score, then the longer left half; newer classes go by id."""
    reader = sentencepiece.SentencePieceProcessor(model_file=str(model))
    scores = {reader.id_to_piece(i): reader.get_score(i) for i in range(reader.get_piece_size())}
    content = json.loads(library.to_str())
    merges = sorted(content["model"]["merges"], key=lambda m: (scores["".join(m)], len(m[0]), len(m[1])), reverse=True)
    content["model"]["merges"] = merges
    return Tokenizer.from_str(json.dumps(content))


def gemma(folder: Path, max_tokens: int) -> int:
    """Gemma's: a sentencepiece pair model with a token for each byte, <bos> before and <eos> behind every text."""
    _train_sentencepiece(
        folder / "tokenizer.model", vocab_size=700, model_type="bpe", byte_fallback=True, character_coverage=0.98,
        normalization_rule_name="identity", add_dummy_prefix=False, remove_extra_whitespaces=False,
        split_by_whitespace=False, pad_id=0, eos_id=1, bos_id=2, unk_id=3, pad_piece="<pad>", eos_piece="<eos>",
        bos_piece="<bos>", user_defined_symbols=["<mask>", "\n\n", "\n\n\n", "▁▁", "▁▁▁", "<start_of_turn>"],
    )  # fmt: skip
    write_config(folder, "GemmaTokenizer", max_tokens, add_bos_token=True, add_eos_token=True)
    (folder / "tokenizer.json").unlink(missing_ok=True)
    built = transformers.GemmaTokenizer.from_pretrained(folder)
    library = _published_merges(built.backend_tokenizer, folder / "tokenizer.model")
    library.post_processor = processors.TemplateProcessing(
        single="<bos>:0 $A:0 <eos>:0",
        pair="<bos>:0 $A:0 <eos>:0 <bos>:1 $B:1 <eos>:1",
        special_tokens=[(token, library.token_to_id(token)) for token in ("<bos>", "<eos>")],
    )
    library.save(str(folder / "tokenizer.json"), pretty=False)
    return int(library.get_vocab_size())
