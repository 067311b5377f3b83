"""A reranker's folder as published: the encoder, the classifier behind it, and what becomes of the logit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.backbone import Backbone, ReadFolder
from engine.catalog import Catalog
from engine.errors import ModelError
from engine.folder import ModelFolder, folder_name
from engine.layers.pooling import POOLING_MODES
from engine.models.checks import UncomputedError
from engine.models.classifier import CLASSIFIERS, Classifier
from engine.models.parameters import Parameter
from engine.modules import read_listing
from engine.plan import Graph, Plan
from engine.published import either, read_json, read_optional_json
from engine.tokenizer import Tokenizer
from engine.weights.safetensors import Weights

F32 = NDArray[np.float32]
ARCHITECTURE = "ForSequenceClassification"  # how the classes of rerankers are called


def _sigmoid(x: F32) -> F32:
    return (1.0 / (1.0 + np.exp(-x.astype(np.float64)))).astype(np.float32)


# What a published model does with its logit, by the class that it names.
ACTIVATIONS: dict[str, Callable[[F32], F32]] = {
    "torch.nn.modules.linear.Identity": lambda x: x,
    "torch.nn.modules.activation.Sigmoid": _sigmoid,
}


@dataclass(frozen=True)
class RerankerFolder(ReadFolder):
    """One reranker, read and checked. activation: what makes the score of the logit.

    max_tokens is of query and passage together.
    """

    classifier: Classifier
    activation: Callable[[F32], F32]

    @classmethod
    def open(cls, path: Path) -> RerankerFolder:
        """Read and check a folder; ModelError names the file and the key of whatever cannot be computed."""
        name = folder_name(path)
        known = Catalog.load().find(name)
        inner = _transformer(path)
        backbone = Backbone.open(inner)
        classifier = _classifier(inner / "config.json", backbone)
        return cls(path, known.name if known else name, backbone, classifier, _activation(path, inner))

    def parameters(self) -> list[Parameter]:
        """Every parameter of the whole model: the family's, then the classifier's."""
        return [*self.backbone.family.parameters(self.config), *self.classifier.parameters(self.hidden)]

    def tokenizer(self) -> Tokenizer:
        """The folder's tokenizer, checked to fit the tables."""
        found = self.backbone.tokenizer()
        found.check_pairs(self.config["vocab_size"], self.config.get("type_vocab_size"))
        return found

    def weights(self) -> Weights:
        """Map the weights."""
        return Weights.open(self.transformer)

    def plan(self) -> Plan:
        """The whole computation: the family's forward pass on symbolic values, and the classifier."""
        graph = Graph({parameter.name: parameter.shape for parameter in self.parameters()})
        tokens = self.backbone.family.forward(graph, self.config)
        return Plan.of(graph, tokens, self.classifier.forward(graph, tokens))


def open_folder(path: Path) -> ModelFolder | RerankerFolder:
    """A model's folder, whichever of the two it is; errors are those of both."""
    return RerankerFolder.open(path) if is_reranker(path) else ModelFolder.open(path)


def is_reranker(path: Path) -> bool:
    """Whether config.json names a classifier and no module pools: what pools makes vectors, whatever it was before."""
    entries = read_listing(path)
    if entries is not None and [entry.kind for entry in entries] != ["Transformer"]:
        return False
    file = path / (entries[0].path if entries else "") / "config.json"
    named = read_optional_json(file).get("architectures")
    return isinstance(named, list) and any(str(name).endswith(ARCHITECTURE) for name in named)


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
    architectures = config.get("architectures")
    named = architectures if isinstance(architectures, list) else []
    if not any(str(name).endswith(ARCHITECTURE) for name in named):
        raise ModelError(f"{file}: key 'architectures' is {architectures!r}, which is no reranker.")
    if backbone.model_type not in CLASSIFIERS:
        raise ModelError(
            f"{file}: key 'model_type' is {backbone.model_type!r}; rerankers are computed of {', '.join(CLASSIFIERS)}."
        )
    labels = config.get("id2label")
    count = len(labels) if isinstance(labels, Mapping) else config.get("num_labels", 2)
    if count != 1:
        raise ModelError(f"{file}: key 'id2label' names {count} classes; a reranker has one score.")
    try:
        classifier = CLASSIFIERS[backbone.model_type](config)
    except UncomputedError as error:
        raise ModelError(f"{file}: {error}.") from error
    if not isinstance(classifier.pooling, str) or classifier.pooling not in POOLING_MODES:
        raise ModelError(
            f"{file}: key 'classifier_pooling' is {classifier.pooling!r}; this program computes "
            f"{either(POOLING_MODES)}."
        )
    return classifier


def _activation(folder: Path, path: Path) -> Callable[[F32], F32]:
    """What the model does with its logit: as either file names it, else the logistic function."""
    file = folder / "config_sentence_transformers.json"
    named = read_optional_json(file).get("activation_fn")
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
