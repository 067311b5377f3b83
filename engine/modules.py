"""The modules of a folder as modules.json lists them: how token states become a vector.

Reads what sentence-transformers writes (https://sbert.net/docs/package_reference/base/module.html). Whatever would
change the vectors and is not computed here is refused, naming the file and the key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import ModelError
from engine.layers.pooling import POOLING_MODES
from engine.models import parameters as p
from engine.models.parameters import Parameter
from engine.published import either, inside, present, read_any_json, read_json, read_optional_json

# The keys of a Pooling module's config.json, and the mode that each switches on.
POOLING_KEYS = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_lasttoken": "lasttoken",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
}

# Where modules come from, as their 'type' begins; the class is its last part.
SOURCES = ("sentence_transformers.", "pylate.models.")

STATIC = "StaticEmbedding"
MASK = "MultiVectorMask"

# A Dense module's activation, by the class in its config.json.
DENSE_ACTIVATIONS = {
    "torch.nn.modules.linear.Identity": None,
    "torch.nn.modules.activation.Tanh": "tanh",
    "torch.nn.modules.activation.ReLU": "relu",
    "torch.nn.modules.activation.GELU": "gelu",
    "torch.nn.modules.activation.SiLU": "silu",
}


@dataclass(frozen=True)
class Entry:
    """One line of modules.json: the class, and the module's folder inside the model's."""

    kind: str
    path: str


@dataclass(frozen=True)
class Pooling:
    """mode: a member of POOLING_MODES. include_prompt: whether the prefix's tokens take part."""

    mode: str
    include_prompt: bool = True


@dataclass(frozen=True)
class Dense:
    """A linear layer behind the pooling. path: its folder; activation: a member of ACTIVATIONS, or None."""

    path: str
    inputs: int
    outputs: int
    bias: bool
    activation: str | None

    def parameters(self, name: str) -> list[Parameter]:
        """Its weight and bias; the sources lie in the module's own folder."""
        return p.linear(name, self.outputs, self.inputs, f"{self.path}/linear", bias=self.bias)


@dataclass(frozen=True)
class Normalize:
    """Rows scaled to length 1."""


def read_listing(path: Path) -> list[Entry] | None:
    """modules.json in order; None where there is none."""
    file = path / "modules.json"
    if not present(file):
        return None
    listing = read_any_json(file)
    if not isinstance(listing, list) or not all(isinstance(entry, dict) for entry in listing):
        raise ModelError(f"{file} is not a list of modules.")
    entries = []
    for entry in listing:
        kind = entry.get("type")
        if not isinstance(kind, str) or not isinstance(entry.get("path"), str):
            raise ModelError(f"{file}: a module lacks the key 'type' or 'path'.")
        if not kind.startswith(SOURCES):
            raise ModelError(f"{file}: key 'type' is {kind!r}, code of the model's own, which is never run here.")
        inside(path, entry["path"], file)
        entries.append(Entry(kind.rpartition(".")[2], entry["path"]))
    return entries


def static_listing(path: Path) -> list[Entry] | None:
    """The modules of a static model that lists none: its config.json says whether it normalises."""
    file = path / "config.json"
    config = read_optional_json(file)
    if config.get("model_type") != "model2vec":
        return None
    return [Entry(STATIC, "")] + [Entry("Normalize", "")] * (config.get("normalize") is True)


def check_sequence(path: Path, entries: Sequence[Entry]) -> None:
    """Refuse any sequence but Transformer and Pooling, or a static table, then Dense and Normalize in any number."""
    kinds = [entry.kind for entry in entries]
    start = 1 if kinds[:1] == [STATIC] else 2
    if (start == 2 and kinds[:2] != ["Transformer", "Pooling"]) or not {"Dense", "Normalize"}.issuperset(kinds[start:]):
        raise ModelError(
            f"{path / 'modules.json'}: key 'type' lists the modules {'+'.join(kinds)}; "
            f"this program computes Transformer+Pooling, and Dense and Normalize behind them."
        )


def is_late(entries: Sequence[Entry]) -> bool:
    """Whether these are the modules of late interaction: a projection of every token, and no pooling."""
    kinds = [entry.kind for entry in entries]
    allowed = {"Dense", "Normalize", MASK}
    return kinds[:1] == ["Transformer"] and "Dense" in kinds and allowed.issuperset(kinds[1:])


