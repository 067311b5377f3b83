"""Which answer counts and which hit stays selected, while the user types and answers come in late. No Qt."""

from __future__ import annotations

from collections.abc import Sequence

from ui.clients import Hit, Mode, SearchRequest, SearchResponse

Key = tuple[int, int]


class SearchSession:
    """The state of one search box.

    The newest request wins: answers to older ones are dropped. A request may be answered twice, first in part
    (`complete=False`), then in full; a part that arrives after the full answer is dropped as well.
    """

    def __init__(self, limit: int = 200) -> None:
        self._limit = limit
        self._number = 0
        self._answered_in_full = True
        self._chosen: Key | None = None
        self.text = ""
        self.mode: Mode = "hybrid"
        self.response: SearchResponse | None = None

    @property
    def waiting(self) -> bool:
        """True while the newest request still has no full answer."""
        return not self._answered_in_full

    def ask(self, text: str, mode: Mode) -> SearchRequest | None:
        """A new request, or None when there is nothing to ask: the same question again, or an empty one."""
        text = text.strip()
        if (text, mode) == (self.text, self.mode):
            return None
        self.text, self.mode, self._chosen = text, mode, None
        return self._next()

    def repeat(self) -> SearchRequest | None:
        """The same question again, because the index has changed. The choice of the user is kept."""
        return self._next(again=True) if self.text and not self.waiting else None

    def _next(self, again: bool = False) -> SearchRequest | None:
        self._number += 1  # also for an empty box: answers on their way belong to the past
        if not self.text:
            self._answered_in_full, self.response = True, None
            return None
        self._answered_in_full = False
        return SearchRequest(self._number, self.text, self.mode, self._limit, again)

    def accept(self, response: SearchResponse) -> bool:
        """True when `response` is to be shown."""
        if response.number != self._number or self._answered_in_full:
            return False
        self._answered_in_full = response.complete
        self.response = response
        return True

    def choose(self, key: Key) -> None:
        """The user moved to this hit: it stays selected as long as it is among the hits of this question."""
        self._chosen = key

    def row_to_select(self, hits: Sequence[Hit]) -> int:
        """Row of the chosen hit, else the first; -1 without hits."""
        for row, hit in enumerate(hits):
            if hit.key == self._chosen:
                return row
        return 0 if hits else -1
