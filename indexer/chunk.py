"""Documents cut into passages: within the model's token budget, at the ends of paragraphs and sentences where possible.

Every chunk is an exact cut-out of the document's text (text[start_char:end_char] == chunk.text). Chunks do not overlap;
only white space lies between them. The text arrives in pieces of any size, and memory stays bounded.
"""

from __future__ import annotations

import bisect
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from indexer.store.records import NewChunk

CHUNKER_VERSION = 1
WINDOW_CHARS = 65_536  # tokenised at once
TAIL_CHARS = 8_192  # of a window that is left for the next one, so that the cut sees what follows
LONGEST_CHARS = 3_000  # of one chunk, whatever its tokens: a model's "unknown word" may be a page of base64
WORDS_TARGET_CHARS = 1_600  # of a chunk that gets no vector
WORDS_LONGEST_CHARS = 2_400

_BOUNDARY = re.compile(
    r"(?P<heading>\n\s*\n(?=\#{1,6} ))"
    r"|(?P<paragraph>\n[ \t\r]*\n\s*)"
    r"|(?P<sentence_line>[.!?…:][\"'”’)\]]*[ \t\r]*\n)"
    r"|(?P<sentence>[.!?…][\"'”’)\]]*[ \t]+|[。！？；]+[」』”’）]*)"
    r"|(?P<line>\n)"
)
_RANK = {"heading": 4.0, "paragraph": 3.0, "sentence_line": 2.4, "sentence": 2.0, "line": 1.6}
_PAGE_RANK = 2.4
_DISTANCE_WEIGHT = 2.0  # a boundary half a chunk away from the goal must be one rank better

_EXTENDING = frozenset(["Mn", "Me", "Mc"])
_JOINERS = frozenset("\u200c\u200d")

I32 = NDArray[np.int32]
TokenSpans = Callable[[str], I32]


@dataclass(frozen=True, slots=True)
class ChunkRules:
    """target_tokens: what a chunk aims at; budget_tokens: what the model can take; vector_chunks: how many chunks of a
    document get vectors, the rest being cut by characters; with_lines: whether the format has lines worth telling."""

    target_tokens: int
    budget_tokens: int
    vector_chunks: int
    with_lines: bool

    def stamp(self) -> str:
        """Names everything that decides where cuts fall, for the version of what is derived from them."""
        return f"chunk/{CHUNKER_VERSION} {self.target_tokens}/{self.budget_tokens} {self.vector_chunks}"


class Chunker:
    """Takes one document's text in order and gives back its chunks in order."""

    def __init__(self, token_spans: TokenSpans, rules: ChunkRules) -> None:
        self._token_spans = token_spans
        self._rules = rules
        self._buffer = ""
        self._offset = 0  # of the buffer in the document
        self._line = 1  # in which the buffer starts
        self._page_starts: list[int] = []
        self._pages: list[int] = []
        self.chunk_count = 0
        self.char_count = 0
        self.beyond_limit = 0  # chunks without vectors

    def page(self, number: int) -> None:
        """The text that follows stands on this page."""
        self._page_starts.append(self.char_count)
        self._pages.append(number)

    def add(self, text: str) -> list[NewChunk]:
        """The next text of the document; returns the chunks that are certain by now."""
        self._buffer += text
        self.char_count += len(text)
        if len(self._buffer) < WINDOW_CHARS:
            return []
        return self._cut(final=False)

    def finish(self) -> list[NewChunk]:
        """The document is at its end; returns the last chunks."""
        return self._cut(final=True)

    def _cut(self, *, final: bool) -> list[NewChunk]:
        chunks: list[NewChunk] = []
        position = 0
        left = self._rules.vector_chunks - self.chunk_count
        if left > 0:
            position = self._cut_by_tokens(chunks, left, final=final)
        if self.chunk_count >= self._rules.vector_chunks:
            position = self._cut_by_chars(chunks, position, final=final)
        self._line += self._buffer.count("\n", 0, position)
        self._offset += position
        self._buffer = self._buffer[position:]
        return chunks

    def _cut_by_tokens(self, chunks: list[NewChunk], left: int, *, final: bool) -> int:
        """Cut up to `left` chunks; returns where in the buffer the uncut rest starts."""
        window = _Window(self._buffer, self._token_spans(self._buffer), self._page_offsets(), self._rules)
        certain = len(self._buffer) if final else len(self._buffer) - TAIL_CHARS
        position = line_at = 0
        line = self._line
        while left > 0:
            start = _skip_space(self._buffer, position)
            if start >= certain:
                return position if start < len(self._buffer) else len(self._buffer)
            end = window.next_end(start, final=final)
            line += self._buffer.count("\n", line_at, start)
            line_at = start
            self._append(chunks, start, end, line, embed=True)
            position = end
            left -= 1
        return position

    def _cut_by_chars(self, chunks: list[NewChunk], position: int, *, final: bool) -> int:
        text = self._buffer
        certain = len(text) if final else len(text) - WORDS_LONGEST_CHARS
        line_at, line = 0, self._line
        while True:
            start = _skip_space(text, position)
            if start >= certain:
                return position if start < len(text) else len(text)
            end = _end_by_chars(text, start)
            line += text.count("\n", line_at, start)
            line_at = start
            self._append(chunks, start, end, line, embed=False)
            self.beyond_limit += 1
            position = end

    def _append(self, chunks: list[NewChunk], start: int, end: int, line: int, *, embed: bool) -> None:
        text = self._buffer[start:end].rstrip()
        begin = self._offset + start
        page = None
        if self._pages:
            page = self._pages[max(0, bisect.bisect_right(self._page_starts, begin) - 1)]
        line_number = line if self._rules.with_lines else None
        chunks.append(NewChunk(begin, begin + len(text), text, page=page, line=line_number, embed=embed))
        self.chunk_count += 1

    def _page_offsets(self) -> list[int]:
        first = bisect.bisect_right(self._page_starts, self._offset)
        return [start - self._offset for start in self._page_starts[first:]]


