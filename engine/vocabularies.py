"""Tokenizers built from the older vocabulary files, for folders published without tokenizer.json.

What the transformers library makes of the same files, class by class:
https://github.com/huggingface/transformers/blob/v4.46.0/src/transformers/convert_slow_tokenizer.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from engine import sentencepiece
from engine.errors import ModelError
from engine.published import MAX_VOCABULARY_BYTES, present, read_json, read_optional_json
from engine.sentencepiece import Piece, check_charsmap

SENTENCEPIECE_FILES = ("sentencepiece.bpe.model", "sentencepiece.model", "spm.model", "tokenizer.model")

# How Qwen2 splits a text before pairing bytes.
QWEN_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass(frozen=True)
class Files:
    """The folder, and what its tokenizer_config.json and special_tokens_map.json say together."""

    folder: Path
    settings: Mapping[str, Any]

    def token(self, role: str, default: str, *, lstrip: bool = False) -> AddedToken:
        """A special token by its role, as the settings have it or as the class has it."""
        return _token(self.settings.get(f"{role}_token") or default, lstrip)

    def flag(self, key: str, default: bool) -> bool:
        """A setting that must be true or false."""
        value = self.settings.get(key, default)
        if not isinstance(value, bool):
            raise ModelError(
                f"{self.folder / 'tokenizer_config.json'}: key {key!r} is {value!r}, neither true nor false."
            )
        return value

    def find(self, *names: str) -> Path:
        """The first of these files that is there."""
        for name in names:
            if present(self.folder / name):
                return self.folder / name
        raise ModelError(f"{self.folder / 'tokenizer.json'} is missing, and so is {names[0]} to build it from.")


def build(folder: Path, model_type: str) -> Tokenizer:
    """The tokenizer of a folder without tokenizer.json; ModelError where its class is not known here."""
    settings: dict[str, Any] = {}
    for name in ("special_tokens_map.json", "tokenizer_config.json"):
        settings |= {key: value for key, value in read_optional_json(folder / name).items() if value is not None}
    named = settings.get("tokenizer_class", CLASS_OF_FAMILY.get(model_type))
    builder = BUILDERS.get(named.removesuffix("Fast")) if isinstance(named, str) else None
    if builder is None:
        raise ModelError(
            f"{folder / 'tokenizer.json'} is missing, and the older files of {named or 'an unnamed tokenizer'} are not "
            f"read here; these are: {', '.join(BUILDERS)}."
        )
    files = Files(folder, settings)
    library = builder(files)
    _add_tokens(library, files)
    return library


def _token(value: Any, lstrip: bool = False) -> AddedToken:
    """A special token from its published form: the text alone, or an object with its manners."""
    if isinstance(value, Mapping):
        flags = {key: bool(value[key]) for key in ("lstrip", "rstrip", "single_word", "normalized") if key in value}
        return AddedToken(str(value.get("content", "")), special=True, **{"normalized": False, **flags})
    return AddedToken(str(value), lstrip=lstrip, normalized=False, special=True)


def _add_tokens(library: Tokenizer, files: Files) -> None:
    """Tokens beyond the vocabulary, each under the id that it was published with."""
    listed = files.settings.get("added_tokens_decoder") or {}
    file = files.folder / "tokenizer_config.json"
    if not isinstance(listed, dict) or not all(number.isdigit() for number in listed):
        raise ModelError(f"{file}: key 'added_tokens_decoder' is not an object of token ids.")
    wanted = {int(number): _listed(value) for number, value in listed.items()}
    for text, number in read_optional_json(files.folder / "added_tokens.json").items():
        if type(number) is not int:
            raise ModelError(f"{files.folder / 'added_tokens.json'}: key {text!r} is {number!r}, not a token id.")
        wanted.setdefault(number, AddedToken(text, normalized=False, special=False))
    for number, token in sorted(wanted.items()):
        add = library.add_special_tokens if token.special else library.add_tokens
        add([token])
        if library.token_to_id(token.content) != number:
            raise ModelError(
                f"{file}: key 'added_tokens_decoder' gives {token.content!r} the id {number}, but the vocabulary "
                f"makes it {library.token_to_id(token.content)}."
            )


def _listed(value: Any) -> AddedToken:
    token = _token(value)
    token.special = bool(value.get("special", False)) if isinstance(value, Mapping) else False
    return token


def _id(library: Tokenizer, token: AddedToken, file: Path) -> int:
    number = library.token_to_id(token.content)
    if number is None:
        raise ModelError(f"{file} lacks the token {token.content!r}.")
    return number


def _words(file: Path) -> dict[str, int]:
    """vocab.txt: one token a line, its id the line's number."""
    try:
        lines = file.read_text(encoding="utf-8").split("\n")
    except (OSError, ValueError) as error:
        raise ModelError(f"{file} cannot be read ({error}).") from error
    return {line: i for i, line in enumerate(lines[:-1] if lines[-1] == "" else lines)}


