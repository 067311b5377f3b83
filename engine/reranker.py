"""Cross-encoders: a model that reads a query and a passage together and says how well they fit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from engine.arguments import check_text, check_texts
from engine.batch import READ_AT_ONCE, Batch, cut, token_budget
from engine.catalog import model_path
from engine.computation import Computation
from engine.options import chosen_folder, chosen_precision, chosen_workers
from engine.pace import Cancel, Pace, Progress
from engine.reranker_folder import RerankerFolder
from engine.weights.opening import open_parameters
from engine.weights.stored import Precision

F32 = NDArray[np.float32]


class CrossEncoder:
    """A reranker. Thread-safe; a pair's score does not depend on the others.

    name, max_tokens (of query and passage together, special tokens included), precision, workers, isa.
    """

    def __init__(
        self,
        folder: RerankerFolder,
        precision: Precision,
        workers: int,
        disk_weights: Path | None = None,
        compiled: bool = True,
    ):
        self.name, self.precision, self.workers = folder.name, precision, workers
        self.max_tokens, self._activation = folder.max_tokens, folder.activation
        offset = folder.config.get("position_offset")
        self._padding_id = None if offset is None else offset - 1
        self._tokenizer = folder.tokenizer()
        self._weights = folder.weights()
        prefixes = folder.backbone.family.prefixes
        loaded = open_parameters(
            folder.parameters(), self._weights, precision, prefixes, name=self.name, disk_weights=disk_weights
        )
        self._computation = Computation(self.name, folder.plan(), loaded, workers, compiled=compiled)
        self.isa = self._computation.isa

    @classmethod
    def load(
        cls,
        model: str | Path,
        *,
        precision: str = "auto",
        workers: int | None = None,
        disk_weights: str | Path | None = None,
        compiled: bool = True,
    ) -> CrossEncoder:
        """Load a reranker by name or folder; arguments and errors are those of Encoder.load."""
        threads, laid_out = chosen_workers(workers), chosen_folder("disk_weights", disk_weights)
        folder = RerankerFolder.open(model_path(model))
        return cls(folder, chosen_precision(precision, folder), threads, laid_out, compiled)

    def score(
        self,
        query: str,
        passages: Sequence[str],
        *,
        raw: bool = False,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> F32:
        """(n,) float32: how well each passage answers the query, on the scale that the model was published with.

        raw: the model's logit instead, whatever it is published to make of it. progress, cancel: as for
        Encoder.encode; raises Cancelled.
        """
        self._computation.opened()
        check_text("query", query)
        check_texts("passages", passages)
        pace, scores = Pace(len(passages), progress, cancel), [np.zeros(0, np.float32)]
        for start in range(0, len(passages), READ_AT_ONCE):
            pace.check()
            pairs = self._tokenizer.encode_pairs(query, passages[start : start + READ_AT_ONCE])
            for part in cut([len(ids) for ids, _ in pairs], token_budget(self.workers)):
                pace.check()
                ids, types = zip(*pairs[part], strict=True)
                batch = Batch.of(ids, self._padding_id, types=types)
                scores.append(self._computation.run(batch, pace, want_tokens=False)[0][:, 0])
                pace.advance(batch.texts)
        logits = np.concatenate(scores)
        return logits if raw else self._activation(logits)

    def close(self) -> None:
        """Let go of the weights; the reranker cannot be used afterwards."""
        self._computation.close()
        self._weights.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
