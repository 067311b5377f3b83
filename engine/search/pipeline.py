"""One search from the typed text to the hits: parse, find by words and by meaning, fuse, rerank, group, show."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Literal

import numpy as np

from engine.search import maxsim
from engine.search.calibrate import Noise
from engine.search.candidates import (
    F32,
    I64,
    NO_FILTERS,
    U8,
    CandidateSource,
    Filters,
    FoundDocument,
    Passage,
    Scope,
    Statistics,
)
from engine.search.dense import Meaning, QueryEncoder, encode_query, token_weights
from engine.search.fusion import FOREIGN, WEIGHTS, Weights, fuse, reads
from engine.search.lexical import EXACT_LIMIT, Words, bm25, bm25_of_documents, find_by_words, idf
from engine.search.parse import Query, parse
from engine.search.snippet import WordMarker, best_sentence, even_spans, snippet, token_spans_hit

Mode = Literal["hybrid", "words", "meaning"]
NEAREST = 200  # chunks taken by meaning
BEST_WORDS = 200  # chunks taken by words
RERANKED = 100  # of both, those whose tokens are compared
MEANT_PASSAGES = 40  # hits whose passage is chosen by meaning; later ones by the words they hold
EXACT_PASSAGES = 5  # hits whose passage is located token by token
TELLING_HITS = 100  # an identifier, or a short query, with more exact hits than this is nothing special
TELLING_SHARE = 0.3  # of a query's idf: a passage that holds so much of its words is not weak
SHORT_QUERY_STEMS = 4  # up to so many words, passages that hold all of them come first


class Cancelled(Exception):
    """A newer query made this one pointless."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked. limit: documents at most; filters are added to those written into the query."""

    text: str
    limit: int = 20
    mode: Mode = "hybrid"
    rerank: bool = True
    filters: Filters = NO_FILTERS


@dataclass(frozen=True, slots=True)
class Hit:
    """A document that was found, by its best chunk.

    documents: all that have this content; the first is shown. score: comparable within one result only.
    start_char, end_char, passage: what answers the query, in characters of the document. highlights: (start, end) in
    `snippet`, passage_span: the passage in it. more: further chunks of the document among the candidates that were
    ranked. weak: probably no answer.
    """

    documents: tuple[FoundDocument, ...]
    score: float
    page: int | None
    line: int | None
    start_char: int
    end_char: int
    snippet: str
    highlights: tuple[tuple[int, int], ...]
    passage: str
    passage_span: tuple[int, int]
    more: int
    weak: bool


@dataclass(slots=True)
class Result:
    """hits: best first. stages_ms: milliseconds by stage. words_only: the meaning could not be searched."""

    hits: list[Hit]
    stages_ms: dict[str, float]
    words_only: bool = False


@dataclass(slots=True)
class Candidates:
    """The chunks under consideration, as parallel arrays of n.

    words: BM25; cosines: NaN without a vector; exact: how many exact hits they hold, which come before all else;
    held: which share of the query's idf they hold; tokens: MaxSim, NaN where not compared.
    """

    chunk_ids: I64
    content_ids: I64
    words: F32
    cosines: F32
    exact: F32
    held: F32
    tokens: F32
    scores: F32

    def take(self, at: I64) -> Candidates:
        """Those at some positions, in that order."""
        return Candidates(**{each.name: getattr(self, each.name)[at] for each in fields(self)})


