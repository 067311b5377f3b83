"""Checks of what a family reads from config.json, so that a forward pass may believe it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.layers.activation import ACTIVATIONS
from engine.published import either

MAX_LAYERS = 1000
LARGEST = 1 << 24  # of anything that is counted here

KINDS = ("full_attention", "sliding_attention")


class UncomputedError(ValueError):
    """A setting that no forward pass here can have; the text begins with the key and continues "file: "."""


def check_whole(config: Mapping[str, Any], *keys: str, least: int = 1, most: int = LARGEST) -> None:
    """Refuse anything but whole numbers from `least` to `most`."""
    for key in keys:
        value = config[key]
        if type(value) is not int or not least <= value <= most:
            raise UncomputedError(f"key {key!r} is {value!r}, not a whole number from {least} to {most}")


def check_positive(config: Mapping[str, Any], *keys: str) -> None:
    """Refuse anything but finite numbers above 0."""
    for key in keys:
        value = config[key]
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1e30:
            raise UncomputedError(f"key {key!r} is {value!r}, not a positive number")


def check_flags(config: Mapping[str, Any], *keys: str) -> None:
    """Refuse anything but true and false."""
    for key in keys:
        if not isinstance(config[key], bool):
            raise UncomputedError(f"key {key!r} is {config[key]!r}, neither true nor false")


def check_activation(config: Mapping[str, Any], key: str) -> None:
    """Refuse an activation that is not computed."""
    if not isinstance(config[key], str) or config[key] not in ACTIVATIONS:
        raise UncomputedError(f"key {key!r} is {config[key]!r}; this program computes {either(ACTIVATIONS)}")


def check_layer_kinds(config: Mapping[str, Any]) -> None:
    """Refuse 'layer_types' that are not one known kind for every layer."""
    kinds, count = config["layer_types"], config["num_hidden_layers"]
    if not isinstance(kinds, list) or len(kinds) != count or any(kind not in KINDS for kind in kinds):
        raise UncomputedError(f"key 'layer_types' is {kinds!r}, not one of {' or '.join(KINDS)} for {count} layers")


def check_layers(config: Mapping[str, Any]) -> None:
    """Refuse a number of layers that no model has, before anything is made for each."""
    check_whole(config, "num_hidden_layers", most=MAX_LAYERS)