class _Window:
    """One stretch of text with its tokens and the places where it may be cut."""

    def __init__(self, text: str, spans: I32, pages: list[int], rules: ChunkRules) -> None:
        self._text = text
        self._starts = spans[:, 0]
        self._ends = spans[:, 1]
        self._goal = rules.target_tokens
        self._budget = rules.budget_tokens
        found = [(match.end(), _RANK[str(match.lastgroup)]) for match in _BOUNDARY.finditer(text)]
        found += [(page, _PAGE_RANK) for page in pages if 0 < page < len(text)]
        found.sort()
        self._places = np.array([place for place, _ in found], np.int64)
        self._ranks = np.array([rank for _, rank in found], np.float64)

    def next_end(self, start: int, *, final: bool) -> int:
        """Where the chunk that starts at `start` ends; always behind `start`."""
        first = int(np.searchsorted(self._starts, start))
        remaining = len(self._starts) - first
        rest_chars = len(self._text) - start
        if final and remaining <= self._budget and rest_chars <= LONGEST_CHARS:
            return len(self._text)
        goal = float(self._goal)
        if final:  # share the end out evenly, so that no scrap is left over
            goal = remaining / max(1, -(-remaining // self._goal)) if remaining < 4 * self._goal else goal
        last_token = first + min(self._budget, int(goal * 1.25) + 1, remaining)
        reach = len(self._text) if last_token >= len(self._starts) else int(self._starts[last_token])
        reach = min(reach, start + LONGEST_CHARS)
        return self._best_place(start, first, goal, reach) or self._forced_end(start, first, goal, reach)

    def _best_place(self, start: int, first: int, goal: float, reach: int) -> int:
        """The best boundary within reach, at least 40 % of the goal away; 0 where there is none."""
        low = int(np.searchsorted(self._places, start, "right"))
        high = int(np.searchsorted(self._places, reach, "right"))
        places = self._places[low:high]
        counts = np.searchsorted(self._starts, places) - first
        scores = self._ranks[low:high] - _DISTANCE_WEIGHT * np.abs(counts - goal) / goal
        scores[counts < 0.4 * goal] = -np.inf
        if not len(scores) or scores.max() == -np.inf:
            return 0
        return int(places[int(scores.argmax())])

    def _forced_end(self, start: int, first: int, goal: float, reach: int) -> int:
        """No boundary: behind white space, else between two tokens, never inside a character as people see it."""
        token = min(first + max(1, int(goal)), len(self._starts)) - 1
        wanted = min(int(self._ends[token]) if token >= first else reach, reach)
        wanted = max(wanted, start + 1)
        space = max(self._text.rfind(mark, start + (wanted - start) // 2, wanted) for mark in (" ", "\t", "\u3000"))
        return space + 1 if space > start else safe_cut(self._text, wanted, start)


def _end_by_chars(text: str, start: int) -> int:
    if len(text) - start <= WORDS_LONGEST_CHARS:
        return len(text)
    goal, limit = start + WORDS_TARGET_CHARS, start + WORDS_LONGEST_CHARS
    for mark, low in (("\n", start + 200), (". ", start + 400), (" ", start + 400)):
        found = text.rfind(mark, low, goal)
        if found < 0:
            found = text.find(mark, goal, limit)
        if found > start:
            return found + 1
    return safe_cut(text, goal, start)


def _skip_space(text: str, position: int) -> int:
    length = len(text)
    while position < length and text[position].isspace():
        position += 1
    return position


def safe_cut(text: str, position: int, start: int) -> int:
    """The last place at or before `position` where no character as people see it is split; behind `start` always.

    Combining marks, joiners, variation selectors, emoji modifiers, flag pairs, Hangul letters and CR LF stay together.
    """
    cut = min(position, len(text))
    while cut > start + 1 and cut < len(text) and not _may_cut(text, cut):
        cut -= 1
    return cut if cut > start + 1 or cut >= len(text) or _may_cut(text, cut) else min(position, len(text))


def _may_cut(text: str, cut: int) -> bool:
    after, before = text[cut], text[cut - 1]
    if before in _JOINERS or after in _JOINERS or (before == "\r" and after == "\n"):
        return False
    if unicodedata.category(after) in _EXTENDING or "\U0001f3fb" <= after <= "\U0001f3ff":
        return False
    if "\u1160" <= after <= "\u11ff":  # the inner letters of a Hangul syllable
        return False
    if _is_flag_letter(after) and _is_flag_letter(before):
        run = cut
        while run > 0 and _is_flag_letter(text[run - 1]):
            run -= 1
        return (cut - run) % 2 == 0
    return not "\U000e0020" <= after <= "\U000e007f"


def _is_flag_letter(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"