def search(
    request: Request,
    source: CandidateSource,
    encoder: QueryEncoder | None,
    *,
    languages: Sequence[str] = (),
    weights: Weights = WEIGHTS,
    noise: Callable[[], Noise] | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Result:
    """Find, rank and show. Raises Cancelled as soon as `cancelled` says so.

    encoder: None searches by words only. languages: the model's, as the catalog has them. noise: asked for when hits
    may be weak, which costs its time; without it no hit is called weak.
    """
    if request.mode == "hybrid" and not reads(languages, request.text):
        weights = FOREIGN
    return Search(request, source, encoder, weights, cancelled, noise).run()


class Search:
    """The state of one search; its methods are the stages in order."""

    def __init__(
        self,
        request: Request,
        source: CandidateSource,
        encoder: QueryEncoder | None,
        weights: Weights,
        cancelled: Callable[[], bool],
        noise: Callable[[], Noise] | None = None,
    ) -> None:
        self.noise = noise
        self.request, self.source, self.weights, self.cancelled = request, source, weights, cancelled
        self.encoder = None if request.mode == "words" else encoder
        self.stages_ms: dict[str, float] = {}
        self.meaning: Meaning | None = None
        self.token_weights = np.empty(0, np.float32)
        self.token_bits: dict[int, U8] = {}  # by chunk id, of those that were reranked
        self.more: dict[int, int] = {}
        self.mark = WordMarker((), (), source.stems)

    def run(self) -> Result:
        """All stages. The model runs before the snapshot begins, so that the snapshot is short."""
        with self._stage("parse"):
            query = parse(self.request.text)
            query = replace(query, filters=join(query.filters, self.request.filters))
        words_only = self.encoder is None and self.request.mode != "words"
        if query.empty:
            return Result([], self.stages_ms, words_only)
        if self.encoder is not None:
            with self._stage("embed"):
                self.meaning = encode_query(self.encoder, query.text)
        with self.source.snapshot():
            candidates, words = self.find(query)
            if candidates.chunk_ids.size and self.request.rerank and self.meaning is not None:
                with self._stage("rerank"):
                    candidates = self._rerank(candidates, query, words)
            with self._stage("show"):
                hits = self._show(candidates, query, words)
        return Result(hits, self.stages_ms, words_only)

    def find(self, query: Query) -> tuple[Candidates, Words]:
        """Candidates by words and by meaning, with the scores of both, best first."""
        source, mode = self.source, self.request.mode
        with self._stage("words"):
            words = Words.of(query, source)
            required = [" OR ".join(term.expression for term in group) for group in query.required]
            scope = source.scope(query.filters, required, [term.expression for term in query.excluded])
            named = self._named(query) if mode != "meaning" else np.empty(0, np.int64)
            by_words = find_by_words(query, words, scope, source) if mode != "meaning" else np.empty(0, np.int64)
            by_words = np.union1d(by_words, source.first_chunks(named))
        near, cosines = np.empty(0, np.int64), np.empty(0, np.float32)
        if self.meaning is not None:
            with self._stage("meaning"):
                near, cosines = source.nearest(self.meaning.vector, NEAREST, scope)
        with self._stage("score"):
            found = self._score(query, words, scope, np.union1d(by_words, near), named)
            order = np.argsort(near)
            found.cosines[np.isin(found.chunk_ids, near)] = cosines[order][np.isin(near[order], found.chunk_ids)]
            found = self._keep_best(found, near)
            if self.meaning is not None:
                unknown = np.isnan(found.cosines)
                found.cosines[unknown] = source.similarities(found.chunk_ids[unknown], self.meaning.vector)
            found.scores = self._first_scores(found)
        return found.take(_ranked(found)), words

    def _named(self, query: Query) -> I64:
        """Contents of documents whose name or title holds every word of the query."""
        return self.source.match_names(" AND ".join(term.expression for term in query.terms[:16]), BEST_WORDS)

    def _score(self, query: Query, words: Words, scope: Scope, ids: I64, named: I64) -> Candidates:
        """Word scores of all candidates that the scope allows."""
        counts = self.source.term_counts(ids, words.stems)
        statistics = self.source.statistics()
        scores = bm25(counts.counts, counts.lengths, words.frequencies, statistics)
        share = np.float32(self.weights.document_words)
        scores = (1 - share) * scores + share * bm25_of_documents(
            counts.counts, counts.lengths, counts.content_ids, words.frequencies, statistics
        )
        scores[np.isin(counts.content_ids, named)] += NAME_SHARE * idf(words.frequencies, statistics).sum()
        exact = np.zeros(ids.shape, np.float32)
        for term in query.identifiers:
            hits = self.source.match(term.expression, EXACT_LIMIT, stemmed=False)
            holds = np.isin(ids, hits)
            if hits.size <= TELLING_HITS:
                exact += holds
            if term.prefix:  # it has no stem to count
                scores[holds] += idf([hits.size], statistics)
        if 0 < len(words.stems) <= SHORT_QUERY_STEMS and self.request.mode != "meaning":
            full = (counts.counts > 0).all(axis=1) | np.isin(counts.content_ids, named)
            if np.count_nonzero(full) <= TELLING_HITS:
                exact += full
        allowed = np.flatnonzero((counts.content_ids >= 0) & scope.allows(ids, counts.content_ids))
        weights = idf(words.frequencies, statistics)
        held = ((counts.counts > 0) @ weights / max(float(weights.sum()), 1e-9)).astype(np.float32)
        unknown = np.full(ids.shape, np.nan, np.float32)
        found = Candidates(
            ids, counts.content_ids, scores, unknown.copy(), exact, held, unknown, np.zeros(ids.shape, np.float32)
        )
        return found.take(allowed)

    def _keep_best(self, found: Candidates, near: I64) -> Candidates:
        """All that is near in meaning, and the best by words."""
        keep = np.isin(found.chunk_ids, near)
        order = np.lexsort((found.chunk_ids, -found.words, -found.exact))[:BEST_WORDS]
        if self.request.mode != "meaning":
            keep[order[(found.words[order] > 0) | (found.exact[order] > 0)]] = True
        return found.take(np.flatnonzero(keep))

    def _first_scores(self, found: Candidates) -> F32:
        if self.meaning is None:
            return found.words
        if self.request.mode == "meaning":
            return np.where(np.isnan(found.cosines), np.float32(-1.0), found.cosines)
        return fuse([(self.weights.meaning, found.cosines), (self.weights.first_words, found.words)])

    def _rerank(self, found: Candidates, query: Query, words: Words) -> Candidates:
        """Compare the tokens of the best candidates with those of the query."""
        assert self.meaning is not None
        best = found.take(np.arange(min(RERANKED, found.chunk_ids.size)))
        best.tokens = self.token_scores(best.chunk_ids, query, words)
        parts = [(self.weights.meaning, best.cosines), (self.weights.tokens, best.tokens)]
        if self.request.mode == "hybrid":
            parts.append((self.weights.words, best.words))
        best.scores = fuse(parts)
        return best.take(_ranked(best))

    def token_scores(self, chunk_ids: I64, query: Query, words: Words) -> F32:
        """MaxSim of each chunk with the query, NaN for those without tokens; keeps the token bits for the passages."""
        assert self.meaning is not None
        statistics = self.source.statistics()
        self.token_weights = token_weights(self.meaning, query.text, words, statistics, self.source.stems)
        bits, starts = self.source.token_bits(chunk_ids)
        for i, chunk_id in enumerate(chunk_ids.tolist()):
            self.token_bits[chunk_id] = bits[starts[i] : starts[i + 1]]
        return maxsim.scores(self.meaning.tokens, self.token_weights, bits, starts)

    def _show(self, found: Candidates, query: Query, words: Words) -> list[Hit]:
        """One hit a document, equal texts folded, with snippet and passage."""
        self.mark = WordMarker(telling_stems(words, self.source.statistics()), query.terms, self.source.stems)
        contents, first, counts = np.unique(found.content_ids, return_index=True, return_counts=True)
        self.more = dict(zip(contents.tolist(), counts.tolist(), strict=True))
        found = found.take(np.sort(first))
        hits: list[Hit] = []
        texts: dict[str, int] = {}
        at = 0
        while len(hits) < self.request.limit and at < found.chunk_ids.size:
            part = found.take(np.arange(at, min(at + self.request.limit, found.chunk_ids.size)))
            at += part.chunk_ids.size
            documents: dict[int, list[FoundDocument]] = {}
            for document in self.source.documents(part.content_ids, query.filters):
                documents.setdefault(document.content_id, []).append(document)
            passages = {passage.chunk_id: passage for passage in self.source.passages(part.chunk_ids)}
            for i, chunk_id in enumerate(part.chunk_ids.tolist()):
                passage, owners = passages.get(chunk_id), documents.get(int(part.content_ids[i]), [])
                if passage is None or not owners:
                    continue
                same = " ".join(passage.text.split()).casefold()
                if same in texts:
                    known = hits[texts[same]]
                    hits[texts[same]] = replace(known, documents=known.documents + tuple(owners))
                elif len(hits) < self.request.limit:
                    texts[same] = len(hits)
                    hits.append(self._hit(len(hits), part, i, passage, owners))
        return hits

    def _hit(self, number: int, found: Candidates, i: int, passage: Passage, owners: list[FoundDocument]) -> Hit:
        if self.cancelled():
            raise Cancelled
        matches = self._matches(passage, exact=number < EXACT_PASSAGES) if number < MEANT_PASSAGES else []
        if not matches:
            matches = [(1.0, start, end) for start, end in self.mark(passage.text)]
        start, end = best_sentence(passage.text, matches)
        shown = snippet(passage.text, (start, end), self.mark)
        return Hit(
            documents=tuple(owners),
            score=float(found.scores[i]),
            page=passage.page,
            line=None if passage.line is None else passage.line + passage.text.count("\n", 0, start),
            start_char=passage.start_char + start,
            end_char=passage.start_char + end,
            snippet=shown.text,
            highlights=shown.highlights,
            passage=passage.text[start:end],
            passage_span=shown.focus,
            more=int(self.more.get(passage.content_id, 1)) - 1,
            weak=self._is_weak(found, i),
        )

    def _is_weak(self, found: Candidates, i: int) -> bool:
        """It holds few of the words, and is no nearer in meaning than what nonsense finds."""
        if self.meaning is None or self.noise is None or found.exact[i] > 0 or found.held[i] >= TELLING_SHARE:
            return False
        return self.noise().drowns(float(found.cosines[i]), float(found.tokens[i]))

    def _matches(self, passage: Passage, exact: bool) -> list[tuple[float, int, int]]:
        """Which tokens of the passage answer the query, as (gain, start, end); none where they are not known.

        exact: ask the tokenizer where each token stands, which costs about half a millisecond.
        """
        bits = self.token_bits.get(passage.chunk_id)
        if self.meaning is not None and self.encoder is not None and bits is not None and bits.shape[0]:
            rows, gains = maxsim.where(self.meaning.tokens, self.token_weights, bits)
            encoder, text = self.encoder, passage.text
            return token_spans_hit(rows, gains, encoder.token_spans(text) if exact else even_spans(bits.shape[0], text))
        return []

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        if self.cancelled():
            raise Cancelled
        start = time.perf_counter()
        yield
        self.stages_ms[name] = round((time.perf_counter() - start) * 1000, 3)


NAME_SHARE = 0.6


def join(a: Filters, b: Filters) -> Filters:
    """Both filters at once. Types and folders are alternatives among themselves; the narrower dates hold."""
    after = [time for time in (a.after_ns, b.after_ns) if time is not None]
    before = [time for time in (a.before_ns, b.before_ns) if time is not None]
    return Filters(
        a.folders + b.folders, a.types + b.types, max(after) if after else None, min(before) if before else None
    )


def telling_stems(words: Words, statistics: Statistics) -> frozenset[str]:
    """The stems worth marking: those in less than a quarter of all chunks, or all where there is no other."""
    common = max(statistics.chunks / 4, 3)
    rare = [stem for stem, count in zip(words.stems, words.frequencies, strict=True) if 0 < count < common]
    return frozenset(rare or words.stems)


def _ranked(found: Candidates) -> I64:
    """Positions best first, exact hits of identifiers before all else; ties by id, so that results are stable."""
    return np.lexsort((found.chunk_ids, -found.scores, -found.exact))
