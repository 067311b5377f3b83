"""Words: how text is prepared for the word index, and how candidates are scored by the words they hold."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from engine.search.candidates import F32, I64, CandidateSource, Scope, Statistics

if TYPE_CHECKING:
    from engine.search.parse import Query

PREPARE_VERSION = 1  # raised whenever prepare_text gives something else for any text
K1, B = 1.2, 0.4  # passages are cut to about one length, so length says little: B is below the usual 0.75
POSTINGS_BUDGET = 20_000  # rows of posting lists read for one query
CANDIDATES = 500  # chunks scored in full
EXACT_LIMIT = 500  # newest exact hits of one identifier or phrase

# Scripts written without spaces between words (CJK, Thai, Lao, Khmer, Burmese) are indexed as overlapping pairs of
# characters, so that any two characters of a text are found; a lone last character lets one-character queries
# (a prefix search) find the end of a run too.
UNSPACED = (
    "\u0e00-\u0e4e\u0e80-\u0ecd\u1000-\u109f\u1780-\u17dd"  # Thai, Lao, Burmese, Khmer
    "\u2e80-\u2fd5\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3041-\u3096\u3099-\u309f\u30a1-\u30fa\u30fc-\u30ff"  # kana
    "\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Bopomofo, Han
    "\uac00-\ud7a3"  # Hangul: its words carry particles, so pairs find what whole words would miss
    "\U00020000-\U000323af"
)
UNSPACED_RUN = re.compile(f"[{UNSPACED}]+")
# Characters that carry no meaning of their own and would split or glue words: soft hyphen, zero-width, direction marks.
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
# "C++", "C#", "F#": the signs belong to the name. They are written as letters, which the tokenizer keeps.
_SIGNED_NAME = re.compile(r"(?<![^\W_])([^\W\d_])(\+\+|#)(?![\w+#])")
_SIGN_LETTERS = str.maketrans({"+": "\u1429", "#": "\u2d4c"})


def normalise(text: str) -> str:
    """The form in which texts and queries are compared: NFKC, case folded, invisible characters gone.

    Lone surrogates and NULs, which SQLite would not take, become U+FFFD.
    """
    folded = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text).replace("\0", "\ufffd")).casefold()
    return unicodedata.normalize(
        "NFKC", folded.encode("utf-8", "replace").decode("utf-8") if not _is_utf8(folded) else folded
    )


def prepare_text(text: str) -> str:
    """What the word index is given for `text`. The same text always gives the same result: deletion relies on it."""
    prepared = _SIGNED_NAME.sub(lambda match: match[1] + match[2].translate(_SIGN_LETTERS), normalise(text))
    return UNSPACED_RUN.sub(lambda match: f" {pairs_of(match[0])} {match[0][-1]} ", prepared)


def pairs_of(run: str) -> str:
    """The overlapping pairs of a run of an unspaced script, separated by spaces; '' for a single character."""
    return " ".join(run[i : i + 2] for i in range(len(run) - 1))


def _is_utf8(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def bm25(counts: F32, lengths: F32, frequencies: Sequence[int], statistics: Statistics) -> F32:
    """Score candidates by the words they hold (Robertson and Zaragoza 2009, The Probabilistic Relevance Framework).

    counts: (n, t) float32, how often each stem occurs in each candidate; lengths: (n,) float32, stems in it;
    frequencies: t, in how many chunks of the store each stem occurs. Returns (n,) float32, >= 0.
    """
    saturated = counts * (K1 + 1) / (counts + K1 * (1 - B + B * lengths / max(statistics.average_length, 1.0))[:, None])
    scores: F32 = (saturated @ idf(frequencies, statistics)).astype(np.float32)
    return scores


def bm25_of_documents(
    counts: F32, lengths: F32, owners: I64, frequencies: Sequence[int], statistics: Statistics
) -> F32:
    """`bm25` of each candidate's document, as far as its candidates hold it: their counts and lengths summed.

    owners: (n,) int64, which document each candidate belongs to. Returns (n,) float32, equal for equal owners.
    """
    documents, where = np.unique(owners, return_inverse=True)
    summed = np.zeros((documents.size, counts.shape[1]), np.float32)
    np.add.at(summed, where, counts)
    total = np.bincount(where, lengths, documents.size).astype(np.float32)
    return bm25(summed, total, frequencies, statistics)[where]


def idf(frequencies: Sequence[int], statistics: Statistics) -> F32:
    """How telling each stem is, from in how many chunks it occurs: (t,) float32, > 0."""
    df = np.array(frequencies, np.float32)
    weights: F32 = np.log1p((max(statistics.chunks, 1) - df + 0.5).clip(0.0) / (df + 0.5)).astype(np.float32)
    return weights


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a query, ready for scoring. stems and frequencies: (t,); stems occur once each, rarest first."""

    stems: tuple[str, ...]
    frequencies: tuple[int, ...]

    @classmethod
    def of(cls, query: Query, source: CandidateSource) -> Words:
        """Stem the query's terms and ask how often each occurs."""
        stems = dict.fromkeys(stem for term in query.terms for stem in source.stems(term.prepared) if not term.prefix)
        ranked = sorted(zip(source.frequencies(list(stems)), stems, strict=True))
        return cls(tuple(stem for _, stem in ranked), tuple(count for count, _ in ranked))


def find_by_words(query: Query, words: Words, scope: Scope, source: CandidateSource) -> I64:
    """The chunks worth scoring: all that a narrow scope allows; else all exact hits of identifiers and phrases, and
    those with the most telling words.

    The posting lists of the rarest stems are read up to a budget; which chunks hold how much idf is counted from them
    alone, and only the best that the scope allows are scored in full by the caller. Returns ascending chunk ids.
    """
    few = source.few_chunks(scope)
    if few is not None:
        return np.unique(few)
    found = [source.match(term.expression, EXACT_LIMIT, stemmed=False) for term in query.identifiers]
    weights = idf(words.frequencies, source.statistics())
    lists: list[I64] = []
    shares: list[F32] = []
    budget = POSTINGS_BUDGET
    for stem, frequency, weight in zip(words.stems, words.frequencies, weights, strict=True):
        if frequency == 0:
            continue
        if lists and frequency > budget:
            break
        postings = source.match(f'"{stem}"', POSTINGS_BUDGET, stemmed=True)
        lists.append(postings)
        shares.append(np.full(postings.shape, weight, np.float32))
        budget -= postings.size
    if lists:
        ids, where = np.unique(np.concatenate(lists), return_inverse=True)
        held = np.bincount(where, np.concatenate(shares))
        if not scope.open:
            allowed = scope.allows(ids, source.contents_of(ids))
            ids, held = ids[allowed], held[allowed]
        found.append(ids[np.argpartition(-held, CANDIDATES)[:CANDIDATES]] if ids.size > CANDIDATES else ids)
    return np.unique(np.concatenate(found)) if found else np.empty(0, np.int64)
