"""How far every family is from its reference classes, measured on the committed goldens, as a table.

    python -m tests.goldens.table [--isa NAME ...] [FOLDER ...]

A row for each golden folder, the worst over all instruction sets that run here (or those named). Columns: how many
texts and of how many different lengths in tokens; whether all ids are equal; fp32, the largest difference of vectors
(of token vectors for ColBERT, of scores for rerankers) and of token states relative to the largest of them; int8, the
worst and the mean cosine (for scores the largest difference); and whether a text gives the same bits alone, in one
batch of all, and on one, two and three workers, in both precisions.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engine import CrossEncoder, Encoder
from engine.kernels import loader
from tests.goldens.reading import HERE, cosines
from tests.goldens.texts import AWKWARD

Rows = np.ndarray[Any, Any]
WORKERS = (1, 2, 3)


@dataclass(frozen=True)
class Row:
    """One golden folder under one instruction set; None where a column has no meaning for it."""

    texts: int
    lengths: int
    ids_equal: bool
    fp32_difference: float
    states_difference: float | None
    int8_worst: float | None
    int8_mean: float | None
    int8_difference: float | None
    same_bits: bool

    def worse(self, other: Row) -> Row:
        """Column by column the worse of two."""
        return Row(
            self.texts,
            self.lengths,
            self.ids_equal and other.ids_equal,
            max(self.fp32_difference, other.fp32_difference),
            _worse(max, self.states_difference, other.states_difference),
            _worse(min, self.int8_worst, other.int8_worst),
            _worse(min, self.int8_mean, other.int8_mean),
            _worse(max, self.int8_difference, other.int8_difference),
            self.same_bits and other.same_bits,
        )


def _worse(pick: Callable[[float, float], float], one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else pick(one, other)


def folders() -> list[str]:
    """Every golden folder."""
    return sorted(file.parent.name for kind in KINDS for file in HERE.glob(f"*/{kind}"))


def measure(name: str) -> Row:
    """One golden folder under the instruction set in use."""
    kind = next(kind for kind in KINDS if (HERE / name / kind).is_file())
    with np.load(HERE / name / kind) as file:
        return KINDS[kind](HERE / name, dict(file))


def _vectors(folder: Path, wanted: dict[str, Any]) -> Row:
    texts, names = [AWKWARD[name] for name in wanted["names"]], list(wanted["names"])
    with Encoder.load(folder, precision="fp32", workers=1) as encoder:
        vectors, tokens = encoder.encode_all(texts)
        pairs = [(vectors, wanted["vectors"])]
        roles = [role for role in ("query", "document") if role in wanted]
        some = [AWKWARD[name] for name in wanted["role_names"]]
        pairs += [(encoder.encode(some, role=role), wanted[role]) for role in roles]
    with Encoder.load(folder, precision="int8", workers=1) as encoder:
        close = cosines(encoder.encode(texts), wanted["vectors"])
    states = np.concatenate([tokens[names.index(name)].vectors for name in wanted["state_names"]])
    return Row(
        len(texts),
        len(set(np.diff(wanted["starts"]))),
        np.array_equal(np.concatenate([found.ids for found in tokens]), wanted["ids"]),
        max(float(np.abs(found - expected).max()) for found, expected in pairs),
        float(np.abs(states - wanted["states"]).max() / np.abs(wanted["states"]).max()),
        float(close.min()),
        float(close.mean()),
        None,
        _same_bits(folder, lambda encoder, some: encoder.encode(some), texts),
    )


def _token_vectors(folder: Path, wanted: dict[str, Any]) -> Row:
    equal, differences, close, texts, lengths, bits = True, [], [], 0, set[int](), True
    for role in ("query", "document"):
        own = [AWKWARD[name] for name in wanted[f"{role}_names"]]
        for precision in ("fp32", "int8"):
            with Encoder.load(folder, precision=precision, workers=1) as encoder:
                tokens = encoder.encode_tokens(own, role=role)
            vectors = np.concatenate([found.vectors for found in tokens])
            equal &= np.array_equal(np.concatenate([found.ids for found in tokens]), wanted[f"{role}_ids"])
            if precision == "fp32":
                differences.append(float(np.abs(vectors - wanted[f"{role}_vectors"]).max()))
            else:
                close.append(cosines(vectors, wanted[f"{role}_vectors"]))

        def run(encoder: Encoder, some: Sequence[str], role: Any = role) -> Rows:
            return np.concatenate([found.vectors for found in encoder.encode_tokens(some, role=role)])

        bits &= _same_bits(folder, run, own)
        texts, lengths = texts + len(own), lengths | set(np.diff(wanted[f"{role}_starts"]))
    cosine = np.concatenate(close)
    worst, mean = float(cosine.min()), float(cosine.mean())
    return Row(texts, len(lengths), equal, max(differences), None, worst, mean, None, bits)


def _scores(folder: Path, wanted: dict[str, Any]) -> Row:
    pairs = [(AWKWARD[q], AWKWARD[p]) for q, p in zip(wanted["queries"], wanted["passages"], strict=True)]
    differences, bits, equal = dict[str, float](), True, True
    for precision in ("fp32", "int8"):
        found = []
        for workers in WORKERS:
            with CrossEncoder.load(folder, precision=precision, workers=workers) as reranker:
                found.append(np.array([reranker.score(query, [passage])[0] for query, passage in pairs]))
                for query in dict.fromkeys(query for query, _ in pairs):
                    own = [i for i, pair in enumerate(pairs) if pair[0] == query]
                    together = reranker.score(query, [pairs[i][1] for i in own])
                    bits &= np.array_equal(together, found[-1][own])
                ids = [reranker._tokenizer.encode_pairs(query, [passage])[0] for query, passage in pairs]
        equal &= np.array_equal(np.concatenate([own for own, _ in ids]), wanted["ids"])
        equal &= np.array_equal(np.concatenate([types for _, types in ids]), wanted["types"])
        bits &= all(np.array_equal(found[0], other) for other in found[1:])
        differences[precision] = float(np.abs(found[0] - wanted["scores"]).max())
    lengths = len(set(np.diff(wanted["starts"])))
    return Row(len(pairs), lengths, equal, differences["fp32"], None, None, None, differences["int8"], bits)


def _same_bits(folder: Path, run: Callable[[Encoder, Sequence[str]], Rows], texts: Sequence[str]) -> bool:
    """Whether texts give the same alone and together, on any number of workers, in both precisions."""
    for precision in ("fp32", "int8"):
        with Encoder.load(folder, precision=precision, workers=1) as encoder:
            alone = np.concatenate([run(encoder, [text]) for text in texts])
        for workers in WORKERS:
            with Encoder.load(folder, precision=precision, workers=workers) as encoder:
                if not np.array_equal(run(encoder, texts), alone):
                    return False
    return True


# What a folder's reference is called, and how it is compared.
KINDS: dict[str, Callable[[Path, dict[str, Any]], Row]] = {
    "reference.npz": _vectors, "tokens.npz": _token_vectors, "pairs.npz": _scores,
}  # fmt: skip


@contextmanager
def _using(isa: str) -> Iterator[None]:
    os.environ["INKLING_ISA"] = isa
    loader.library.cache_clear()
    yield
    del os.environ["INKLING_ISA"]
    loader.library.cache_clear()


def line(name: str, row: Row) -> str:
    """A row in Markdown."""
    cells = [
        name,
        f"{row.texts} ({row.lengths})",
        "equal" if row.ids_equal else "DIFFERENT",
        f"{row.fp32_difference:.1e}",
        "" if row.states_difference is None else f"{row.states_difference:.1e}",
        f"difference {row.int8_difference:.4f}" if row.int8_worst is None else f"{row.int8_worst:.5f}",
        "" if row.int8_mean is None else f"{row.int8_mean:.5f}",
        "same" if row.same_bits else "DIFFERENT",
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    available = [isa for isa in loader.info()["available"] if isa != loader.REFERENCE]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="FOLDER", help="golden folders; all where none is named")
    parser.add_argument("--isa", nargs="+", choices=available, default=available, help="instruction sets")
    options = parser.parse_args()
    print(f"Instruction sets: {', '.join(options.isa)}\n")
    print("| golden | texts (lengths) | ids | fp32 | states | int8 worst | int8 mean | bits |")
    print("|---|---|---|---|---|---|---|---|")
    for name in options.names or folders():
        found: Row | None = None
        for isa in options.isa:
            with _using(isa):
                row = measure(name)
            found = row if found is None else found.worse(row)
        if found is not None:
            print(line(name, found), flush=True)


if __name__ == "__main__":
    main()