def read_pooling(path: Path, entry: Entry, hidden: int) -> Pooling:
    """A Pooling module's settings; its width must be that of the token states."""
    file = path / entry.path / "config.json"
    config = read_json(file)
    width = config.get("word_embedding_dimension", config.get("embedding_dimension", hidden))
    if width != hidden:
        raise ModelError(
            f"{file}: key 'word_embedding_dimension' is {width!r}, but config.json's 'hidden_size' is {hidden}."
        )
    include = config.get("include_prompt", True)
    if not isinstance(include, bool):
        raise ModelError(f"{file}: key 'include_prompt' is {include!r}, neither true nor false.")
    return Pooling(_pooling_mode(file, config), include)


def _pooling_mode(file: Path, config: Mapping[str, Any]) -> str:
    """The one mode that a Pooling config switches on; without any key it is the mean, as the reference defaults."""
    for key in config:
        if key.startswith("pooling_mode_") and key not in POOLING_KEYS:
            raise ModelError(f"{file}: key {key!r} is a way of pooling that this program does not know.")
    named = config.get("pooling_mode")
    if named is not None:  # the newer spelling: one name instead of six switches
        modes = [named] if isinstance(named, str) else named
    else:
        on = [key for key in POOLING_KEYS if config.get(key, key == "pooling_mode_mean_tokens")]
        modes = [POOLING_KEYS[key] for key in on]
    if not isinstance(modes, list) or len(modes) != 1:
        raise ModelError(
            f"{file}: key 'pooling_mode' switches on {modes!r}; this program computes exactly one of them."
        )
    if not isinstance(modes[0], str) or modes[0] not in POOLING_MODES:
        key = next((key for key, mode in POOLING_KEYS.items() if mode == modes[0]), "pooling_mode")
        raise ModelError(
            f"{file}: key {key!r} asks for pooling {modes[0]!r}; this program computes {either(POOLING_MODES)}."
        )
    return str(modes[0])


def read_head(path: Path, entries: Sequence[Entry], width: int, *, of: str) -> tuple[Dense | Normalize, ...]:
    """The modules behind the pooling, checked to fit together.

    width: what the first one takes. of: what they work on, "sentence_embedding" or "token_embeddings".
    """
    head: list[Dense | Normalize] = []
    for entry in entries:
        if entry.kind == "Normalize":
            _check_ends(path / entry.path / "config.json", of)
            head.append(Normalize())
            continue
        dense = _read_dense(path, entry, of)
        if dense.inputs != width:
            raise ModelError(
                f"{path / entry.path / 'config.json'}: key 'in_features' is {dense.inputs}, "
                f"but {width} numbers come out of the module before."
            )
        width = dense.outputs
        head.append(dense)
    return tuple(head)


def _read_dense(path: Path, entry: Entry, of: str) -> Dense:
    file = path / entry.path / "config.json"
    config = read_json(file)
    for key in ("in_features", "out_features"):
        if type(config.get(key)) is not int or config[key] <= 0:
            raise ModelError(f"{file}: key {key!r} is {config.get(key)!r}, not a positive whole number.")
    bias = config.get("bias", True)
    if not isinstance(bias, bool):
        raise ModelError(f"{file}: key 'bias' is {bias!r}, neither true nor false.")
    activation = config.get("activation_function", "torch.nn.modules.activation.Tanh")
    if not isinstance(activation, str) or activation not in DENSE_ACTIVATIONS:
        raise ModelError(
            f"{file}: key 'activation_function' is {activation!r}; this program computes {either(DENSE_ACTIVATIONS)}."
        )
    _check_ends(file, of)
    if config.get("use_residual", False):
        raise ModelError(f"{file}: key 'use_residual' is true: a sum behind the Dense layer is not computed here.")
    return Dense(entry.path, config["in_features"], config["out_features"], bias, DENSE_ACTIVATIONS[activation])


def _check_ends(file: Path, of: str) -> None:
    """Refuse a module that works on anything else; older files do not say what they work on."""
    config = read_optional_json(file)
    for key in ("module_input_name", "module_output_name"):
        if config.get(key) not in (None, of):
            raise ModelError(f"{file}: key {key!r} is {config[key]!r}; this program computes {of!r} here.")
