"""What sequence classifiers put behind a family's token states: one number for a pair of texts.

References followed: the ...ForSequenceClassification classes of
https://github.com/huggingface/transformers/tree/v4.48.0/src/transformers/models
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from engine.layers.linear import linear
from engine.layers.norm import layer_norm
from engine.layers.pooling import pool
from engine.models import parameters as p
from engine.models.checks import check_activation, check_flags
from engine.models.parameters import Parameter
from engine.plan import Graph, Value


@dataclass(frozen=True)
class Layer:
    """A linear layer of the head; source: its published name. norm: that of a LayerNorm behind the activation."""

    source: str
    outputs: int
    bias: bool = True
    activation: str | None = None
    norm: str | None = None
    norm_bias: bool = True


@dataclass(frozen=True)
class Classifier:
    """pooling: which token states go in. eps: that of the norm."""

    pooling: str
    layers: tuple[Layer, ...]
    eps: float = 1e-5

    def parameters(self, hidden: int) -> list[Parameter]:
        """Weights and biases of the layers, in the order of use."""
        found = []
        for i, layer in enumerate(self.layers):
            found += p.linear(f"head.{i}", layer.outputs, hidden, layer.source, bias=layer.bias)
            if layer.norm is not None:
                found += p.norm(f"head.{i}.norm", layer.outputs, layer.norm, bias=layer.norm_bias)
            hidden = layer.outputs
        return found

    def forward(self, g: Graph, tokens: Value) -> Value:
        """The logits: (texts, outputs of the last layer)."""
        x = pool(g, tokens, self.pooling)
        for i, layer in enumerate(self.layers):
            x = linear(g, x, f"head.{i}", activation=layer.activation)
            if layer.norm is not None:
                x = layer_norm(g, x, f"head.{i}.norm", self.eps)
        return x


def _bert(config: dict[str, Any]) -> Classifier:
    # The pooler belongs to the encoder and has its prefix; what follows stands beside the encoder.
    hidden = config["hidden_size"]
    return Classifier("cls", (Layer("pooler.dense", hidden, activation="tanh"), Layer("/classifier", 1)))


def _roberta(config: dict[str, Any]) -> Classifier:
    first = Layer("/classifier.dense", config["hidden_size"], activation="tanh")
    return Classifier("cls", (first, Layer("/classifier.out_proj", 1)))


def _distilbert(config: dict[str, Any]) -> Classifier:
    return Classifier(
        "cls", (Layer("/pre_classifier", config["hidden_size"], activation="relu"), Layer("/classifier", 1))
    )


def _modernbert(config: dict[str, Any]) -> Classifier:
    found: dict[str, Any] = {"classifier_bias": False, "classifier_activation": "gelu"} | config
    check_flags(found, "classifier_bias")
    check_activation(found, "classifier_activation")
    first = Layer(
        "/head.dense",
        config["hidden_size"],
        bias=found["classifier_bias"],
        activation=found["classifier_activation"],
        norm="/head.norm",
        norm_bias=config["norm_bias"],
    )
    return Classifier(config.get("classifier_pooling", "cls"), (first, Layer("/classifier", 1)), config["norm_eps"])


# The head of each family that is published as a reranker.
CLASSIFIERS: dict[str, Callable[[dict[str, Any]], Classifier]] = {
    "bert": _bert,
    "distilbert": _distilbert,
    "modernbert": _modernbert,
    "mpnet": _roberta,
    "roberta": _roberta,
    "xlm-roberta": _roberta,
}
