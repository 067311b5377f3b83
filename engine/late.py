"""Late interaction (ColBERT): how a checkpoint marks queries and documents, and which of its tokens count.

Papers: Khattab and Zaharia 2020, https://arxiv.org/abs/2004.12832; Santhanam et al. 2022,
https://arxiv.org/abs/2112.01488. Checkpoints are read as https://github.com/stanford-futuredata/ColBERT, PyLate and
sentence-transformers publish them.
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.errors import ModelError
from engine.prompts import FILE, Role
from engine.published import either, read_json, read_optional_json

QUERY_TOKENS = 32  # of a query, where a checkpoint that fills queries up does not say how far

# Keys of config_sentence_transformers.json by which PyLate's checkpoints are known.
PYLATE_KEYS = (
    "query_prefix", "document_prefix", "query_length", "document_length", "attend_to_expansion_tokens",
    "do_query_expansion", "skiplist_words",
)  # fmt: skip
STRATEGIES = ("fixed", "min")


@dataclass(frozen=True)
class Expansion:
    """Queries filled up with mask tokens to `length`. cut: whether a longer query is cut there.

    attend: whether the other tokens see the mask tokens. token: the one to fill with, None for the mask token.
    """

    length: int
    cut: bool = True
    attend: bool = False
    token: str | None = None


@dataclass(frozen=True)
class LateInteraction:
    """markers: the text of a token put behind the opening special token, by role; "" for none.

    lengths: longest input in tokens by role, None for the model's own limit.
    skipped: tokens whose vectors do not count, in the roles `skipped_in`.
    """

    markers: dict[Role, str]
    lengths: dict[Role, int | None]
    expansion: Expansion | None
    skipped: tuple[str, ...]
    skipped_in: tuple[Role, ...] = ("document",)

    def within(self, longest: int) -> LateInteraction:
        """The same with the model's own limit where a role has none."""
        return replace(self, lengths={role: length or longest for role, length in self.lengths.items()})


def read_late(path: Path, own_file: Path, mask_file: Path | None) -> LateInteraction:
    """The settings of a folder with modules.json.

    own_file: the Transformer module's settings, which go before config_sentence_transformers.json, where PyLate has
    them. mask_file: config.json of the MultiVectorMask module, None where none is listed.
    """
    file = path / FILE
    settings = read_optional_json(file)
    own = read_optional_json(own_file)
    by_pylate = any(key in settings for key in PYLATE_KEYS)
    length = _length(file, settings, "query_length")
    if "query_expansion" in own:
        expansion = _expansion(own_file, own["query_expansion"])
    elif by_pylate and _flag(file, settings, "do_query_expansion", True):
        attend = _flag(file, settings, "attend_to_expansion_tokens", False)
        expansion = Expansion(length or QUERY_TOKENS, attend=attend)
    else:
        expansion = None
    markers: dict[Role, str] = {
        "query": _text(file, settings, "query_prefix"),
        "document": _text(file, settings, "document_prefix"),
    }
    lengths: dict[Role, int | None] = {
        "query": _length(own_file, own, "query_length") or length,
        "document": _length(own_file, own, "document_length") or _length(file, settings, "document_length"),
    }
    if mask_file is not None:
        skipped, roles = _read_mask(mask_file)
        return LateInteraction(markers, lengths, expansion, skipped, roles)
    named = settings.get("skiplist_words") is not None
    skipped = _words(file, settings, "skiplist_words") if named else tuple(string.punctuation) * any(markers.values())
    return LateInteraction(markers, lengths, expansion, skipped)


def read_stanford(path: Path) -> LateInteraction:
    """The Stanford settings in artifact.metadata; without the file their defaults."""
    file = path / "artifact.metadata"
    settings = read_optional_json(file)
    length = _length(file, settings, "query_maxlen") or QUERY_TOKENS
    markers: dict[Role, str] = {
        "query": _text(file, settings, "query_token_id") or "[unused0]",
        "document": _text(file, settings, "doc_token_id") or "[unused1]",
    }
    lengths: dict[Role, int | None] = {"query": length, "document": _length(file, settings, "doc_maxlen")}
    attend = _flag(file, settings, "attend_to_mask_tokens", False)
    skipped = tuple(string.punctuation) * _flag(file, settings, "mask_punctuation", True)
    return LateInteraction(markers, lengths, Expansion(length, attend=attend), skipped)


def _read_mask(file: Path) -> tuple[tuple[str, ...], tuple[Role, ...]]:
    settings = read_json(file)
    if settings.get("keep_only_token_ids"):
        raise ModelError(f"{file}: key 'keep_only_token_ids' is for pages that are pictures, not computed here.")
    tasks = settings.get("skiplist_tasks", ["document"])
    if not isinstance(tasks, list) or any(task not in ("query", "document") for task in tasks):
        raise ModelError(f"{file}: key 'skiplist_tasks' is {tasks!r}, not a list of 'query' and 'document'.")
    return _words(file, settings, "skiplist_words"), tuple(tasks)


def _expansion(file: Path, settings: Any) -> Expansion | None:
    if settings is None:
        return None
    if not isinstance(settings, Mapping):
        raise ModelError(f"{file}: key 'query_expansion' is {settings!r}, not an object.")
    strategy, token = settings.get("strategy"), settings.get("token")
    if strategy not in STRATEGIES:
        raise ModelError(f"{file}: key 'strategy' is {strategy!r}; this program computes {either(STRATEGIES)}.")
    if token is not None and not isinstance(token, str):
        raise ModelError(f"{file}: key 'token' is {token!r}, not a token's text.")
    length = _length(file, settings, "length")
    if length is None:
        raise ModelError(f"{file}: key 'length' of 'query_expansion' is missing.")
    return Expansion(length, strategy == "fixed", _flag(file, settings, "attend", False), token)


def _length(file: Path, settings: Mapping[str, Any], key: str) -> int | None:
    value = settings.get(key)
    if value is not None and (type(value) is not int or value < 4):
        raise ModelError(f"{file}: key {key!r} is {value!r}, not a number of tokens.")
    return value


def _flag(file: Path, settings: Mapping[str, Any], key: str, default: bool) -> bool:
    value = settings.get(key)
    if value is not None and not isinstance(value, bool):
        raise ModelError(f"{file}: key {key!r} is {value!r}, neither true nor false.")
    return default if value is None else value


def _text(file: Path, settings: Mapping[str, Any], key: str) -> str:
    value = settings.get(key) or ""
    if not isinstance(value, str):
        raise ModelError(f"{file}: key {key!r} is {value!r}, not a token's text.")
    return value


def _words(file: Path, settings: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = settings.get(key) or []
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise ModelError(f"{file}: key {key!r} is {value!r}, not a list of tokens.")
    return tuple(value)
