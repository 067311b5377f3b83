"""The rotary settings of a config.json, in the spellings that they have had."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.models.checks import KINDS, UncomputedError, check_positive


def theta(config: Mapping[str, Any], default: float) -> float:
    """One base for all layers: `rope_parameters` (newer), or `rope_theta` beside `rope_scaling`."""
    return _theta(_settings(config, "rope_parameters"), config.get("rope_theta", default), config)


def thetas(config: Mapping[str, Any], *, full: str, sliding: str) -> dict[str, float]:
    """A base for each kind of layer: `rope_parameters` by kind (newer), or the two keys named here."""
    given = _settings(config, "rope_parameters")
    if not set(given) <= set(KINDS):
        raise UncomputedError(f"key 'rope_parameters' is {given!r}, not settings for {' and '.join(KINDS)}")
    defaults = {"full_attention": config[full], "sliding_attention": config[sliding]}
    return {kind: _theta(_settings(given, kind), defaults[kind], config) for kind in KINDS}


def _theta(given: Mapping[str, Any], default: Any, config: Mapping[str, Any]) -> float:
    """The base of the rotation; a scaled or extended rotation is refused, as its angles are other ones."""
    for settings in (given, _settings(config, "rope_scaling")):
        kind = settings.get("rope_type", settings.get("type", "default"))
        if kind != "default":
            raise UncomputedError(f"key 'rope_type' is {kind!r}; this program computes 'default' only")
    found = {"rope_theta": given.get("rope_theta", default)}
    check_positive(found, "rope_theta")
    return float(found["rope_theta"])


def _settings(config: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = config.get(key)
    if value is not None and not isinstance(value, Mapping):
        raise UncomputedError(f"key {key!r} is {value!r}, not an object")
    return value or {}
