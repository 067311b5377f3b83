"""Static models (model2vec): a vector for every token of the vocabulary, averaged; no layers at all.

Project: https://github.com/MinishLab/model2vec. Reference followed:
https://github.com/MinishLab/model2vec/blob/v0.6.0/model2vec/model.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.errors import ModelError
from engine.layers.embedding import lookup
from engine.models.parameters import Parameter
from engine.plan import Graph, Value
from engine.weights.safetensors import Weights

MODEL_TYPE = "model2vec"
DEFAULT_MAX_TOKENS = 512
NO_LIMIT = 1_000_000  # tokens, where a model says that it cuts nothing

# Names of the table: model2vec's, that of sentence-transformers' StaticEmbedding, ours in the packed form.
TABLES = ("embeddings", "embedding.weight", "table.q8")


class Static:
    """Every model with `model_type` "model2vec", and StaticEmbedding modules of sentence-transformers."""

    prefixes = ("",)
    unsupported: dict[str, tuple[Any, ...]] = {}

    @staticmethod
    def canonical(config: dict[str, Any]) -> dict[str, Any]:
        return config

    @staticmethod
    def parameters(config: dict[str, Any]) -> list[Parameter]:
        """The table, and where vectors are shared: which row is whose, and the weight of each token."""
        ids = config["vocab_size"]
        found = [Parameter("table", "table", (config["table_rows"], config["hidden_size"]), (config["table_name"],))]
        if config["mapped"]:
            found.append(Parameter("mapping", "index", (ids,), ("mapping",)))
        if config["weighted"]:
            found.append(Parameter("weights", "vector", (ids,), ("weights",)))
        return found

    @staticmethod
    def forward(g: Graph, config: dict[str, Any]) -> Value:
        """The tokens' vectors: (tokens, hidden)."""
        mapping, weights = ("mapping" if config["mapped"] else None), ("weights" if config["weighted"] else None)
        return lookup(g, table="table", mapping=mapping, weights=weights)


def sizes(published: Mapping[str, Any], weights: Weights) -> dict[str, Any]:
    """A canonical config: what config.json says, and what only the header of the weights knows."""
    name = next((name for name in TABLES if name in weights), None)
    if name is None:
        raise ModelError(f"{weights.paths[0]} lacks the tensor 'embeddings'.")
    shape = weights.shape(name)
    if len(shape) != 2 or not all(shape):
        raise ModelError(f"{weights.paths[0]}: tensor {name!r} has the shape {list(shape)}, which is no table.")
    mapped = "mapping" in weights
    limit = published.get("max_length", DEFAULT_MAX_TOKENS if published else None)
    if limit is not None and (type(limit) is not int or limit <= 0):
        raise ModelError(f"{weights.paths[0].parent / 'config.json'}: key 'max_length' is {limit!r}, not a length.")
    return {
        **published,
        "hidden_size": shape[1],
        "table_rows": shape[0],
        "table_name": name,
        "vocab_size": weights.shape("mapping")[0] if mapped else shape[0],
        "mapped": mapped,
        "weighted": "weights" in weights,
        "max_tokens": NO_LIMIT if limit is None else limit,
    }
