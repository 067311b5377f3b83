"""The rotary settings of a config.json, in the spellings that they have had."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.errors import ModelError

KINDS = ("full_attention", "sliding_attention")


def plain_theta(parameters: Mapping[str, Any] | None, default: float) -> float:
    """The base of the rotation; a scaled or extended rotation is refused, as its angles are other ones."""
    if not parameters:
        return default
    kind = parameters.get("rope_type", parameters.get("type", "default"))
    if kind != "default":
        raise ModelError(f"config.json: key 'rope_type' is {kind!r}; this program computes 'default' only.")
    return float(parameters.get("rope_theta", default))


def theta(config: Mapping[str, Any], default: float) -> float:
    """One base for all layers: `rope_parameters` (newer), or `rope_theta` beside `rope_scaling`."""
    given = config.get("rope_parameters") or config.get("rope_scaling")
    return plain_theta(given, float(config.get("rope_theta", default)))


def thetas(config: Mapping[str, Any], *, full: str, sliding: str) -> dict[str, float]:
    """A base for each kind of layer: `rope_parameters` by kind (newer), or the two keys named here."""
    given = config.get("rope_parameters") or {}
    scaling = config.get("rope_scaling")
    defaults = {"full_attention": float(config[full]), "sliding_attention": float(config[sliding])}
    return {kind: plain_theta(given.get(kind) or scaling, defaults[kind]) for kind in KINDS}
