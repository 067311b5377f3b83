"""Text to token ids, by the model's own tokenizer.json or what its older vocabulary files make.

Every text is tokenised by a call of its own on the caller's thread: the library's batch call starts as many threads as
there are cores, whatever cap the caller was given, and tokenising is some 2 % of the work of embedding.
"""

from __future__ import annotations

import base64
import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import tokenizers
from numpy.typing import NDArray
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer, Lowercase
from tokenizers.normalizers import Sequence as NormalizerSequence

from engine.errors import ModelError
from engine.published import MAX_VOCABULARY_BYTES, present, read_bytes, read_optional_json
from engine.sentencepiece import check_charsmap
from engine.vocabularies import build

I32 = NDArray[np.int32]

# A lone surrogate is no character and has no UTF-8; one for one, so that offsets keep counting.
_SURROGATE = re.compile("[\ud800-\udfff]")
_REPLACEMENT = "\ufffd"

# What composes to one character: a Hangul syllable in pieces, a kana and its voicing mark.
_DECOMPOSED = re.compile(
    "[\u1100-\u1112][\u1161-\u1175][\u11a8-\u11c2]?|[\uac00-\ud7a3][\u11a8-\u11c2]|[\u3046-\u30fd][\u3099\u309a]"
)

# What every tokenizer must get through: a word, and characters that hardly any vocabulary has.
PROBE = "probe \ufffd \u5b57 \U0001f991 \u0ee8"

# Longest piece of a document that is tokenised at once: an encoding weighs some 200 bytes a token.
PIECE_CHARS = 200_000

# Keys of tokenizer_config.json that override the normaliser of tokenizer.json in the reference, and its names for them.
_BERT_OVERRIDES = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
}


@dataclass(frozen=True)
class Template:
    """The special tokens before, between and behind texts, and the type of each text's own tokens.

    The library adds special tokens itself, but to a text that it has cut it does so for every piece that was cut off,
    and to two such texts for every pair of pieces: seconds, where this takes microseconds.
    """

    ids: tuple[I32, ...]
    types: tuple[I32, ...]
    text_types: tuple[int, ...]

    @classmethod
    def of(cls, library: tokenizers.Tokenizer, texts: int) -> Template:
        """Seen on a probe; ValueError where the tokens of a text do not come through as they were."""
        probe = library.encode(PROBE, add_special_tokens=False)
        encoding = library.post_process(probe) if texts == 1 else library.post_process(probe, probe)
        ids, types = np.array(encoding.ids, np.int32), np.array(encoding.type_ids, np.int32)
        size = len(probe)
        own = np.flatnonzero(np.array(encoding.special_tokens_mask) == 0)
        if size == 0 or not np.array_equal(ids[own], np.tile(np.array(probe.ids, np.int32), texts)):
            raise ValueError("it changes a text's own tokens where it adds special ones, which is not computed here")
        ends = [0, *(end for i in range(texts) for end in (own[i * size], own[(i + 1) * size - 1] + 1)), len(ids)]
        gaps = [slice(ends[2 * i], ends[2 * i + 1]) for i in range(texts + 1)]
        text_types = tuple(int(types[own[i * size]]) for i in range(texts))
        return cls(tuple(ids[gap] for gap in gaps), tuple(types[gap] for gap in gaps), text_types)

    def fill(self, *texts: I32) -> tuple[I32, I32]:
        """Ids and types with these texts' tokens in their places."""
        ids, types = [self.ids[0]], [self.types[0]]
        for i, text in enumerate(texts):
            ids += [text, self.ids[i + 1]]
            types += [np.full(len(text), self.text_types[i], np.int32), self.types[i + 1]]
        return np.concatenate(ids), np.concatenate(types)


