"""Cross-encoders: a model that reads a query and a passage together and says how well they fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from engine.backbone import Backbone
from engine.batch import READ_AT_ONCE, Batch, cut
from engine.catalog import model_path
from engine.computation import Computation
from engine.errors import ModelError
from engine.folder import folder_name
from engine.layers.pooling import POOLING_MODES
from engine.models.classifier import CLASSIFIERS, Classifier
from engine.modules import read_listing
from engine.options import Precision, chosen_precision, chosen_workers
from engine.pace import Cancel, Pace, Progress
from engine.plan import Graph, Plan
from engine.published import either, read_json
from engine.weights.packed import load
from engine.weights.safetensors import Weights

F32 = NDArray[np.float32]


def _sigmoid(x: F32) -> F32:
    return (1.0 / (1.0 + np.exp(-x.astype(np.float64)))).astype(np.float32)


# What a published model does with its logit, by the class that it names.
ACTIVATIONS: dict[str, Callable[[F32], F32]] = {
    "torch.nn.modules.linear.Identity": lambda x: x,
    "torch.nn.modules.activation.Sigmoid": _sigmoid,
}


class CrossEncoder:
    """A reranker. Thread-safe; a pair's score does not depend on the others.

    name, max_tokens (of query and passage together, special tokens included), precision, workers, isa.
    """

    def __init__(self, folder: Path, precision: Precision, workers: int):
        self.name, self.precision, self.workers = folder_name(folder), precision, workers
        path = _transformer(folder)
        backbone = Backbone.open(path)
        self.max_tokens = backbone.max_tokens
        classifier = _classifier(path / "config.json", backbone)
        self._activation = _activation(folder, path)
        offset = backbone.config.get("position_offset")
        self._padding_id = None if offset is None else offset - 1
        self._tokenizer = backbone.tokenizer()
        family, hidden = backbone.family, backbone.config["hidden_size"]
        parameters = [*family.parameters(backbone.config), *classifier.parameters(hidden)]
        graph = Graph({parameter.name: parameter.shape for parameter in parameters})
        tokens = family.forward(graph, backbone.config)
        plan = Plan.of(graph, tokens, classifier.forward(graph, tokens))
        self._weights = Weights.open(path)
        loaded = load(parameters, self._weights, precision, family.prefixes)
        self._computation = Computation(self.name, plan, loaded, workers)
        self.isa = self._computation.isa

    @classmethod
    def load(cls, model: str | Path, *, precision: str = "auto", workers: int | None = None) -> CrossEncoder:
        """Load a reranker by name or folder; arguments and errors are those of Encoder.load."""
        chosen, threads = chosen_precision(precision), chosen_workers(workers)
        return cls(model_path(model), chosen, threads)

    def score(
        self, query: str, passages: Sequence[str], *, progress: Progress | None = None, cancel: Cancel | None = None
    ) -> F32:
        """(n,) float32: how well each passage answers the query, on the scale that the model was published with.

        progress, cancel: as for Encoder.encode; raises Cancelled.
        """
        self._computation.opened()
        pace, scores = Pace(len(passages), progress, cancel), [np.zeros(0, np.float32)]
        for start in range(0, len(passages), READ_AT_ONCE):
            pace.check()
            pairs = self._tokenizer.encode_pairs(query, passages[start : start + READ_AT_ONCE])
            for part in cut([len(ids) for ids, _ in pairs]):
                pace.check()
                ids, types = zip(*pairs[part], strict=True)
                batch = Batch.of(ids, self._padding_id, types=types)
                scores.append(self._computation.run(batch, want_tokens=False)[0][:, 0])
                pace.advance(batch.texts)
        return self._activation(np.concatenate(scores))

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


def _transformer(folder: Path) -> Path:
    """Where config.json lies: the folder, or what modules.json says; any module behind the first is refused."""
    entries = read_listing(folder)
    if entries is None:
        return folder
    if [entry.kind for entry in entries] != ["Transformer"]:
        kinds = "+".join(entry.kind for entry in entries)
        raise ModelError(f"{folder / 'modules.json'}: key 'type' lists the modules {kinds}; a reranker has one.")
    return folder / entries[0].path


def _classifier(file: Path, backbone: Backbone) -> Classifier:
    """The family's head; ModelError where the folder is no reranker with one score."""
    config = backbone.config
    architectures = config.get("architectures") or []
    if not any(str(name).endswith("ForSequenceClassification") for name in architectures):
        raise ModelError(f"{file}: key 'architectures' is {architectures!r}, which is no reranker.")
    if backbone.model_type not in CLASSIFIERS:
        raise ModelError(
            f"{file}: key 'model_type' is {backbone.model_type!r}; rerankers are computed of {', '.join(CLASSIFIERS)}."
        )
    labels = config.get("id2label")
    count = len(labels) if isinstance(labels, Mapping) else config.get("num_labels", 2)
    if count != 1:
        raise ModelError(f"{file}: key 'id2label' names {count} classes; a reranker has one score.")
    classifier = CLASSIFIERS[backbone.model_type](config)
    if classifier.pooling not in POOLING_MODES:
        raise ModelError(
            f"{file}: key 'classifier_pooling' is {classifier.pooling!r}; this program computes "
            f"{either(POOLING_MODES)}."
        )
    return classifier


def _activation(folder: Path, path: Path) -> Callable[[F32], F32]:
    """What the model does with its logit: as either file names it, else the logistic function."""
    file, named = folder / "config_sentence_transformers.json", None
    if file.is_file():
        named = read_json(file).get("activation_fn")
    if named is None:
        file = path / "config.json"
        config: dict[str, Any] = read_json(file)
        own = config.get("sentence_transformers")
        named = own.get("activation_fn") if isinstance(own, Mapping) else None
        named = named or config.get("sbert_ce_default_activation_function")
    if named is None:
        return _sigmoid
    if not isinstance(named, str) or named not in ACTIVATIONS:
        raise ModelError(f"{file}: key 'activation_fn' is {named!r}; this program computes {either(ACTIVATIONS)}.")
    return ACTIVATIONS[named]
