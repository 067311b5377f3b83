"""How the columns of a query-key-value matrix fall into heads."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Heads:
    """query heads, then key_value key heads, then as many value heads, each `width` columns wide.

    Several query heads may share a key and a value head (grouped-query attention, Ainslie et al. 2023).
    """

    query: int
    key_value: int
    width: int

    @property
    def columns(self) -> int:
        """Columns of the whole matrix."""
        return (self.query + 2 * self.key_value) * self.width

    @property
    def group(self) -> int:
        """Query heads to a key head."""
        return self.query // self.key_value