class Tokenizer:
    """A model's tokenizer without the truncation and padding baked into its file. Thread-safe.

    max_tokens: longest encoding, special tokens included. special_tokens: how many of them one text gets.
    vocab_size: one more than the highest id that can come out.
    """

    def __init__(self, tokenizer: tokenizers.Tokenizer, max_tokens: int, file: Path | None = None):
        self._tokenizer = tokenizer
        self._file = file
        self.max_tokens = max_tokens
        self.special_tokens = int(tokenizer.num_special_tokens_to_add(False))
        added = tokenizer.get_added_tokens_decoder()
        self._special_ids = {number for number, token in added.items() if token.special}
        self.vocab_size = 1 + max(tokenizer.get_vocab(with_added_tokens=True).values(), default=0)

    needs_special_tokens = True

    @classmethod
    def open(
        cls, folder: Path, max_tokens: int, table_rows: int | None = None, *, model_type: str = "",
        lowercase: bool = False,
    ) -> Self:  # fmt: skip
        """Read tokenizer.json of a model folder, else the older vocabulary files of its tokenizer's class.

        table_rows: rows of the model's word table; ids past it are refused here, before anything looks them up.
        model_type: the family, which says the class where the folder does not.
        lowercase: lower the text first where the tokenizer does not do so anyway.
        Raises ModelError where the files are missing, broken, or do not fit the model.
        """
        file = folder / "tokenizer.json"
        try:
            published = present(file)
            if published:
                library = _read(read_bytes(file, MAX_VOCABULARY_BYTES))
                library.no_truncation()
                library.no_padding()
                _apply_config(library, folder / "tokenizer_config.json")
            else:
                library = build(folder, model_type)
            if lowercase:
                _lower(library)
            found = cls(library, max_tokens, file if published else None)
            _ = found._template  # some faults, such as a missing token for unknown words, show only in use
        except (ModelError, KeyboardInterrupt):
            raise
        except BaseException as error:  # the library raises bare Exception, and its panics are not even that
            raise ModelError(f"{file} is not a usable tokenizer ({_reason(error)}).") from error
        if found.special_tokens == 0 and cls.needs_special_tokens:
            raise ModelError(
                f"{file}: key 'post_processor' adds no special tokens, which the model was trained to see."
            )
        if max_tokens <= found.special_tokens:
            raise ModelError(
                f"{file} adds {found.special_tokens} special tokens to a text, so {max_tokens} in all leave none for "
                f"the text; at least {found.special_tokens + 1} are needed."
            )
        dropout = getattr(library.model, "dropout", None)
        if dropout:
            raise ModelError(f"{file}: key 'dropout' is {dropout}: a text would have other tokens at each reading.")
        if table_rows is not None:
            found._check_rows(table_rows, found._template)
        return found

    def check_pairs(self, rows: int, type_rows: int | None) -> None:
        """Refuse what `encode_pairs` gives where it is no row of the word table, or of that of token types."""
        template = self._pair_template
        self._check_rows(rows, template)
        highest = max(*template.text_types, *(int(types.max(initial=0)) for types in template.types))
        if type_rows is not None and highest >= type_rows:
            raise ModelError(
                f"{self._file or 'The tokenizer'} has token types up to {highest}, "
                f"but config.json's 'type_vocab_size' is {type_rows}."
            )

    def _check_rows(self, rows: int, template: Template) -> None:
        """Refuse ids that are no rows of a table: those of the vocabulary, and those of added special tokens."""
        highest = max(self.vocab_size - 1, *(int(ids.max(initial=0)) for ids in template.ids))
        if highest >= rows:
            raise ModelError(
                f"{self._file or 'The tokenizer'} has token ids up to {highest}, "
                f"but config.json's 'vocab_size' is {rows}."
            )

    def published(self) -> bytes:
        """tokenizer.json: as it was read, or what the older files make of it."""
        return self._tokenizer.to_str().encode("utf-8") if self._file is None else self._file.read_bytes()

    def encode(self, texts: Sequence[str]) -> list[I32]:
        """Token ids of each text: (t,) int32, special tokens included, t <= max_tokens.

        A longer text loses tokens from its end, before the closing special token, as the reference does it.
        """
        room = self.max_tokens - self.special_tokens
        return [self._template.fill(self._ids(text)[:room])[0] for text in texts]

    def encode_marked(self, texts: Sequence[str], marker: Sequence[int], max_tokens: int) -> list[I32]:
        """The same with tokens put behind the opening special ones: (t,) int32, t <= max_tokens."""
        before, after = self._template.ids
        start = np.concatenate([before, np.array(marker, np.int32)])
        room = max_tokens - len(start) - len(after)
        return [np.concatenate([start, self._ids(text)[:room], after]) for text in texts]

    def token_id(self, token: str) -> int | None:
        """The id of one token by its text; None where the vocabulary does not have it."""
        found = self._tokenizer.token_to_id(token)
        return None if found is None else int(found)

    def encode_pairs(self, first: str, others: Sequence[str]) -> list[tuple[I32, I32]]:
        """Token ids and types of one text with each of the others: (t,) int32 both, t <= max_tokens.

        Where a pair is too long the longer text loses tokens from its end until it is no longer than the other; then
        both do.
        """
        template = self._pair_template
        room = self.max_tokens - sum(map(len, template.ids))
        if room < 2:
            raise ModelError(f"A model of {self.max_tokens} tokens has no room for two texts.")
        one, found = self._ids(first), []
        for other in others:
            two = self._ids(other)
            kept = min(len(one), len(two), room // 2)  # of the shorter one
            limits = (kept, room - kept) if len(one) <= len(two) else (room - kept, kept)
            found.append(template.fill(one[: limits[0]], two[: limits[1]]))
        return found

    def _ids(self, text: str) -> I32:
        """Every token of a text, without special tokens."""
        return np.array(self._encode(_clean(text)[0]).ids, np.int32)

    def _encode(self, text: str) -> tokenizers.Encoding:
        """The library's encoding of a text; ModelError where its rules fail on it, as a regular expression may."""
        try:
            return self._tokenizer.encode(text, add_special_tokens=False)
        except (KeyboardInterrupt, MemoryError):
            raise
        except BaseException as error:  # bare Exception, and panics, which are not even that
            file = self._file or "The tokenizer"
            raise ModelError(f"{file} cannot read a text of {len(text)} characters ({_reason(error)}).") from error

    @cached_property
    def _template(self) -> Template:
        return Template.of(self._tokenizer, 1)

    @cached_property
    def _pair_template(self) -> Template:
        try:
            return Template.of(self._tokenizer, 2)
        except ValueError as error:
            raise ModelError(f"{self._file or 'The tokenizer'} is not usable for two texts ({error}).") from error

    def spans(self, text: str) -> I32:
        """Where each token of the whole text lies: (t, 2) int32 start and end in characters of `text`.

        Special tokens are left out and nothing is cut. Texts past PIECE_CHARS are tokenised in pieces that end behind
        white space where there is some, so memory stays bounded; tokens never lie across two pieces.
        """
        found: list[I32] = []
        cleaned, origin = _clean(text)
        for start, stop in _pieces(cleaned):
            offsets = self._encode(cleaned[start:stop]).offsets
            found.append(np.array(offsets, np.int32).reshape(-1, 2) + np.int32(start))
        spans = np.concatenate(found)
        return spans if origin is None else origin[spans]

    def prompt_tokens(self, prompt: str) -> int:
        """How many tokens at the start of a text are this prompt's, an opening special token included."""
        ids = self.encode([prompt])[0]
        return len(ids) - int(len(ids) > 0 and int(ids[-1]) in self._special_ids)

    def count(self, text: str) -> int:
        """How many tokens a text has, special tokens left out."""
        return len(self.spans(text))

    def excess(self, text: str) -> int:
        """How many tokens of a text `encode` leaves out because it is too long."""
        return max(0, self.count(text) - (self.max_tokens - self.special_tokens))


class BagTokenizer(Tokenizer):
    """What static models are made with: no special tokens, and a text's end cut before it is tokenised.

    drop_unknown: whether tokens that the vocabulary does not know are left out, as model2vec does it.
    """

    needs_special_tokens = False
    drop_unknown = True

    def __init__(self, tokenizer: tokenizers.Tokenizer, max_tokens: int, file: Path | None = None):
        super().__init__(tokenizer, max_tokens, file)
        self.special_tokens = 0
        lengths = [len(token) for token in tokenizer.get_vocab(with_added_tokens=True)]
        self._longest_chars = max_tokens * int(np.median(lengths)) if lengths else 0
        model = json.loads(tokenizer.to_str())["model"]
        unknown = model.get("unk_id") if model.get("unk_token") is None else tokenizer.token_to_id(model["unk_token"])
        self._unknown: int | None = unknown

    def encode(self, texts: Sequence[str]) -> list[I32]:
        """Token ids of each text: (t,) int32, t <= max_tokens and maybe 0."""
        ids: list[I32] = []
        for text in texts:
            cut = text[: self._longest_chars] if self.drop_unknown else text
            found = np.array(self._encode(_clean(cut)[0]).ids[: self.max_tokens], np.int32)
            ids.append(found[found != self._unknown] if self.drop_unknown and self._unknown is not None else found)
        return ids

    def excess(self, text: str) -> int:
        """The same; the characters that are cut off count as well."""
        return max(super().excess(text), self.count(text[self._longest_chars :]) if self.drop_unknown else 0)


class StaticEmbeddingTokenizer(BagTokenizer):
    """The same for the StaticEmbedding module of sentence-transformers, which keeps unknown tokens and cuts nothing."""

    drop_unknown = False


def _reason(error: BaseException) -> str:
    """What the library says of an error, as a part of a sentence: the first of its lines."""
    return next(iter(str(error).splitlines()), type(error).__name__)


def _read(data: bytes) -> tokenizers.Tokenizer:
    """The library's tokenizer from the bytes of tokenizer.json.

    A WordPiece vocabulary is handed over by a call of its own: reading the file at one go holds the interpreter four
    times as long (40 ms and more for 30,000 words), and a window on another thread would be felt to stop.
    """
    content: Any = json.loads(data)
    if isinstance(content, dict):
        _check_charsmaps(content.get("normalizer"))
    model = content["model"] if isinstance(content, dict) and isinstance(content.get("model"), dict) else {}
    vocab, added = model.get("vocab"), content.get("added_tokens") if isinstance(content, dict) else None
    if model.get("type") != "WordPiece" or not isinstance(vocab, dict) or not isinstance(added, list):
        return tokenizers.Tokenizer.from_buffer(data)
    kept = {token["content"]: token["id"] for token in added} | {model["unk_token"]: vocab.get(model["unk_token"])}
    if any(vocab.get(word) != number for word, number in kept.items()):
        return tokenizers.Tokenizer.from_buffer(data)  # words beyond the vocabulary get their ids from it
    small = {**content, "model": {**model, "vocab": kept}}
    library = tokenizers.Tokenizer.from_str(json.dumps(small))
    library.model = WordPiece(
        vocab,
        unk_token=model["unk_token"],
        max_input_chars_per_word=model["max_input_chars_per_word"],
        continuing_subword_prefix=model["continuing_subword_prefix"],
    )
    return library


def is_read_composed(text: str) -> bool:
    """Whether a text holds Hangul or kana taken apart, which the model's own tokenizer would read as other tokens."""
    return _clean(text)[1] is not None


def _check_charsmaps(normalizer: Any) -> None:
    """Look at the tables of a normaliser before the library does; ValueError where one is not what it says."""
    if not isinstance(normalizer, dict):
        return
    charsmap = normalizer.get("precompiled_charsmap")
    if isinstance(charsmap, str) and charsmap:
        check_charsmap(base64.b64decode(charsmap))
    for inner in normalizer.get("normalizers") or ():
        _check_charsmaps(inner)


def _clean(text: str) -> tuple[str, I32 | None]:
    """The text as it is tokenised: no lone surrogates, Hangul and kana composed.

    File systems hand out these two scripts decomposed, and a vocabulary that was made of composed text knows next to
    nothing of the pieces. With it, where that changed the text, for every character the place in the text that it
    came from, and the text's end: (len + 1,) int32.
    """
    if text.isascii():
        return text, None
    text = _SURROGATE.sub(_REPLACEMENT, text)
    parts, places, end = [], [], 0
    for match in _DECOMPOSED.finditer(text):
        composed = unicodedata.normalize("NFC", match.group())
        parts += [text[end : match.start()], composed]
        # A pair that has no composed form stays as long as it was.
        places += [np.arange(end, match.start()), match.start() + np.arange(len(composed))]
        end = match.end()
    if not parts:
        return text, None
    places.append(np.arange(end, len(text) + 1))
    return "".join([*parts, text[end:]]), np.concatenate(places).astype(np.int32)


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Character ranges that cover the text, each at most PIECE_CHARS long; one empty range for the empty text."""
    start = 0
    while len(text) - start > PIECE_CHARS:
        stop = start + PIECE_CHARS
        # Looking back over a tenth of a piece finds a line's or a word's end in any prose.
        for mark in ("\n", " "):
            cut = text.rfind(mark, stop - PIECE_CHARS // 10, stop)
            if cut >= 0:
                stop = cut + 1
                break
        yield start, stop
        start = stop
    yield start, len(text)


def _lower(library: tokenizers.Tokenizer) -> None:
    """Put a lowering normaliser before the file's own, unless that lowers already."""
    normalizer = library.normalizer
    described = "" if normalizer is None else normalizer.__getstate__().decode("utf-8")
    if '"lowercase":true' in described or '"Lowercase"' in described:
        return
    library.normalizer = NormalizerSequence([Lowercase(), *([] if normalizer is None else [normalizer])])


def _apply_config(library: tokenizers.Tokenizer, file: Path) -> None:
    """Let tokenizer_config.json override a BERT normaliser, as the reference's tokenizer class does."""
    normalizer = library.normalizer
    if not isinstance(normalizer, BertNormalizer):
        return
    config = read_optional_json(file)
    for key, attribute in _BERT_OVERRIDES.items():
        if key not in config:
            continue
        value = config[key]
        if not isinstance(value, bool) and not (value is None and key == "strip_accents"):
            raise ModelError(f"{file}: key {key!r} is {value!r}, neither true nor false.")
        setattr(normalizer, attribute, value)
    library.normalizer = normalizer
