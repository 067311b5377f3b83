"""How much int8 changes a model: both precisions on the same texts, which come with the program."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import resources
from engine.encoder import Encoder
from engine.options import NUMERICS
from engine.record import Fidelity, Kind
from engine.reranker import CrossEncoder
from engine.reranker_folder import RerankerFolder, open_folder
from engine.weights.packed import is_packed

F32 = NDArray[np.float32]
Progress = Callable[[int, int], None]  # steps done, steps in all

BEST = 10  # how many of a ranking are compared
AT_ONCE = 8  # texts between two reports
QUERIES = 4  # of a reranker, which has a pair to compute for each of them and every text


@cache
def probe_texts() -> tuple[str, ...]:
    """The texts: short and long, of many languages, and awkward ones."""
    return tuple(json.loads(resources.path("probes", "texts.json").read_text(encoding="utf-8")))


def fp32_bytes(path: Path) -> int:
    """Memory that the weights of a model take in fp32."""
    return sum(math.prod(parameter.shape) * 4 for parameter in open_folder(path).parameters())


def measure(path: Path, *, workers: int | None = None, progress: Progress | None = None) -> Fidelity | None:
    """Compare int8 with fp32; None where the folder holds packed weights only. Raises ModelError."""
    folder = open_folder(path)
    with folder.weights() as weights:
        if is_packed(weights):
            return None
    if isinstance(folder, RerankerFolder):
        return _of_scores(*(_scores(path, precision, workers, progress) for precision in ("fp32", "int8")))
    if folder.late is not None:
        return _of_tokens(*(_tokens(path, precision, workers, progress) for precision in ("fp32", "int8")))
    return _of_vectors(*(_vectors(path, precision, workers, progress) for precision in ("fp32", "int8")))


def _vectors(path: Path, precision: str, workers: int | None, progress: Progress | None) -> F32:
    with Encoder.load(path, precision=precision, workers=workers) as encoder:
        rows, texts = [], probe_texts()
        for start in range(0, len(texts), AT_ONCE):
            rows.append(encoder.encode(texts[start : start + AT_ONCE], role="document"))
            _report(progress, precision, min(start + AT_ONCE, len(texts)))
    return np.concatenate(rows)


def _tokens(path: Path, precision: str, workers: int | None, progress: Progress | None) -> list[tuple[F32, F32]]:
    """Of each text the token vectors as a query and as a document, each (tokens, dim)."""
    found = []
    with Encoder.load(path, precision=precision, workers=workers) as encoder:
        for i, text in enumerate(probe_texts()):
            query, document = (encoder.encode_tokens([text], role=role)[0].vectors for role in ("query", "document"))
            found.append((query, document))
            _report(progress, precision, i + 1)
    return found


def _scores(path: Path, precision: str, workers: int | None, progress: Progress | None) -> F32:
    """(queries, texts) float32."""
    texts = probe_texts()
    with CrossEncoder.load(path, precision=precision, workers=workers) as reranker:
        rows = []
        for i, query in enumerate(texts[:QUERIES]):
            rows.append(reranker.score(query, texts))
            _report(progress, precision, (i + 1) * len(texts) // QUERIES)
    return np.stack(rows)


def _report(progress: Progress | None, precision: str, done: int) -> None:
    if progress is not None:
        texts = len(probe_texts())
        progress(done + texts * (precision == "int8"), 2 * texts)


def _of_vectors(exact: F32, rounded: F32) -> Fidelity:
    cosines = _cosines(exact, rounded)
    one, other = (_unit(rows) @ _unit(rows).T for rows in (exact, rounded))
    return _fidelity("vectors", cosines, _overlap(_without_itself(one), _without_itself(other)), 0.0)


def _of_tokens(exact: list[tuple[F32, F32]], rounded: list[tuple[F32, F32]]) -> Fidelity:
    """A text's likeness is the mean cosine of its tokens, as a query and as a document, whichever is less."""
    pairs = [
        min(_mean_cosine(one, other) for one, other in zip(*both, strict=True))
        for both in zip(exact, rounded, strict=True)
    ]
    one, other = (_maxsim(found) for found in (exact, rounded))
    return _fidelity("tokens", np.asarray(pairs), _overlap(_without_itself(one), _without_itself(other)), 0.0)


def _of_scores(exact: F32, rounded: F32) -> Fidelity:
    ranks = np.asarray([_rank_correlation(one, other) for one, other in zip(exact, rounded, strict=True)])
    return _fidelity("scores", ranks, _overlap(exact, rounded), float(np.abs(exact - rounded).max()))


def _fidelity(kind: Kind, likeness: NDArray[np.floating], top10: float, difference: float) -> Fidelity:
    worst, mean = (round(float(value), 6) for value in (likeness.min(), likeness.mean()))
    return Fidelity(kind, worst, mean, round(top10, 4), round(difference, 6), len(probe_texts()), NUMERICS)


def _unit(rows: F32) -> NDArray[np.float64]:
    """Rows of length 1 in float64; a row of zeros, which a text without any token may have, stays one."""
    wide = rows.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    return wide / np.where(lengths > 0, lengths, 1)


def _cosines(exact: F32, rounded: F32) -> NDArray[np.float64]:
    """Row by row; two rows of zeros are alike."""
    both_zero = ~exact.any(axis=1) & ~rounded.any(axis=1)
    return np.where(both_zero, 1.0, (_unit(exact) * _unit(rounded)).sum(axis=1))


def _mean_cosine(exact: F32, rounded: F32) -> float:
    return float(_cosines(exact, rounded).mean()) if len(exact) else 1.0


def _maxsim(texts: list[tuple[F32, F32]]) -> NDArray[np.float64]:
    """(texts, texts): the text of the row as a query against each as a document."""
    return np.asarray(
        [
            [(query @ document.T).max(axis=1).sum() if len(document) else 0.0 for _, document in texts]
            for query, _ in texts
        ],
        np.float64,
    )


def _without_itself(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """A text is no answer to itself."""
    return np.where(np.eye(len(scores), dtype=bool), -np.inf, scores)


def _overlap(exact: NDArray[np.floating], rounded: NDArray[np.floating]) -> float:
    """The share of the ten best of each row that both have; equal scores stand in the order of the texts."""
    one, other = (np.argsort(-scores, axis=1, kind="stable")[:, :BEST] for scores in (exact, rounded))
    return float(np.mean([len(set(a) & set(b)) / BEST for a, b in zip(one.tolist(), other.tolist(), strict=True)]))


def _rank_correlation(exact: F32, rounded: F32) -> float:
    """Spearman's coefficient: the correlation of ranks, equal numbers sharing the mean of theirs."""
    one, other = (_ranks(values) for values in (exact, rounded))
    spread = float(np.sqrt((one**2).sum() * (other**2).sum()))
    return float((one * other).sum()) / spread if spread else 1.0


def _ranks(values: F32) -> NDArray[np.float64]:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: NDArray[np.float64] = (np.cumsum(counts) - (counts - 1) / 2.0)[place]
    centred: NDArray[np.float64] = ranks - ranks.mean()
    return centred
