"""How an encoder reads texts: to token ids, with what a role, a prompt or late interaction adds to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.arguments import check_text
from engine.errors import EngineError, ModelError
from engine.folder import ModelFolder
from engine.late import Expansion, LateInteraction
from engine.prompts import PROMPT_NAMES, Role
from engine.published import either, read_optional_json
from engine.tokenizer import Tokenizer

I32 = NDArray[np.int32]


@dataclass(frozen=True)
class Reading:
    """Token ids of each text, and what an encoder must know besides.

    prompt: how many tokens at the start of every text are its prompt. visible: how many tokens of each text are
    attended to, None for all. kept: which tokens' vectors count, None for all.
    """

    ids: list[I32]
    prompt: int = 0
    visible: I32 | None = None
    kept: list[NDArray[np.bool_]] | None = None


class Reader:
    """Reads texts for single vectors.

    max_tokens: of a document, special tokens included; special_tokens: how many of them it gets.
    """

    def __init__(self, folder: ModelFolder, tokenizer: Tokenizer):
        self._folder, self._tokenizer = folder, tokenizer
        self.max_tokens, self.special_tokens = tokenizer.max_tokens, tokenizer.special_tokens

    def read(self, texts: Sequence[str], role: Role | None, prompt: str | None = None) -> Reading:
        """role: adds the model's prefix for it, None its default one; prompt: a prefix to use instead."""
        _check(role, prompt)
        prefix = self.prefix(role) if prompt is None else prompt
        if not prefix:
            return Reading(self._tokenizer.encode(texts))
        count = self._tokenizer.prompt_tokens(prefix)
        if count >= self._tokenizer.max_tokens - 1:
            raise EngineError(f"A prompt of {count} tokens leaves {self._folder.name} no room for a text.")
        return Reading(self._tokenizer.encode([prefix + text for text in texts]), count)

    def room(self, prefix: str) -> int:
        """Tokens of a text that fit behind a prefix."""
        return self.max_tokens - self.special_tokens - (self._tokenizer.count(prefix) if prefix else 0)

    def prefix(self, role: Role | None) -> str:
        """What stands before a text in this role."""
        return self._folder.default_prompt if role is None else self._folder.prompts[role]


class LateReader(Reader):
    """Reads queries and documents for late interaction."""

    def __init__(self, folder: ModelFolder, tokenizer: Tokenizer, late: LateInteraction):
        super().__init__(folder, tokenizer)
        self._late = late
        self._markers: dict[Role, list[int]] = {role: self._find(marker) for role, marker in late.markers.items()}
        self.max_tokens = self._limit(late.lengths["document"])
        self.special_tokens += len(self._markers["document"])
        skipped = {tokenizer.token_id(word) for word in late.skipped}
        self._skipped = np.array(sorted(number for number in skipped if number is not None), np.int32)
        self._filler = None if late.expansion is None else self._find_filler(late.expansion)

    def read(self, texts: Sequence[str], role: Role | None, prompt: str | None = None) -> Reading:
        """As above; a role is needed, for queries and documents are read differently."""
        _check(role, prompt)
        if role is None:
            raise EngineError(f"{self._folder.name} reads queries and documents differently: give one of the roles.")
        prefix = self.prefix(role) if prompt is None else prompt
        expansion = self._late.expansion if role == "query" else None
        cut = self._late.lengths[role] if expansion is None or not expansion.cut else expansion.length
        texts = [prefix + text for text in texts]
        ids = self._tokenizer.encode_marked(texts, self._markers[role], self._limit(cut))
        visible, kept = None, None
        if expansion is not None:
            if not expansion.attend:
                visible = np.array([len(own) for own in ids], np.int32)
            ids = [self._fill(own, self._limit(expansion.length)) for own in ids]
        if role in self._late.skipped_in and len(self._skipped):
            kept = [~np.isin(own, self._skipped) for own in ids]
        return Reading(ids, visible=visible, kept=kept)

    def _fill(self, ids: I32, length: int) -> I32:
        missing = max(0, length - len(ids))
        return np.concatenate([ids, np.full(missing, self._filler, np.int32)])

    def prefix(self, role: Role | None) -> str:
        """The prompt of a role; with the marker where that is no token of the vocabulary but plain text."""
        if role is None:
            return ""
        marker = self._late.markers[role]
        own = super().prefix(role).removeprefix(marker)
        return own if self._markers[role] else marker + own

    def _limit(self, length: int | None) -> int:
        longest = self._tokenizer.max_tokens
        return longest if length is None else min(length, longest)

    def _find(self, marker: str) -> list[int]:
        """The token of a marker, which may have been published with a space behind it; none where it is no token."""
        for text in (marker, marker.strip()):
            found = self._tokenizer.token_id(text) if text else None
            if found is not None:
                return [found]
        return []

    def _find_filler(self, expansion: Expansion) -> int:
        """The token that fills queries up: the one named, else the mask token, else the one that ends a text."""
        folder = self._folder.transformer
        files = [folder / "tokenizer_config.json", folder / "special_tokens_map.json"]
        settings = [read_optional_json(file) for file in files]
        masks, ends = ([own.get(key) for own in settings] for key in ("mask_token", "eos_token"))
        named = [*masks, "[MASK]", "<mask>", *ends] if expansion.token is None else [expansion.token]
        for value in named:
            name = value.get("content") if isinstance(value, dict) else value
            found = self._tokenizer.token_id(name) if isinstance(name, str) else None
            if found is not None:
                return found
        raise ModelError(f"{files[0]}: key 'mask_token' names no token to fill queries up with.")


def _check(role: Role | None, prompt: str | None) -> None:
    if role is not None and role not in tuple(PROMPT_NAMES):
        raise EngineError(f"role is {role!r}; it can be {either(PROMPT_NAMES)}, or None.")
    if prompt is not None:
        check_text("prompt", prompt)


def reader_of(folder: ModelFolder, tokenizer: Tokenizer) -> Reader:
    """The reader that a folder's model calls for."""
    return Reader(folder, tokenizer) if folder.late is None else LateReader(folder, tokenizer, folder.late)
