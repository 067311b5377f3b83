"""What the engines are timed on: token ids, made once and handed to all of them alike."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tokenizers
from numpy.typing import NDArray

I32 = NDArray[np.int32]
LONGEST = 512
ABSTRACTS = 256
PAIRS = 100


@dataclass(frozen=True)
class Work:
    """ids: each text's token ids with its special tokens, (t,) int32; types: of each pair, likewise.

    text: the text itself where tokenising is timed too (all engines then do it, with the same library).
    """

    name: str
    ids: list[I32]
    types: list[I32] | None = None
    text: str | None = None

    @property
    def tokens(self) -> int:
        return sum(map(len, self.ids))


class Source:
    """Cranfield's queries and abstracts as token ids of one vocabulary."""

    def __init__(self, data: Path, tokenizer: Path):
        self.tokenizer = open_tokenizer(tokenizer)
        self.queries = [row["text"] for row in _rows(data / "queries.jsonl")]
        self.abstracts = [row["text"] for row in _rows(data / "corpus.jsonl") if row["text"].strip()]

    def works(self, limit: int, few: bool = False) -> list[Work]:
        """The embedding works; `limit` is the model's own max_tokens, which the abstracts are cut to.

        few: an eighth of the abstracts, for a quick look.
        """
        count = ABSTRACTS // 8 if few else ABSTRACTS
        query = next(text for text in self.queries if len(self._ids(text, LONGEST)) == 12)
        long = " ".join(self.abstracts[:8])
        ragged = [self._ids(text, limit) for text in self.abstracts[:count]]
        return [
            Work("query12", [self._ids(query, LONGEST)]),
            Work("query12+tokenizer", [self._ids(query, LONGEST)], text=query),
            Work("text128", [self._ids(long, 128)]),
            Work("text512", [self._ids(long, LONGEST)]),
            Work("64x32", [self._ids(text, 32) for text in self.abstracts if len(text) > 300][:64]),
            Work(f"ragged{count}", ragged),
        ]

    def pairs(self) -> Work:
        """A question with each of a hundred passages, 128 tokens a pair."""
        ids, types = [], []
        question = self._ids(self.queries[0], LONGEST)
        for text in [text for text in self.abstracts if len(text) > 900][:PAIRS]:
            passage = self._ids(text, LONGEST)[1:-1][: 128 - len(question) - 1]
            ids.append(np.concatenate([question, passage, question[-1:]]))
            types.append(np.repeat(np.array([0, 1], np.int32), [len(question), len(passage) + 1]))
        return Work("pairs100x128", ids, types)

    def _ids(self, text: str, limit: int) -> I32:
        return cut_ids(self.tokenizer, text, limit)


def open_tokenizer(file: Path) -> tokenizers.Tokenizer:
    """Without the padding and the cut that the file may ask for."""
    found = tokenizers.Tokenizer.from_file(str(file))
    found.no_padding()
    found.no_truncation()
    return found


def cut_ids(tokenizer: tokenizers.Tokenizer, text: str, limit: int) -> I32:
    """Ids with one special token at each end, `limit` at most."""
    ids = tokenizer.encode(text).ids
    return np.array([*ids[:-1][: limit - 1], ids[-1]], np.int32)


def save(works: list[Work], file: Path) -> None:
    """For the other processes."""
    arrays = {}
    for work in works:
        arrays[f"{work.name}/ids"] = np.concatenate(work.ids)
        arrays[f"{work.name}/ends"] = np.cumsum([len(ids) for ids in work.ids])
        if work.types is not None:
            arrays[f"{work.name}/types"] = np.concatenate(work.types)
        if work.text is not None:
            arrays[f"{work.name}/text"] = np.array(work.text)
    np.savez(file, **arrays)


def read(file: Path) -> dict[str, Work]:
    """What `save` wrote, by name."""
    found = {}
    with np.load(file) as arrays:
        for key in [key for key in arrays if key.endswith("/ids")]:
            name = key.removesuffix("/ids")
            ends = arrays[f"{name}/ends"][:-1]
            types = np.split(arrays[f"{name}/types"], ends) if f"{name}/types" in arrays else None
            text = str(arrays[f"{name}/text"]) if f"{name}/text" in arrays else None
            found[name] = Work(name, np.split(arrays[key], ends), types, text)
    return found


def _rows(file: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
