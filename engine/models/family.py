"""What every model family answers: one file a family, one line in FAMILIES."""

from __future__ import annotations

from typing import Any, Protocol

from engine.models.parameters import Parameter
from engine.plan import Graph, Value


class Family(Protocol):
    """A family of checkpoints that share a forward pass.

    prefixes: what published tensor names may begin with. unsupported: config keys and the only values computed here.
    """

    @property
    def prefixes(self) -> tuple[str, ...]: ...

    @property
    def unsupported(self) -> dict[str, tuple[Any, ...]]: ...

    def canonical(self, config: dict[str, Any]) -> dict[str, Any]:
        """config.json with defaults filled in and the sizes under BERT's names.

        Keys of our own: position_offset, where positions count from the padding id + 1 instead of 0.
        """
        ...

    def parameters(self, config: dict[str, Any]) -> list[Parameter]:
        """Every parameter of the forward pass, from a canonical config."""
        ...

    def forward(self, g: Graph, config: dict[str, Any]) -> Value:
        """Put the forward pass on the graph; returns the token states (tokens, hidden).

        The config is canonical, with `max_tokens`, the longest text, beside it.
        """
        ...
