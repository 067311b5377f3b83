"""Whether a model computes here what it should: against another program's ids and vectors, and against itself.

Without a reference the compiled kernels are compared with the NumPy ones, int8 with fp32, a text alone with the same
text in a batch, and one thread with several.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.reference_file import ReferenceRow
from engine import CrossEncoder, Encoder, EngineError, Role
from engine.fidelity import measure, probe_texts
from engine.kernels.loader import REFERENCE
from engine.layers.norm import of_unit_length
from engine.options import available_precisions
from engine.pace import Progress
from engine.record import LEAST_LIKENESS
from engine.reranker_folder import RerankerFolder, open_folder
from engine.tokenizer import is_read_composed

Rows = list[NDArray[np.float32]]  # of each text (rows, width): one row, or one a token
Model = Encoder | CrossEncoder

FP32_BOUND = 1e-5  # largest difference of unit vectors to another program that computes in fp32
KERNEL_BOUND = 1e-5  # the same between compiled and NumPy kernels
KERNEL_COSINE = 0.99999  # least between them where numbers are rounded, some of which then go to the other side
FULL_COSINE = 0.99  # where activations have 8 bits: one that goes to the other side changes those of every later layer
SCORE_BOUND = 1e-3  # of a reranker, between kernels, relative to its largest score
LEAST_TOP10 = 0.95  # share of the ten best that fp32 and int8 must have in common
EVERY = 4  # what takes long is done with every fourth text


@dataclass(frozen=True)
class Check:
    """One comparison. verdict: None where it cannot be made; found: in words; values: the numbers."""

    name: str
    verdict: bool | None
    found: str
    values: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Comparison:
    """The largest difference and where it is (text, row of the text, component); the worst cosine and its text."""

    largest: float
    text: int
    row: int
    component: int
    worst_cosine: float
    worst_text: int
    mean_cosine: float

    def described(self, texts: Sequence[str]) -> str:
        """The same in words."""
        token = f", token {self.row}" if self.row else ""
        return (
            f"largest difference {self.largest:.2g} (text {self.text + 1}, {_shortened(texts[self.text])}{token}, "
            f"component {self.component}); worst cosine {self.worst_cosine:.6f} (text {self.worst_text + 1}, "
            f"{_shortened(texts[self.worst_text])}), mean {self.mean_cosine:.6f}"
        )


def compare(found: Rows, wanted: Rows) -> Comparison:
    """Row by row; both as they are, so scale them to unit length first where that is meant."""
    lengths = [len(rows) for rows in found]
    text_of = np.repeat(np.arange(len(found)), lengths)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    one, other = (np.concatenate(rows).astype(np.float64) for rows in (found, wanted))
    differences = np.abs(one - other)
    row, component = np.unravel_index(int(differences.argmax()), differences.shape)
    products = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    both_zero = ~one.any(axis=1) & ~other.any(axis=1)
    cosines = np.where(both_zero, 1.0, (one * other).sum(axis=1) / np.where(products > 0, products, 1.0))
    text, worst = int(text_of[row]), int(cosines.argmin())
    return Comparison(
        float(differences.max()), text, int(row - starts[text]), int(component),
        float(cosines.min()), int(text_of[worst]), float(cosines.mean()),
    )  # fmt: skip


@dataclass(frozen=True)
class Validation:
    """What is validated. precision: "auto" for all that the folder allows. workers: threads to compare one with.

    progress: called with what is computed now, the texts done, and the texts in all.
    """

    path: Path
    precision: str = "auto"
    workers: int = 2
    dim: int | None = None
    bound: float = FP32_BOUND
    progress: Callable[[str, int, int], None] | None = None

    def against(self, reference: Sequence[ReferenceRow]) -> Iterator[Check]:
        """Ids, then vectors, with those of another program."""
        for number, precision in enumerate(self.precisions()):
            with self._load(precision) as model:
                if not isinstance(model, Encoder) or not model.has_vectors:
                    raise EngineError(f"{model.name} gives no vectors of whole texts, which a reference is made of.")
                if len(reference[0].vector) != model.dim:
                    raise EngineError(
                        f"The reference's vectors have {len(reference[0].vector)} numbers, those of {model.name} "
                        f"have {model.dim}."
                    )
                if number == 0:
                    yield _check_ids(model, reference)
                yield self._check_vectors(model, reference)

    def by_itself(self) -> Iterator[Check]:
        """Kernels, batches, workers, and int8 against fp32; one model is loaded at a time."""
        texts, rows = probe_texts(), dict[str, Rows]()
        for precision in self.precisions():
            with self._load(precision) as model:
                isa, found = model.isa, _rows(model, texts, progress=self._telling(precision))
                alone = [row for text in texts[::EVERY] for row in _rows(model, [text], query=texts[0])]
            rows[precision] = found
            # Only the compiled kernels promise every bit.
            bound = KERNEL_BOUND if isa == REFERENCE else 0.0
            yield _check_equal(f"alone and in a batch, {precision}", alone, found[::EVERY], bound)
            with self._load(precision, workers=1) as model:
                single = _rows(model, texts, progress=self._telling(f"{precision}, 1 worker"))
            yield _check_equal(f"1 and {self.workers} workers, {precision}", single, found, bound)
            yield self._check_kernels(precision, isa, texts, found[::EVERY])
        if {"int8", "fp32"} <= rows.keys():
            yield self._check_int8(texts, rows)
        if "int8-full" in rows and len(rows) > 1:
            yield _tell_int8_full(texts, rows)

    def precisions(self) -> tuple[str, ...]:
        """What is validated of what the folder allows."""
        available = available_precisions(open_folder(self.path))
        return available if self.precision == "auto" else (self.precision,)

    def _load(self, precision: str, *, workers: int | None = None, compiled: bool = True) -> Model:
        threads = workers or self.workers
        if isinstance(open_folder(self.path), RerankerFolder):
            return CrossEncoder.load(self.path, precision=precision, workers=threads, compiled=compiled)
        return Encoder.load(self.path, precision=precision, workers=threads, dim=self.dim, compiled=compiled)

    def _telling(self, what: str) -> Progress | None:
        """What tells how far a computation is, None where nobody asks."""
        told = self.progress
        return None if told is None else lambda done, total: told(what, done, total)

    def _check_vectors(self, model: Encoder, reference: Sequence[ReferenceRow]) -> Check:
        found: Rows = [np.zeros((0, 0), np.float32)] * len(reference)
        groups: dict[tuple[Role | None, str | None], list[int]] = {}
        for i, row in enumerate(reference):
            groups.setdefault((row.role, row.prompt), []).append(i)
        for (role, prompt), members in groups.items():
            texts, telling = [reference[i].text for i in members], self._telling(model.precision)
            vectors = model.encode(texts, role=role, prompt=prompt, progress=telling)
            for i, vector in zip(members, vectors, strict=True):
                found[i] = vector[None]
        result = compare(_unit(found), _unit([row.vector[None].astype(np.float32) for row in reference]))
        exact = model.precision == "fp32"
        good: bool | None = result.largest <= self.bound if exact else result.worst_cosine >= LEAST_LIKENESS
        bar = f"at most {self.bound:g}" if exact else f"worst cosine at least {LEAST_LIKENESS:g}"
        if model.precision == "int8-full":
            good, bar = None, "nothing, it is told only"
        described = result.described([row.text for row in reference])
        return Check(f"vectors, {model.precision}", good, f"{described}; wanted: {bar}", asdict(result))

    def _check_kernels(self, precision: str, isa: str, texts: Sequence[str], found: Rows) -> Check:
        """found: of every fourth text."""
        name = f"kernels, {precision}"
        if isa == REFERENCE:
            return Check(name, None, "there are no compiled kernels here; NumPy computes")
        with self._load(precision, compiled=False) as plain:
            wanted = _rows(plain, texts[::EVERY], progress=self._telling(f"{precision} in NumPy"))
        if isinstance(plain, CrossEncoder):
            result = compare(found, wanted)
            bound = SCORE_BOUND * max(1.0, float(np.abs(np.concatenate(wanted)).max()))
            good, bar = result.largest <= bound, f"at most {bound:g}"
        else:
            result = compare(_unit(found), _unit(wanted))
            exact = precision == "fp32"
            cosine = FULL_COSINE if precision == "int8-full" else KERNEL_COSINE
            good = result.largest <= KERNEL_BOUND if exact else result.worst_cosine >= cosine
            bar = f"at most {KERNEL_BOUND:g}" if exact else f"worst cosine at least {cosine:g}"
        result = replace(result, text=result.text * EVERY, worst_text=result.worst_text * EVERY)
        described = f"{isa} against NumPy: {result.described(texts)}; wanted: {bar}"
        return Check(name, good, described, asdict(result))

    def _check_int8(self, texts: Sequence[str], rows: dict[str, Rows]) -> Check:
        fidelity = measure(self.path, workers=self.workers, progress=self._telling("int8 against fp32"))
        if fidelity is None:
            raise EngineError(f"{self.path} holds packed weights only.")  # which has one precision, and no comparison
        result = compare(_unit(rows["int8"]), _unit(rows["fp32"]))
        kind = "rank correlation" if fidelity.kind == "scores" else "cosine"
        described = f"worst {kind} {fidelity.worst:.6f}, mean {fidelity.mean:.6f}, top 10 {fidelity.top10:.4f}"
        if fidelity.kind != "scores":
            described = f"{result.described(texts)}; top 10 shared {fidelity.top10:.4f}"
        good = fidelity.int8_suffices and fidelity.top10 >= LEAST_TOP10
        wanted = f"wanted: worst at least {LEAST_LIKENESS:g}, top 10 at least {LEAST_TOP10:g}"
        return Check("int8 against fp32", good, f"{described}; {wanted}", {**asdict(result), **asdict(fidelity)})


def _tell_int8_full(texts: Sequence[str], rows: dict[str, Rows]) -> Check:
    """How far int8-full is from the best there is: nobody gets it unasked, so it is told, not judged."""
    base = "fp32" if "fp32" in rows else "int8"
    result = compare(_unit(rows["int8-full"]), _unit(rows[base]))
    return Check(f"int8-full against {base}", None, result.described(texts), asdict(result))


def _check_ids(model: Encoder, reference: Sequence[ReferenceRow]) -> Check:
    wrong, compared, composed = [], 0, 0
    for i, row in enumerate(reference):
        if row.ids is None:
            continue
        if is_read_composed(row.text):
            composed += 1
            continue
        compared += 1
        (own,) = model.token_ids([row.text], role=row.role, prompt=row.prompt)
        if not np.array_equal(own, row.ids):
            wrong.append((i, own, row.ids))
    values = {"texts": len(reference), "compared": compared, "different": len(wrong)}
    if not compared:
        return Check("ids", None, "the reference has none to compare", values)
    note = f"; {composed} with decomposed Hangul or kana not compared" if composed else ""
    if not wrong:
        return Check("ids", True, f"{compared} texts have equal ones{note}", values)
    i, own, ids = wrong[0]
    shorter = min(len(own), len(ids))
    at = int(np.append(own[:shorter] != ids[:shorter], True).argmax())
    here, there = (str(each[at]) if at < len(each) else "the end" for each in (own, ids))
    described = (
        f"{len(wrong)} of {compared} texts have other ones; first text {i + 1}, {_shortened(reference[i].text)}, "
        f"token {at}: {here} here, {there} in the reference{note}"
    )
    return Check("ids", False, described, values)


def _check_equal(name: str, found: Rows, wanted: Rows, bound: float) -> Check:
    result = compare(found, wanted)
    described = "equal to the last bit" if result.largest == 0 else f"largest difference {result.largest:.2g}"
    return Check(name, result.largest <= bound, described, {"largest": result.largest})


def _rows(model: Model, texts: Sequence[str], query: str | None = None, progress: Progress | None = None) -> Rows:
    """What the model makes of texts: as documents, or as passages for `query` (the first text)."""
    if isinstance(model, CrossEncoder):
        return list(model.score(texts[0] if query is None else query, texts, progress=progress)[:, None, None])
    if model.has_vectors:
        return list(model.encode(texts, role="document", progress=progress)[:, None])
    return [tokens.vectors for tokens in model.encode_tokens(texts, role="document", progress=progress)]


def _unit(rows: Rows) -> Rows:
    return [of_unit_length(each) for each in rows]


def _shortened(text: str) -> str:
    return repr(text if len(text) <= 24 else text[:23] + "…")