def _wordpiece(files: Files, file: Path, unknown: AddedToken) -> Tokenizer:
    library = Tokenizer(models.WordPiece(_words(file), unk_token=unknown.content, max_input_chars_per_word=100))
    library.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=files.flag("tokenize_chinese_chars", True),
        strip_accents=files.settings.get("strip_accents"),
        lowercase=files.flag("do_lower_case", True),
    )
    library.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    library.decoder = decoders.WordPiece()
    return library


def _bert(files: Files) -> Tokenizer:
    file = files.find("vocab.txt")
    tokens = {role: files.token(role, f"[{role.upper()}]") for role in ("unk", "sep", "pad", "cls", "mask")}
    library = _wordpiece(files, file, tokens["unk"])
    first, last = tokens["cls"], tokens["sep"]
    library.post_processor = processors.TemplateProcessing(
        single=f"{first.content} $A {last.content}",
        pair=f"{first.content} $A {last.content} $B:1 {last.content}:1",
        special_tokens=[(token.content, _id(library, token, file)) for token in (first, last)],
    )
    library.add_special_tokens(list(tokens.values()))
    return library


def _mpnet(files: Files) -> Tokenizer:
    file = files.find("vocab.txt")
    unknown = files.token("unk", "[UNK]")
    return _with_roberta_template(files, file, _wordpiece(files, file, unknown), unknown, add_prefix_space=False)


def _with_roberta_template(
    files: Files, file: Path, library: Tokenizer, unknown: AddedToken, *, add_prefix_space: bool
) -> Tokenizer:
    first, last, pad = files.token("cls", "<s>"), files.token("sep", "</s>"), files.token("pad", "<pad>")
    library.post_processor = processors.RobertaProcessing(
        (last.content, _id(library, last, file)),
        (first.content, _id(library, first, file)),
        trim_offsets=True,
        add_prefix_space=add_prefix_space,
    )
    library.add_special_tokens([first, pad, last, unknown, files.token("mask", "<mask>", lstrip=True)])
    return library


def _byte_pairs(files: Files) -> tuple[Tokenizer, Path]:
    """vocab.json and merges.txt: byte-level pairs (Radford et al. 2019)."""
    file, merges = files.find("vocab.json"), files.find("merges.txt")
    vocab = read_json(file, MAX_VOCABULARY_BYTES)
    try:
        lines = merges.read_text(encoding="utf-8").split("\n")
    except (OSError, ValueError) as error:
        raise ModelError(f"{merges} cannot be read ({error}).") from error
    body = lines[1:] if lines[0].startswith("#version") else lines
    pairs = [(left, right) for left, _, right in (line.partition(" ") for line in body if line)]
    whole = all(left and right and " " not in right for left, right in pairs)
    if not whole or not all(type(number) is int for number in vocab.values()):
        raise ModelError(f"{file} and {merges.name} are not a vocabulary of byte pairs.")
    try:
        model = models.BPE(vocab, pairs, continuing_subword_prefix="", end_of_word_suffix="", fuse_unk=False)
    except Exception as error:  # the library raises nothing more exact
        raise ModelError(f"{merges} does not fit {file.name} ({error}).") from error
    library = Tokenizer(model)
    library.decoder = decoders.ByteLevel()
    return library, file


def _roberta(files: Files) -> Tokenizer:
    library, file = _byte_pairs(files)
    space = files.flag("add_prefix_space", False)
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=space)
    return _with_roberta_template(files, file, library, files.token("unk", "<unk>"), add_prefix_space=space)


def _qwen(files: Files) -> Tokenizer:
    """Qwen2's, with the end of text behind every text: what the embedding models of this name were trained to see."""
    library, _ = _byte_pairs(files)
    library.normalizer = normalizers.NFC()
    library.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(QWEN_PATTERN), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    end = files.token("pad", "<|endoftext|>")
    library.add_special_tokens([end])
    library.post_processor = processors.TemplateProcessing(
        single=f"$A {end.content}",
        pair=f"$A $B {end.content}",
        special_tokens=[(end.content, library.token_to_id(end.content))],
    )
    return library


