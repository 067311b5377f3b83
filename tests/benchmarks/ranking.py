"""Ranking quality of words, meaning, both, and both reranked; and the fusion weights, chosen leave-one-set-out.

    python -m tests.benchmarks.ranking SETS --index FOLDER [--sets med cranfield time xquad-en] [--model M]

SETS holds relevance sets in BEIR layout. Each is indexed below FOLDER, once. For every set the weights are chosen on
the other sets alone and measured on it; how far that lies below the product's own weights says how much choosing them
on all sets flatters them.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from app.evaluation import RelevanceSet, index_set, load_set, ndcg
from engine import Encoder
from engine.catalog import Catalog
from engine.search.candidates import F32, Filters
from engine.search.dense import encode_query
from engine.search.fusion import FOREIGN, WEIGHTS, Weights, fuse, reads
from engine.search.parse import parse
from engine.search.pipeline import RERANKED, Request, Search
from indexer.chunk import ChunkRules
from indexer.options import DEFAULT_MODEL, IndexerOptions
from indexer.store.candidates import StoreCandidates
from indexer.store.reader import Reader

GRID = [
    Weights(words=words, tokens=tokens, first_words=first)
    for words, tokens, first in itertools.product((0.3, 0.45, 0.6, 0.75), (0.6, 0.8, 1.0, 1.3), (0.3, 0.5, 0.7))
]
SETS = ("med", "cranfield", "time", "xquad-en")


@dataclass(frozen=True)
class Case:
    """The candidates of one query with all their scores, and which documents answer it."""

    documents: list[str]
    words: F32
    cosines: F32
    tokens: F32
    exact: F32
    answers: dict[str, int]
    foreign: bool  # the model cannot read the query's script

    def first(self, weights: Weights) -> F32:
        weights = FOREIGN if self.foreign else weights
        return fuse([(weights.meaning, self.cosines), (weights.first_words, self.words)])

    def reranked(self, weights: Weights) -> F32:
        weights = FOREIGN if self.foreign else weights
        first = np.lexsort((-self.first(weights), -self.exact))[:RERANKED]
        parts = [(weights.meaning, self.cosines), (weights.words, self.words), (weights.tokens, self.tokens)]
        scores = np.full(self.words.shape, -np.inf, np.float32)
        scores[first] = fuse([(weight, values[first]) for weight, values in parts])
        return scores

    def quality(self, scores: F32, exact: bool = True) -> float:
        order = np.lexsort((-scores, -self.exact if exact else np.zeros_like(self.exact)))
        ranked = list(dict.fromkeys(self.documents[at] for at in order))
        return ndcg(ranked, self.answers, 10)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--model", default=DEFAULT_MODEL)
    parser.add_argument("--precision", default="int8")
    parser.add_argument("--target", type=int, help="tokens that a chunk aims at (the indexer's default)")
    options = parser.parse_args()
    target = options.target or IndexerOptions(data_dir=options.index).chunk_target_tokens
    cases: dict[str, list[Case]] = {}
    with Encoder.load(options.model, precision=options.precision, workers=1) as encoder:
        rules = ChunkRules(min(target, encoder.chunk_tokens), encoder.chunk_tokens, 3_000, with_lines=True)
        for name in options.sets:
            given = load_set(options.folder / name)
            where = options.index / f"{name}-{target}"
            if not (where / "index.db").exists():
                index_set(given, where, encoder, rules, lambda done, total: None)
            cases[name] = cases_of(given, where, encoder)
            print(f"{name}: {len(given.documents)} documents, {len(cases[name])} queries", flush=True)
    print(f"model {options.model}, {options.precision}, chunks of about {target} tokens; nDCG@10")
    report(cases)


def cases_of(given: RelevanceSet, where: Path, encoder: Encoder) -> list[Case]:
    """Ask every query once, keeping what each kind of score says of every candidate."""
    found: list[Case] = []
    known = Catalog.load().find(encoder.name)
    languages = known.languages if known else ()
    with Reader.open(where) as reader:
        source = StoreCandidates(reader)
        for query_id, text in given.queries:
            search = Search(Request(text, 100), source, encoder, WEIGHTS, lambda: False)
            query = parse(text)
            search.meaning = encode_query(encoder, query.text)
            with source.snapshot():
                candidates, words = search.find(query)
                tokens = search.token_scores(candidates.chunk_ids, query, words)
                documents = source.documents(np.unique(candidates.content_ids), Filters())
            names = {document.content_id: document.path.decode() for document in documents}
            found.append(
                Case(
                    [names[content] for content in candidates.content_ids.tolist()],
                    candidates.words,
                    candidates.cosines,
                    tokens,
                    candidates.exact,
                    given.answers[query_id],
                    not reads(languages, text),
                )
            )
    return found


def report(cases: dict[str, list[Case]]) -> None:
    """Both tables."""
    names = list(cases)
    kinds = {
        "words": lambda case: case.quality(case.words),
        "meaning": lambda case: case.quality(np.nan_to_num(case.cosines, nan=-1.0), exact=False),
        "hybrid": lambda case: case.quality(case.first(WEIGHTS)),
        "hybrid + rerank": lambda case: case.quality(case.reranked(WEIGHTS)),
    }
    print(f"{'':18}" + "".join(f"{name:>12}" for name in names) + f"{'mean':>12}")
    for kind, score in kinds.items():
        row = [float(np.mean([score(case) for case in cases[name]])) for name in names]
        print(f"{kind:18}" + "".join(f"{value:12.4f}" for value in [*row, float(np.mean(row))]))
    if len(names) < 2:
        return
    grid = np.array([[_mean(cases[name], weights) for name in names] for weights in GRID])
    left_out = []
    for at, name in enumerate(names):
        others = [other for other in range(len(names)) if other != at]
        chosen = int(_utility(grid[:, others]).argmax())
        left_out.append(float(grid[chosen, at]))
        print(f"without {name}: {_named(GRID[chosen])} -> {name} {grid[chosen, at]:.4f}")
    print(f"{'leave one out':18}" + "".join(f"{value:12.4f}" for value in [*left_out, float(np.mean(left_out))]))
    best = int(_utility(grid).argmax())
    print(f"on all sets: {_named(GRID[best])} -> " + " ".join(f"{value:.4f}" for value in grid[best]))
    print(f"in the product: {_named(WEIGHTS)}")


def _mean(cases: Sequence[Case], weights: Weights) -> float:
    return float(np.mean([case.quality(case.reranked(weights)) for case in cases]))


def _utility(grid: np.ndarray) -> np.ndarray:
    """The mean of the sets, each measured by what its best weights reach, so that no set counts more than another."""
    return (grid / grid.max(axis=0)).mean(axis=1)


def _named(weights: Weights) -> str:
    return f"words {weights.words}, tokens {weights.tokens}, first words {weights.first_words}"


if __name__ == "__main__":
    main()
