"""Measuring ranking quality on a set with known answers, in BEIR layout, through the same path as people's files.

A set is a folder with corpus.jsonl ({"_id", "title", "text"}), queries.jsonl ({"_id", "text"}) and judgements as
qrels.tsv or qrels/test.tsv (query-id, corpus-id, score, with a heading).
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine import Encoder
from engine.catalog import Catalog
from engine.errors import EngineError
from engine.search.fusion import WEIGHTS, Weights
from engine.search.pipeline import Mode, Request, search
from indexer.chunk import Chunker, ChunkRules
from indexer.embed import MeaningStage
from indexer.options import IndexerOptions
from indexer.store.candidates import StoreCandidates
from indexer.store.reader import Reader
from indexer.store.records import text_hash
from indexer.store.writer import Writer

DEPTH = 100  # documents looked at a query
Report = Callable[[int, int], None]  # done, total


@dataclass(frozen=True, slots=True)
class RelevanceSet:
    """documents: (id, title, text); queries: (id, text) of those that have answers; answers: query id -> document id ->
    grade above 0.
    """

    documents: list[tuple[str, str, str]]
    queries: list[tuple[str, str]]
    answers: dict[str, dict[str, int]]


@dataclass(frozen=True, slots=True)
class Quality:
    """Means over all queries."""

    ndcg_10: float
    recall_100: float
    mrr_10: float
    queries: int
    documents: int

    def as_json(self) -> dict[str, float | int]:
        """The object that `inkling eval --json` prints."""
        return {
            "ndcg@10": round(self.ndcg_10, 5),
            "recall@100": round(self.recall_100, 5),
            "mrr@10": round(self.mrr_10, 5),
            "queries": self.queries,
            "documents": self.documents,
        }


def load_set(folder: Path) -> RelevanceSet:
    """Read a set. Raises EngineError naming the file that is missing or wrong."""
    documents = [
        (str(row["_id"]), str(row.get("title") or ""), str(row["text"] or ""))
        for row in _json_lines(folder / "corpus.jsonl", ("_id", "text"))
    ]
    answers = _answers(folder)
    queries = [(str(row["_id"]), str(row["text"])) for row in _json_lines(folder / "queries.jsonl", ("_id", "text"))]
    answered = [query for query in queries if answers.get(query[0])]
    known = {name for name, _, _ in documents}
    if not any(known & answers[name].keys() for name, _ in answered):
        raise EngineError(f"No query of {folder} has an answer in its corpus: the ids in the three files do not match.")
    return RelevanceSet(documents, answered, answers)


def _answers(folder: Path) -> dict[str, dict[str, int]]:
    path = next((p for p in (folder / "qrels.tsv", folder / "qrels" / "test.tsv") if p.is_file()), None)
    if path is None:
        raise EngineError(f"The folder {folder} has neither qrels.tsv nor qrels/test.tsv.")
    answers: dict[str, dict[str, int]] = {}
    for number, line in enumerate(_lines(path), 1):
        fields = line.split("\t")
        grade = _grade(fields[-1])
        if not line.strip() or (number == 1 and grade is None):
            continue  # the heading
        if len(fields) < 3 or grade is None:
            raise EngineError(f"Line {number} of {path} is not 'query-id, corpus-id, score' separated by tabs.")
        if grade > 0:
            answers.setdefault(fields[0], {})[fields[-2]] = grade
    return answers


def _grade(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _json_lines(path: Path, keys: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(_lines(path), 1):
        if line.strip():
            try:
                row = json.loads(line)
                for text in (*(row[key] for key in keys), *row.values()):
                    str(text).encode("utf-8")  # half a character, which JSON may hold, is no text
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                wanted = " and a ".join(keys)
                raise EngineError(f"Line {number} of {path} is not a JSON object with an {wanted}.") from error
            yield row


def _lines(path: Path) -> list[str]:
    try:
        # By line feeds alone: a text in JSON may hold what splitlines() takes for the end of a line.
        return path.read_text("utf-8").split("\n")
    except OSError as error:
        raise EngineError(f"The file {path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise EngineError(f"The file {path} is not UTF-8 (byte {error.start:,}).") from error


def index_set(given: RelevanceSet, data_dir: Path, encoder: Encoder, rules: ChunkRules, report: Report) -> None:
    """Build an index of the set in `data_dir`: chunk, embed, write, each document a file named by its id."""
    with Writer.open(data_dir) as writer:
        root = writer.add_root(b"/")
        for name, title, text in given.documents:
            whole = f"{title}\n\n{text}" if title else text
            chunker = Chunker(encoder.token_spans, rules)
            chunks = [*chunker.add(whole), *chunker.finish()]
            with writer.transaction():
                content = writer.begin_content(text_hash(f"{name}\n{whole}"), "eval", title=title)
                writer.add_chunks(content.content_id, chunks)
                writer.finish_content(content.content_id, char_count=len(whole))
                path = name.encode()
                writer.put_document(root.root_id, path, size=len(whole), mtime_ns=0, content_id=content.content_id)
        stage = MeaningStage(writer, encoder, encoder.name, IndexerOptions(data_dir).batch_tokens)
        total = writer.pending_count()
        while stage.step():
            report(total - writer.pending_count(), total)


def measure(
    given: RelevanceSet,
    data_dir: Path,
    encoder: Encoder | None,
    *,
    mode: Mode,
    rerank: bool,
    weights: Weights = WEIGHTS,
    report: Report = lambda done, total: None,
) -> Quality:
    """Ask every query of an indexed set and compare with the answers."""
    with Reader.open(data_dir) as reader:
        source = StoreCandidates(reader)
        known = Catalog.load().find(encoder.name) if encoder else None
        languages = known.languages if known else ()
        sums = [0.0, 0.0, 0.0]
        for done, (query_id, text) in enumerate(given.queries, 1):
            result = search(Request(text, DEPTH, mode, rerank), source, encoder, languages=languages, weights=weights)
            found = [os.fsdecode(hit.documents[0].path) for hit in result.hits]
            answers = given.answers[query_id]
            for at, value in enumerate(
                (ndcg(found, answers, 10), recall(found, answers, 100), mrr(found, answers, 10))
            ):
                sums[at] += value
            report(done, len(given.queries))
    count = max(len(given.queries), 1)
    return Quality(sums[0] / count, sums[1] / count, sums[2] / count, len(given.queries), len(given.documents))


def ndcg(found: Sequence[str], answers: Mapping[str, int], depth: int) -> float:
    """Normalised discounted cumulative gain as trec_eval counts it: the grade is the gain."""
    gained = sum(answers.get(name, 0) / math.log2(rank + 2) for rank, name in enumerate(found[:depth]))
    best = sum(grade / math.log2(rank + 2) for rank, grade in enumerate(sorted(answers.values(), reverse=True)[:depth]))
    return gained / best if best else 0.0


def recall(found: Sequence[str], answers: Mapping[str, int], depth: int) -> float:
    """Which share of the answers is among the first `depth`."""
    return len(set(found[:depth]) & set(answers)) / len(answers) if answers else 0.0


def mrr(found: Sequence[str], answers: Mapping[str, int], depth: int) -> float:
    """One over the rank of the first answer, 0 when none is among the first `depth`."""
    return next((1.0 / (rank + 1) for rank, name in enumerate(found[:depth]) if name in answers), 0.0)