def _xlm_roberta(files: Files) -> Tokenizer:
    """A sentencepiece unigram model whose ids fairseq has shifted by one, with a mask token behind them."""
    file = files.find(*SENTENCEPIECE_FILES[:-1])
    model = sentencepiece.read_model(file)
    if model.kind != sentencepiece.UNIGRAM:
        raise ModelError(f"{file} is no unigram model.")
    tokens = [files.token("bos", "<s>"), files.token("pad", "<pad>"), files.token("eos", "</s>")]
    tokens += [files.token("unk", "<unk>"), files.token("mask", "<mask>", lstrip=True)]
    vocab = [(token.content, 0.0) for token in tokens[:4]]
    vocab += [(piece.text, piece.score) for piece in model.pieces[3:]]
    library = Tokenizer(models.Unigram([*vocab, (tokens[4].content, 0.0)], unk_id=3, byte_fallback=False))
    if model.charsmap:
        try:
            check_charsmap(model.charsmap)
        except ValueError as error:
            raise ModelError(f"{file} is not a usable tokenizer ({error}).") from error
        library.normalizer = normalizers.Precompiled(model.charsmap)
    library.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")]
    )
    library.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    first, last = files.token("cls", "<s>"), files.token("sep", "</s>")
    library.post_processor = processors.TemplateProcessing(
        single=f"{first.content} $A {last.content}",
        pair=f"{first.content} $A {last.content} {last.content} $B {last.content}",
        special_tokens=[(token.content, _id(library, token, file)) for token in (first, last)],
    )
    library.add_special_tokens(tokens)
    return library


def _gemma(files: Files) -> Tokenizer:
    """A sentencepiece pair model with a token for each byte; what opens and closes a text is as the settings say."""
    file = files.find(SENTENCEPIECE_FILES[-1])
    model = sentencepiece.read_model(file)
    if model.kind != sentencepiece.BPE:
        raise ModelError(f"{file} is no pair model.")
    vocab = {piece.text: i for i, piece in enumerate(model.pieces)}
    unknown = files.token("unk", "<unk>")
    library = Tokenizer(
        models.BPE(vocab, _merges(model.pieces), unk_token=unknown.content, fuse_unk=True, byte_fallback=True)
    )
    library.normalizer = normalizers.Replace(" ", "▁")
    library.pre_tokenizer = pre_tokenizers.Split(" ", behavior="merged_with_previous")
    library.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    for piece in model.pieces:
        if piece.kind in (sentencepiece.CONTROL, sentencepiece.UNKNOWN):
            library.add_special_tokens([AddedToken(piece.text, normalized=False, special=True)])
        elif piece.kind == sentencepiece.USER_DEFINED:
            library.add_tokens([AddedToken(piece.text, normalized=False, special=False)])
    first, last = files.token("bos", "<bos>"), files.token("eos", "<eos>")
    before = [first] * files.flag("add_bos_token", True)
    after = [last] * files.flag("add_eos_token", False)
    single = " ".join([*(f"{t.content}:0" for t in before), "$A:0", *(f"{t.content}:0" for t in after)])
    pair = " ".join([*(f"{t.content}:1" for t in before), "$B:1", *(f"{t.content}:1" for t in after)])
    library.post_processor = processors.TemplateProcessing(
        single=single,
        pair=f"{single} {pair}",
        special_tokens=[(token.content, _id(library, token, file)) for token in (*before, *after)],
    )
    library.add_special_tokens([files.token("mask", "<mask>")] * ("<mask>" in vocab))
    return library


def _merges(pieces: Sequence[Piece]) -> list[tuple[str, str]]:
    """Every way to make a piece of two others, the best piece first: sentencepiece keeps scores and no merges."""
    texts = {piece.text for piece in pieces}
    found = []
    for number, piece in enumerate(pieces):
        for cut in range(1, len(piece.text)):
            left, right = piece.text[:cut], piece.text[cut:]
            if left in texts and right in texts:
                # Equal scores in the order of Gemma's published merges: the longer left half first.
                found.append((-piece.score, -len(left), -len(right), number, left, right))
    return [(left, right) for *_, left, right in sorted(found)]


# The class that tokenizer_config.json names; its fast twin has the same files.
BUILDERS: dict[str, Callable[[Files], Tokenizer]] = {
    "BertTokenizer": _bert,
    "DistilBertTokenizer": _bert,
    "GemmaTokenizer": _gemma,
    "MPNetTokenizer": _mpnet,
    "Qwen2Tokenizer": _qwen,
    "RobertaTokenizer": _roberta,
    "XLMRobertaTokenizer": _xlm_roberta,
}

# What a folder is read with that names no class.
CLASS_OF_FAMILY = {
    "bert": "BertTokenizer",
    "distilbert": "DistilBertTokenizer",
    "gemma3_text": "GemmaTokenizer",
    "mpnet": "MPNetTokenizer",
    "nomic_bert": "BertTokenizer",
    "qwen3": "Qwen2Tokenizer",
    "roberta": "RobertaTokenizer",
    "xlm-roberta": "XLMRobertaTokenizer",
}
