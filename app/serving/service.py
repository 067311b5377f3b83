"""What the server offers, without HTTP: vectors and scores by the models that it was started with."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from app.serving.batching import BatchQueue
from app.serving.metrics import Metrics
from engine import EngineError, Models, Role
from engine.catalog import Catalog, local_models, model_path
from engine.folder import ModelFolder, folder_name
from engine.options import available_precisions
from engine.reranker_folder import RerankerFolder, open_folder

F32 = NDArray[np.float32]


class UnknownModelError(EngineError):
    """A request for a model that is not served."""


class PrecisionError(EngineError):
    """A model that cannot be had in the precision that the server was started with."""


@dataclass(frozen=True)
class Served:
    """Models by the name under which they are asked for; the first of each is what is taken unasked.

    named: those among them that whoever started the server has named.
    """

    encoders: dict[str, Path]
    rerankers: dict[str, Path]
    named: list[Path] = field(default_factory=list)

    @classmethod
    def find(cls, models: Sequence[str], models_dir: Path | None) -> Served:
        """These names and folders, and after them every model on this machine that can be read.

        A name in `models` that cannot be read is an error; one that merely lies about is left out.
        """
        found = cls({}, {})
        for model in models:
            found.named.append(model_path(model, models_dir))
            found._add(found.named[-1])
        for path in local_models(models_dir).values():
            try:
                found._add(path)
            except EngineError:
                continue  # `inkling models verify` says what is wrong with it; nobody has asked for it here
        return found

    def _add(self, path: Path) -> None:
        folder = open_folder(path)
        if isinstance(folder, ModelFolder) and folder.late is not None:
            raise EngineError(f"{folder.name} has a vector for every token and none for a text, so it is not served.")
        known = Catalog.load().find(folder_name(path))
        names = self.rerankers if isinstance(folder, RerankerFolder) else self.encoders
        names.setdefault(known.name if known else folder.name, path)


class Service:
    """Thread-safe. models: where the models come from; served: which of them."""

    def __init__(self, models: Models, served: Served):
        self.models, self.served, self.metrics = models, served, Metrics()
        self._lock = threading.Lock()
        self._queues: dict[tuple[Path, int | None, Role | None], BatchQueue] = {}
        self._computable: set[Path] = set()  # in the precision that was asked for

    def check_precision(self) -> None:
        """Raises PrecisionError where a model that was named, or the encoder taken unasked, cannot be had in it."""
        wanted = [*self.served.named, *list(self.served.encoders.values())[:1]]
        for name, path in [*self.served.encoders.items(), *self.served.rerankers.items()]:
            if path in wanted:
                self._check(name, path)

    def encoder_name(self, asked: str | None) -> str:
        """The name of the encoder that a request means; UnknownModelError where it is none, PrecisionError."""
        name = _name(self.served.encoders, asked, "embedding model")
        self._check(name, self.served.encoders[name])
        return name

    def reranker_name(self, asked: str | None) -> str:
        """The same for a reranker."""
        name = _name(self.served.rerankers, asked, "reranker")
        self._check(name, self.served.rerankers[name])
        return name

    def embed(self, name: str, texts: Sequence[str], *, role: Role | None = None, dim: int | None = None) -> F32:
        """(n, dim) float32. Texts of other requests that are read the same way share the batches."""
        key = self.served.encoders[name], dim, role
        self.models.get(key[0], dim=dim)  # what cannot be loaded, or cut so, makes no queue
        with self._lock:
            if key not in self._queues:
                self._queues[key] = BatchQueue(lambda portion: self._encode(key, portion), self.metrics)
            queue = self._queues[key]
        return queue.submit(texts)

    def token_counts(self, name: str, texts: Sequence[str], role: Role | None = None) -> list[int]:
        """How many tokens the model reads of each text."""
        encoder = self.models.get(self.served.encoders[name])
        counts = [len(ids) for ids in encoder.token_ids(texts, role=role)]
        self.metrics.count("texts", len(texts))
        self.metrics.count("tokens", sum(counts))
        return counts

    def longest(self, name: str, texts: Sequence[str], role: Role | None = None) -> tuple[int, int]:
        """The most tokens that one of the texts has, prefix and special tokens included, and how many are read."""
        path = self.served.encoders[name]
        encoder, folder = self.models.get(path), ModelFolder.open(path)
        prefix = folder.default_prompt if role is None else folder.prompts[role]
        whole = max(len(encoder.token_spans(prefix + text)) for text in texts)
        return whole + encoder.special_tokens, encoder.max_tokens

    def rerank(self, name: str, query: str, texts: Sequence[str]) -> F32:
        """(n,) float32: the logit of each text as an answer to the query."""
        self.metrics.count("pairs", len(texts))
        return self.models.reranker(self.served.rerankers[name]).score(query, texts, raw=True)

    def _check(self, name: str, path: Path) -> None:
        precision = self.models.precision
        if precision == "auto" or path in self._computable:
            return
        there = available_precisions(open_folder(path))
        if precision not in there:
            raise PrecisionError(
                f"{name} cannot be had in {precision} on this machine, only in {', '.join(there)}: start "
                "`inkling serve` with another --precision, or with the model as it was published."
            )
        self._computable.add(path)

    def _encode(self, key: tuple[Path, int | None, Role | None], texts: list[str]) -> F32:
        path, dim, role = key
        return self.models.get(path, dim=dim).encode(texts, role=role)


def _name(served: Mapping[str, Path], asked: str | None, kind: str) -> str:
    if not served:
        raise UnknownModelError(f"No {kind} is served here; bring one in with `inkling models import` and start again.")
    if not asked:
        return next(iter(served))
    # Clients write owner/name, as the hub does.
    wanted = asked.rpartition("/")[2].casefold()
    for name in served:
        if name.casefold() in (asked.casefold(), wanted):
            return name
    raise UnknownModelError(f"The {kind} {asked!r} is not served here; there are {', '.join(served)}.")
