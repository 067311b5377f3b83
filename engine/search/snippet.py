"""What of a chunk is shown: a stretch around the best sentence, with the words of the query marked."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from engine.search.candidates import F32, I32
from engine.search.lexical import UNSPACED_RUN, prepare_text
from engine.search.parse import Term

SNIPPET_CHARS = 280
PASSAGE_CHARS = 600  # a "sentence" longer than this is cut
_SENTENCE_END = re.compile(r"[.!?…]+[\"'”’)\]]*\s+|[。！？；]+[」』”’）]*|\n\s*\n|\n(?=\s*[-*•#\d])")
_FOLDED = re.compile(r"\s{2,}|[^\S ]")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*[+#]*")


@dataclass(frozen=True, slots=True)
class Snippet:
    """text: white space folded, cut at words. highlights: (start, end) characters in it; focus: the passage in it."""

    text: str
    highlights: tuple[tuple[int, int], ...]
    focus: tuple[int, int]


def sentences(text: str) -> list[tuple[int, int]]:
    """The sentences of a text as (start, end), white space around them left out; together they hold all that is not."""
    found: list[tuple[int, int]] = []
    at = 0
    for end in [*(match.end() for match in _SENTENCE_END.finditer(text)), len(text)]:
        part = text[at:end]
        start, stop = at + len(part) - len(part.lstrip()), at + len(part.rstrip())
        if stop > start:
            found.append((start, stop))
        at = end
    return found


def best_sentence(text: str, spans: Sequence[tuple[float, int, int]]) -> tuple[int, int]:
    """The sentence that holds the most of what matched; with its neighbour where that holds nearly as much.

    spans: what matched, as (gain, start, end) in characters of the text. Returns (start, end).
    """
    found = sentences(text)
    if not found:
        return 0, len(text)
    gains = np.zeros(len(found))
    starts = np.array([start for start, _ in found])
    for gain, start, _ in spans:
        at = int(np.searchsorted(starts, start, "right")) - 1
        if at >= 0 and start < found[at][1]:
            gains[at] += gain
    best = int(gains.argmax())
    begin, end = found[best]
    for other in (best - 1, best + 1):
        if 0 <= other < len(found) and gains[other] > 0.8 * gains[best] > 0:
            joined = min(begin, found[other][0]), max(end, found[other][1])
            if joined[1] - joined[0] <= PASSAGE_CHARS:
                return joined
    return begin, min(end, begin + PASSAGE_CHARS)


class WordMarker:
    """Finds the words of a query in texts: by stem, by beginning, or as written in unspaced scripts."""

    def __init__(self, stems: Collection[str], terms: Sequence[Term], stem: Callable[[str], list[str]]) -> None:
        self._stems = frozenset(stems)
        self._stem = stem
        self._beginnings = tuple(term.prepared for term in terms if term.prefix)
        # What a word and its stem have in common at least: two letters, but y may have become i.
        self._heads = frozenset(text[:2].replace("y", "i") for text in (*stems, *self._beginnings))
        pieces = {piece for term in terms for piece in term.prepared.split() if UNSPACED_RUN.fullmatch(piece)}
        self._unspaced = [re.compile(re.escape(piece)) for piece in sorted(pieces)]
        self._known: dict[str, bool] = {}

    def __call__(self, text: str) -> list[tuple[int, int]]:
        """Where they stand, as ascending (start, end) that do not touch."""
        known = self._known
        found: list[tuple[int, int]] = []
        for match in _WORD.finditer(text):
            word = match[0]
            asked = known.get(word)
            if asked is None:
                asked = known[word] = self._is_asked(word)
            if asked:
                found.append(match.span())
        for pattern in self._unspaced:
            found += [match.span() for match in pattern.finditer(text)]
        return _join(found)

    def _is_asked(self, word: str) -> bool:
        if word.isascii():
            if word[:2].lower().replace("y", "i") not in self._heads:
                return False
        elif UNSPACED_RUN.search(word):
            return False
        prepared = prepare_text(word)
        return prepared.startswith(self._beginnings) or not self._stems.isdisjoint(self._stem(prepared))


def even_spans(tokens: int, text: str) -> I32:
    """About where each token stands, were they equally long: (tokens, 2) int32. Good enough to choose a sentence."""
    edges = np.linspace(0, len(text), tokens + 1).astype(np.int32)
    return np.stack([edges[:-1], edges[1:]], axis=1)


def token_spans_hit(rows: I32, gains: F32, spans: I32) -> list[tuple[float, int, int]]:
    """MaxSim's matches as (gain, start, end): rows (q,) tokens of the chunk, gains (q,), spans (t, 2) characters."""
    return [
        (float(gain), int(spans[row, 0]), int(spans[row, 1]))
        for row, gain in zip(rows.tolist(), gains.tolist(), strict=True)
        if 0 <= row < spans.shape[0] and gain > 0
    ]


def snippet(text: str, focus: tuple[int, int], mark: Callable[[str], list[tuple[int, int]]]) -> Snippet:
    """A stretch of about SNIPPET_CHARS around `focus` (start, end), with the focus located in it.

    mark: where the words to highlight stand in a piece of text.
    """
    begin, end = _window(text, focus)
    lead = "…" if begin > 0 else ""
    if begin == 0 or text[begin - 1].isspace():
        while begin < end and text[begin].isspace():
            begin += 1
    window = text[begin:end]
    folds = [match.span() for match in _FOLDED.finditer(window)]  # white space that becomes one space
    gaps = [stop for _, stop in folds]
    lost = list(accumulate((stop - start - 1 for start, stop in folds), initial=0))

    shown = lead + _FOLDED.sub(" ", window).rstrip()

    def moved(start: int, stop: int) -> tuple[int, int]:
        places = (max(start, begin) - begin, min(stop, end) - begin)
        first, last = (len(lead) + at - lost[bisect_right(gaps, at)] for at in places)
        return min(first, len(shown)), min(max(first, last), len(shown))

    highlights = tuple(moved(begin + start, begin + stop) for start, stop in mark(window))
    return Snippet(shown + ("…" if end < len(text.rstrip()) else ""), highlights, moved(*focus))


def _window(text: str, focus: tuple[int, int]) -> tuple[int, int]:
    """SNIPPET_CHARS around the focus, a third of the room before it, cut where words end."""
    start, stop = focus
    if stop - start >= SNIPPET_CHARS:
        return start, _word_end(text, start + SNIPPET_CHARS)
    room = SNIPPET_CHARS - (stop - start)
    begin = max(0, start - room // 3)
    end = min(len(text), begin + SNIPPET_CHARS)
    begin = max(0, min(begin, end - SNIPPET_CHARS))
    if begin > 0:
        space = re.search(r"\s", text[begin:start])
        begin = begin + space.end() if space else begin
    return begin, _word_end(text, end)


def _word_end(text: str, end: int) -> int:
    """The last end of a word at or before `end`; `end` itself in a text without spaces."""
    if end >= len(text) or text[end].isspace():
        return min(end, len(text))
    space = max(text.rfind(" ", end - 40, end), text.rfind("\n", end - 40, end))
    return space if space > 0 else end


def _join(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ascending spans, those that overlap or touch made one."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
