"""Texts to vectors: a model folder, its tokenizer and a compiled plan behind one thread-safe object."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from engine.arguments import check_text, check_texts, whole_number
from engine.batch import READ_AT_ONCE, Batch, cut, token_budget
from engine.catalog import model_path
from engine.computation import Computation
from engine.errors import EngineError
from engine.folder import ModelFolder
from engine.layers.norm import of_unit_length
from engine.modules import Dense
from engine.options import NUMERICS, chosen_folder, chosen_precision, chosen_workers
from engine.pace import Cancel, Pace, Progress
from engine.prompts import Role
from engine.reading import reader_of
from engine.weights.opening import open_parameters
from engine.weights.packed import version_of
from engine.weights.safetensors import Weights
from engine.weights.stored import Precision
from engine.windows import OVERLAP_SHARE, LongVector, Window, cut_windows, weighted_mean

F32 = NDArray[np.float32]


@dataclass(frozen=True)
class TokenVectors:
    """ids: (t,) int32, special tokens included; vectors: (t, hidden) float32, not normalised."""

    ids: NDArray[np.int32]
    vectors: F32


class Encoder:
    """An embedding model. Thread-safe, and of use in a forked child; results do not depend on batch, order or workers.

    name, dim (width of a vector), matryoshka (the widths it was trained to be cut to, widest first), hidden (width of
    a token vector), max_tokens, special_tokens, precision ("fp32", "int8" or "int8-full", what is really computed),
    workers (threads at most), isa (the kernels in use).

    What takes many texts also takes `progress`, called with the texts done and the texts in all after every batch, and
    `cancel`, asked before every batch whether to stop; then Cancelled is raised and nothing is returned.
    """

    def __init__(
        self,
        folder: ModelFolder,
        weights: Weights,
        precision: Precision,
        workers: int,
        disk_weights: Path | None = None,
        compiled: bool = True,
    ):
        self.name, self.precision, self.workers = folder.name, precision, workers
        self._folder, self._weights = folder, weights
        offset = folder.config.get("position_offset")
        self._padding_id = None if offset is None else offset - 1
        self._tokenizer = folder.tokenizer()
        self._reader = reader_of(folder, self._tokenizer)
        self.max_tokens, self.special_tokens = self._reader.max_tokens, self._reader.special_tokens
        prefixes = folder.backbone.family.prefixes
        loaded = open_parameters(
            folder.parameters(), weights, precision, prefixes, name=self.name, disk_weights=disk_weights
        )
        plan = folder.plan()
        self.dim, self.hidden = plan.pooled.width, plan.tokens.width
        self.matryoshka = tuple(width for width in folder.matryoshka if width <= self.dim)
        self._computation = Computation(self.name, plan, loaded, workers, compiled=compiled)
        self.isa = self._computation.isa
        self._whole: Encoder | None = None  # what this one is cut from

    @classmethod
    def load(
        cls,
        model: str | Path,
        *,
        precision: str = "auto",
        workers: int | None = None,
        dim: int | None = None,
        force_dim: bool = False,
        max_tokens: int | None = None,
        disk_weights: str | Path | None = None,
        compiled: bool = True,
    ) -> Encoder:
        """Load a model by catalog name or folder.

        precision: "fp32", "int8", "int8-full" (activations of 8 bits too: faster where the processor has VNNI or dot
        products, refused elsewhere; further from fp32), or "auto": int8, unless that was measured to change this model
        too much.
        workers: threads at most; None leaves one core free.
        dim, force_dim: as in `at_dim`. max_tokens: cut texts there, special tokens included; not past the model's own.
        disk_weights: a folder where published weights are kept in the kernels' layout, to be mapped from there; None
        lays them out in memory each time. compiled: False computes in NumPy, which defines what is right and is slow.
        Raises ModelError (what cannot be loaded and why) and EngineError (arguments).
        """
        threads, laid_out = chosen_workers(workers), chosen_folder("disk_weights", disk_weights)
        folder = ModelFolder.open(model_path(model))
        if max_tokens is not None:
            folder = folder.with_max_tokens(max_tokens)
        encoder = cls(folder, folder.weights(), chosen_precision(precision, folder), threads, laid_out, compiled)
        return encoder if dim is None else encoder.at_dim(dim, force=force_dim)

    def at_dim(self, dim: int, *, force: bool = False) -> Encoder:
        """This encoder with vectors cut to their first `dim` numbers, and scaled to unit length again where they were.

        It shares everything with this one: closing either closes both. Token vectors stay as they are.
        Raises EngineError for a width that the model was not trained to be cut to, unless forced.
        Source: Kusupati et al. 2022, https://arxiv.org/abs/2205.13147.
        """
        self._need_vectors()
        dim, full = whole_number("dim", dim), self._computation.plan.pooled.width
        if not 1 <= dim <= full:
            raise EngineError(f"{self.name} has vectors of {full} numbers, so they cannot be cut to {dim}.")
        if dim not in (full, *self.matryoshka) and not force:
            trained = ", ".join(str(width) for width in self.matryoshka if width < full)
            where = f"only to {trained}" if trained else "nor to any other width"
            raise EngineError(f"{self.name} was not trained to have vectors cut from {full} numbers to {dim}, {where}.")
        other = copy(self)
        other.__dict__.pop("fingerprint", None)
        other.dim, other._whole = dim, self
        return other

    @property
    def has_vectors(self) -> bool:
        """Whether a whole text has a vector; a model of late interaction has one for every token instead."""
        return self._folder.late is None

    @cached_property
    def fingerprint(self) -> str:
        """Hex digest that changes whenever the model's vectors would change; two equal ones may be compared."""
        folder = self._folder
        parts: list[Any] = [NUMERICS, self._weights.fingerprint, self.precision, folder.pooling, folder.normalize]
        parts += [folder.max_tokens, folder.prompts["query"], folder.prompts["document"]]
        # Only where they are: a model without them keeps its fingerprint, and so its index.
        parts += [folder.head] * any(isinstance(module, Dense) for module in folder.head)
        parts += [("dim", self.dim)] * (self.dim < self._computation.plan.pooled.width)
        parts += ["tables by groups"] * (self.precision != "fp32" and version_of(folder.parameters()) != "1")
        parts += ["without prompt"] * (not folder.include_prompt) + [folder.late] * (folder.late is not None)
        tokenizer = hashlib.sha256(self._tokenizer.published()).hexdigest()
        return hashlib.sha256(repr([*parts, tokenizer]).encode()).hexdigest()[:32]

    @property
    def chunk_tokens(self) -> int:
        """Tokens of text that fit one document: max_tokens less the special tokens and the document prefix."""
        return self._reader.room(self._reader.prefix("document"))

    def encode(
        self,
        texts: Sequence[str],
        *,
        role: Role | None = None,
        prompt: str | None = None,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> F32:
        """(n, dim) float32, one row a text, of unit length where the model says so; every number is finite.

        role adds the model's prefix for it, none the model's default one; prompt is a prefix to use instead.
        Raises EngineError where the model has token vectors only, and ModelError, naming the text, where its weights
        make numbers that are not finite.
        """
        self._need_vectors()
        pace = _pace(texts, progress, cancel)
        rows = [pooled for pooled, _ in self._batches(texts, role, prompt, pace, want_tokens=False)]
        return np.concatenate(rows)

    def encode_tokens(
        self,
        texts: Sequence[str],
        *,
        role: Role | None = None,
        prompt: str | None = None,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> list[TokenVectors]:
        """The last layer's token vectors of each text.

        Of a model of late interaction, which needs a role: the projected ones, of unit length; those of a query's mask
        tokens among them, those of tokens that do not count (a document's punctuation) not.
        """
        pace = _pace(texts, progress, cancel)
        found = self._batches(texts, role, prompt, pace, want_tokens=True)
        return [tokens for _, batch in found for tokens in batch]

    def encode_all(
        self,
        texts: Sequence[str],
        *,
        role: Role | None = None,
        prompt: str | None = None,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> tuple[F32, list[TokenVectors]]:
        """`encode` and `encode_tokens` from one forward pass."""
        self._need_vectors()
        pace = _pace(texts, progress, cancel)
        rows, tokens = zip(*self._batches(texts, role, prompt, pace, want_tokens=True), strict=True)
        return np.concatenate(rows), [one for batch in tokens for one in batch]

    def encode_long(
        self,
        texts: Sequence[str],
        *,
        role: Role | None = None,
        prompt: str | None = None,
        overlap: int | None = None,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> list[LongVector]:
        """Whole texts of any length: each in windows that the model takes, and the mean of the windows' vectors.

        A window's vector is that of `encode` for its characters, prefix included, and so is that of a text that fits.
        overlap: tokens that neighbouring windows share, None for an eighth of a window. progress counts windows.
        """
        self._need_vectors()
        check_texts("texts", texts)
        self._reader.read([], role, prompt)  # refuses a prefix that leaves no room, and what is none
        prefix = self._reader.prefix(role) if prompt is None else prompt
        room = self._reader.room(prefix)
        shared = room // OVERLAP_SHARE if overlap is None else whole_number("overlap", overlap)
        if not 0 <= shared < room:
            raise EngineError(f"An overlap of {shared} tokens does not fit windows of {room}: give a smaller one.")
        found: list[list[Window]] = []
        for text in texts:
            Pace(len(texts), cancel=cancel, done=len(found)).check()
            found.append(self._windows(text, prefix, room, shared))
        pieces = [text[w.start : w.end] for text, windows in zip(texts, found, strict=True) for w in windows]
        rows = self.encode(pieces, role=role, prompt=prompt, progress=progress, cancel=cancel)
        ends = np.cumsum([len(windows) for windows in found])
        return [self._long_vector(windows, rows[e - len(windows) : e]) for windows, e in zip(found, ends, strict=True)]

    def token_ids(
        self, texts: Sequence[str], *, role: Role | None = None, prompt: str | None = None
    ) -> list[NDArray[np.int32]]:
        """What the model reads of each text: (t,) int32, prefix and special tokens included, t <= max_tokens."""
        check_texts("texts", texts)
        return self._reader.read(texts, role, prompt).ids

    def token_spans(self, text: str) -> NDArray[np.int32]:
        """(t, 2) int32 start and end characters of the tokens of the whole text: nothing cut, no special tokens."""
        check_text("text", text)
        return self._tokenizer.spans(text)

    def close(self) -> None:
        """Let go of the weights; the encoder cannot be used afterwards."""
        self._computation.close()
        self._weights.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _need_vectors(self) -> None:
        if not self.has_vectors:
            raise EngineError(f"{self.name} has a vector for every token and none for a whole text.")

    def _windows(self, text: str, prefix: str, room: int, overlap: int) -> list[Window]:
        spans = self._tokenizer.spans(text)
        if self._tokenizer.excess(prefix + text) == 0:
            return [Window(0, len(text), len(spans))]
        return list(cut_windows(text, spans, room, overlap, lambda piece: self._tokenizer.excess(prefix + piece)))

    def _long_vector(self, windows: list[Window], rows: F32) -> LongVector:
        tokens = np.array([window.tokens for window in windows], np.int32)
        spans = np.array([(window.start, window.end) for window in windows], np.int32)
        if len(windows) == 1:
            return LongVector(rows[0], rows, spans, tokens)
        mean = weighted_mean(rows, tokens)
        return LongVector((of_unit_length(mean) if self._folder.normalize else mean)[0], rows, spans, tokens)

    def _batches(
        self, texts: Sequence[str], role: Role | None, prompt: str | None, pace: Pace, *, want_tokens: bool
    ) -> Iterator[tuple[F32, list[TokenVectors]]]:
        """An empty pair, then each batch's vectors (texts, dim) float32 and, when wanted, its texts' token vectors."""
        self._computation.opened()
        yield np.zeros((0, self.dim), np.float32), []
        for start in range(0, max(1, len(texts)), READ_AT_ONCE):
            pace.check()
            reading = self._reader.read(texts[start : start + READ_AT_ONCE], role, prompt)
            for part in cut([len(ids) for ids in reading.ids], token_budget(self.workers)):
                pace.check()
                visible = None if reading.visible is None else reading.visible[part]
                batch = Batch.of(reading.ids[part], self._padding_id, reading.prompt, visible=visible)
                pooled, states = self._computation.run(batch, pace, want_tokens=want_tokens)
                kept = None if reading.kept is None else reading.kept[part]
                yield self._cut(pooled), _token_vectors(batch, states, kept) if want_tokens else []
                pace.advance(batch.texts)

    def _cut(self, pooled: F32) -> F32:
        """Rows of the plan's width, cut to the encoder's."""
        if self.dim == pooled.shape[1]:
            return pooled
        rows = np.ascontiguousarray(pooled[:, : self.dim])
        return of_unit_length(rows) if self._folder.normalize else rows


def _pace(texts: Sequence[str], progress: Progress | None, cancel: Cancel | None) -> Pace:
    """How far the work on these texts is: not begun."""
    check_texts("texts", texts)
    return Pace(len(texts), progress, cancel)


def _token_vectors(batch: Batch, states: F32, kept: Sequence[NDArray[np.bool_]] | None) -> list[TokenVectors]:
    found = []
    for i, (start, end) in enumerate(pairwise(batch.starts)):
        part = slice(start, end) if kept is None else start + np.flatnonzero(kept[i])
        found.append(TokenVectors(batch.ids[part], states[part]))
    return found
