"""Made inputs and wanted outputs for every kernel: for each instruction set here, and through driver.c for others.

Shapes are odd on purpose (tails of every length), what pads a row is NaN where a kernel must not look, and values run
from denormals to the stated overflow bounds.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from engine.batch import Batch
from engine.early_pooling import pool_early
from engine.kernels import reference
from engine.kernels.native import ACTIVATION_MODES, Compiler, InkOp, _align
from engine.kernels.pairing import Laid, lay_rows
from engine.layers.activation import ACTIVATIONS
from engine.layers.attention import RelativeBias, attention
from engine.layers.embedding import embedding, lookup
from engine.layers.gate import add, gate
from engine.layers.heads import Heads
from engine.layers.linear import linear
from engine.layers.norm import layer_norm, rms_norm, unit_length
from engine.layers.pooling import Pool, pool
from engine.layers.rotary import rotary, rotation_table
from engine.models.bert import Bert
from engine.plan import Graph, Plan, run_reference
from engine.weights.int8 import ACTIVATION_LIMIT, fp32_panels, quantize_panels, quantize_table, widened
from engine.weights.loaded import Index, LinearF32, LinearI8, LinearU8, Loaded, TableF32, TableI8, Vector

KERNELS = ("gemm", "gemm_i8", "act", "scan_int8", "maxsim", "pack_bits", "plan", "gemm_u8")


@dataclass(frozen=True)
class Case:
    """One call: `ints` are its sizes, NaN in an output is not compared, `bound` is the largest absolute difference."""

    kernel: str
    name: str
    ints: tuple[int, ...]
    inputs: list[np.ndarray[Any, Any]]
    outputs: list[np.ndarray[Any, Any]]
    bound: float

    @property
    def needs_u8(self) -> bool:
        """Whether it takes products of four 8-bit numbers, which not every instruction set has."""
        return self.kernel == "gemm_u8" or "int8-full" in self.name


def every_case(seed: int = 3) -> Iterator[Case]:
    random = np.random.default_rng(seed)
    for m, k, n in ((1, 1, 1), (2, 5, 16), (3, 64, 17), (5, 31, 33), (6, 384, 48), (7, 385, 64), (12, 100, 47),
                    (13, 777, 32), (25, 400, 16), (100, 70, 80), (97, 1536, 32)):  # fmt: skip
        yield gemm(random, m, k, n)
        yield gemm_i8(random, m, k, n)
    for m, k, n in ((2, 128, 64), (7, 160, 80), (33, 896, 64), (40, 512, 144), (150, 384, 96)):
        yield gemm(random, m, k, n, paired=True)
        yield gemm(random, m, k, n, paired=True, unlike=True)
        yield gemm_i8(random, m, k, n, paired=True)
    for paired in (False, True):
        yield gemm_i8(random, 13, 1536, 64, extreme=True, paired=paired)
    for m, k, n in ((1, 65, 1), (6, 448, 33), (13, 777, 32)):
        yield gemm_i8(random, m, k, n, unlike=True)
    for m, k, n in ((1, 64, 1), (5, 64, 16), (7, 448, 33), (13, 384, 48), (30, 1536, 80)):
        yield gemm_u8(random, m, k, n)
    yield gemm_u8(random, 13, 1536, 48, extreme=True)
    for mode in ("gelu", "gelu_new", "relu", "silu", "tanh"):
        yield act(mode)
    for n, dim in ((1, 8), (3, 384), (10, 100), (17, 48), (5, 1)):
        yield scan(random, n, dim)
    for q, dim, lengths in ((1, 8, (1,)), (5, 384, (0, 1, 15, 16, 17, 40)), (13, 96, (33, 0, 2)), (3, 72, (5,))):
        yield maxsim(random, q, dim, lengths)
    for rows, dim in ((1, 8), (7, 384), (3, 96)):
        yield pack(random, rows, dim)
    for hidden, heads, inner in SIZES:
        for precision in ("fp32", "int8", "int8-full"):
            for pooling in ("mean", "cls"):
                model = small_model(random, hidden, heads, inner, precision, pooling)
                yield plan_case(model, f"{hidden}/{heads}/{inner} {precision} {pooling}", PLAN_BOUNDS[precision])
    for kind in ATTENTIONS:
        yield plan_case(modern_model(random, kind), kind, PLAN_BOUNDS["fp32"])
        yield plan_case(blinkered(modern_model(random, kind)), f"{kind}, some keys unseen", PLAN_BOUNDS["fp32"])
    for kind in ATTENTIONS:
        for pooling, skip in ONE_ROW:
            model = early(one_row(random, kind, pooling, skip_prompt=skip))
            name = f"{kind}, {pooling} early, {'without' if skip else 'with'} prompt"
            yield plan_case(model, name, PLAN_BOUNDS["fp32"])
            yield plan_case(blinkered(model), f"{name}, some keys unseen", PLAN_BOUNDS["fp32"])
    for scores in SCORES:
        for kind in ATTENTIONS:
            model = scored_model(random, kind, scores, "lasttoken")
            yield plan_case(model, f"{kind}, {scores}", SCORED_BOUND)
            yield plan_case(blinkered(model), f"{kind}, {scores}, some keys unseen", SCORED_BOUND)
    for precision in ("fp32", "int8"):
        yield plan_case(static_model(random, precision), f"static {precision}", PLAN_BOUNDS["fp32"])
        yield plan_case(static_model(random, precision, 405), f"wide static {precision}", PLAN_BOUNDS["fp32"])


def gemm(random: np.random.Generator, m: int, k: int, n: int, *, paired: bool = False, unlike: bool = False) -> Case:
    """paired: with rows multiplied in pairs, some numbers of which stand out. unlike: every third row is far larger."""
    a = random.standard_normal((m, k)).astype(np.float32)
    weight = random.standard_normal((n, k)).astype(np.float32)
    a.flat[:: max(1, a.size // 3)] *= 1e-39  # denormals
    if paired:
        a[::3, 5::90] = 40
    if paired and k >= 384:
        a[::3, 7] = -300
    if unlike:
        a[::3] *= 1000
    wanted = padded_columns(a.astype(np.float64) @ weight.T.astype(np.float64))
    inputs, name = [a, fp32_panels(weight)], f"{m}x{k}x{n}{' paired' * paired}{' unlike' * unlike}"
    bound = max(3e-6 * k**0.5 * 4, 1e-6 * float(np.nanmax(np.abs(wanted))))
    if unlike:  # the others are what shows
        bound, wanted[::3] = 3e-6 * k**0.5 * 4, np.nan
    return Case("gemm", name, (m, k, n, int(paired)), inputs, [wanted], bound)


def gemm_i8(
    random: np.random.Generator, m: int, k: int, n: int, *, extreme: bool = False, unlike: bool = False,
    paired: bool = False,
) -> Case:  # fmt: skip
    """extreme: the largest sum that the scales allow, in every block. unlike: scales of groups up to 1e6 apart."""
    depth = -(-k // 64) * 64
    a = np.zeros((m, depth), np.int16)
    a[:, :k] = ACTIVATION_LIMIT if extreme else random.integers(-ACTIVATION_LIMIT, ACTIVATION_LIMIT + 1, (m, k))
    panels, scales = quantize_panels(random.standard_normal((n, k)).astype(np.float32))
    if extreme:
        panels[:], scales[:] = -127, 1
    if unlike:
        scales = scales * np.float32(10) ** random.integers(-6, 1, scales.shape).astype(np.float32)
    weight = LinearI8.of_groups(panels, scales, n, k)
    rows = (random.random(m) / ACTIVATION_LIMIT).astype(np.float32)
    codes = widened(weight.panels, weight.multipliers).transpose(1, 3, 0, 2).reshape(depth, -1)[:, :n]
    by_block = np.repeat(weight.scales.transpose(1, 0, 2).reshape(-1, panels.shape[0] * 16)[:, :n], 384, axis=0)
    wanted = padded_columns((a.astype(np.float64) @ (codes * by_block[:depth].astype(np.float64))) * rows[:, None])
    inputs = [a, rows, weight.panels, weight.multipliers, weight.scales]
    bound = 1e-6 * float(np.nanmax(np.abs(wanted))) * 4
    name = f"{m}x{k}x{n}{' paired' * paired}"
    return Case("gemm_i8", name, (m, depth, n, int(paired)), inputs, [wanted], bound)


def gemm_u8(random: np.random.Generator, m: int, k: int, n: int, *, extreme: bool = False) -> Case:
    """Rows of whole groups: padding is the plan's business. Rows of one value and of one sign are among them."""
    a = random.standard_normal((m, k)).astype(np.float32)
    a[::3] = np.abs(a[::3]) + 5
    a[1::5] = a[1::5, :1]
    panels, scales = quantize_panels(random.standard_normal((n, k)).astype(np.float32))
    if extreme:
        a[:], panels[:] = np.where(np.arange(k) % 2, 1e30, -1e30), -127
    weight = LinearU8.of(LinearI8.of_groups(panels, scales, n, k))
    wanted = padded_columns(weight.product(a))
    inputs = [a, weight.panels, weight.group_scales(), weight.column_sums()]
    bound = 4e-6 * float(np.nanmax(np.abs(wanted)) + np.abs(a).max() * np.abs(weight.column_sums()).max())
    return Case("gemm_u8", f"{m}x{k}x{n}", (m, k, n), inputs, [wanted], bound)


def act(mode: str) -> Case:
    extreme = [80, -80, -88, 1e4, -1e4, -1e20, -1e36, 3.4e38, -3.4e38, -np.inf]
    x = np.concatenate([np.linspace(-12, 12, 4001), [0.0, -0.0, 1e-39, -1e-39], extreme, np.zeros(1)])
    x = x.astype(np.float32)[: x.size // 16 * 16]
    return Case("act", mode, (x.size, ACTIVATION_MODES[mode]), [x], [ACTIVATIONS[mode](x)], 1e-6)


def scan(random: np.random.Generator, n: int, dim: int) -> Case:
    codes = random.integers(-128, 128, (n, dim), np.int8)
    scales, query = random.random(n).astype(np.float32), random.standard_normal(dim).astype(np.float32)
    wanted = reference.scan_int8(codes, scales, query)
    return Case("scan_int8", f"{n}x{dim}", (n, dim), [codes, scales, query], [wanted], 1e-3)


def maxsim(random: np.random.Generator, q: int, dim: int, lengths: tuple[int, ...]) -> Case:
    query = random.standard_normal((q, dim)).astype(np.float32)
    query /= np.linalg.norm(query, axis=1, keepdims=True)
    bits = random.integers(0, 256, (sum(lengths), dim // 8), np.uint8)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    best, where = reference.maxsim_bits_argmax(query, bits, starts)
    return Case("maxsim", f"{q}x{dim}x{lengths}", (q, dim, len(lengths)), [query, bits, starts], [best, where], 1e-4)


def pack(random: np.random.Generator, rows: int, dim: int) -> Case:
    x = random.standard_normal((rows, dim)).astype(np.float32)
    x[0, :3] = 0.0, -0.0, -1e-39
    return Case("pack_bits", f"{rows}x{dim}", (rows, dim), [x], [reference.pack_sign_bits(x)], 0)


def padded_columns(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Columns padded to whole panels; what pads is NaN, not compared."""
    out = np.full((values.shape[0], _align(values.shape[1], 16)), np.nan, np.float32)
    out[:, : values.shape[1]] = values
    return out


@dataclass(frozen=True)
class SmallModel:
    """A random two-layer BERT in memory, and a ragged batch for it."""

    plan: Plan
    weights: dict[str, Loaded]
    batch: Batch


def small_model(
    random: np.random.Generator, hidden: int, heads: int, inner: int, precision: str, pooling: str,
    lengths: tuple[int, ...] = (1, 2, 37, 5, 16, 130),
) -> SmallModel:  # fmt: skip
    config = {
        "hidden_size": hidden, "intermediate_size": inner, "vocab_size": 50, "max_position_embeddings": 140,
        "type_vocab_size": 2, "num_hidden_layers": 2, "num_attention_heads": heads, "layer_norm_eps": 1e-12,
        "hidden_act": "gelu",
    }  # fmt: skip
    weights: dict[str, Loaded] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    for parameter in Bert.parameters(config):
        values = (random.standard_normal(parameter.shape) * (0.6 / hidden**0.5)).astype(np.float32)
        if parameter.name.endswith("norm.weight"):
            values += 1
        shapes[parameter.name] = parameter.shape
        weights[parameter.name] = load_one(parameter.kind, values, precision)
    graph = Graph(shapes)
    tokens = Bert.forward(graph, config)
    pooled = unit_length(graph, pool(graph, tokens, pooling))
    ids = [random.integers(0, 50, length).astype(np.int32) for length in lengths]
    return SmallModel(Plan(tuple(graph.ops), graph.count, tokens, pooled), weights, Batch.of(ids))


def load_one(kind: str, values: np.ndarray[Any, Any], precision: str) -> Loaded:
    if kind == "vector":
        return Vector(values)
    if kind == "table":
        return TableF32(values) if precision == "fp32" else TableI8(*quantize_table(values))
    if precision == "fp32":
        return LinearF32(fp32_panels(values), values.shape[0])
    weight = LinearI8.of_groups(*quantize_panels(values), *values.shape)
    return LinearU8.of(weight) if precision == "int8-full" else weight


# Kinds of attention: query heads, key heads, width, causal, window, relative bias; and a pooling for each.
ATTENTIONS: dict[str, tuple[Heads, bool, int | None, bool, str]] = {
    "causal grouped": (Heads(4, 2, 16), True, None, False, "lasttoken"),
    "window": (Heads(2, 2, 32), False, 7, False, "max"),
    "causal window odd": (Heads(6, 1, 10), True, 20, False, "weightedmean"),
    "bias": (Heads(4, 4, 12), False, None, True, "mean_sqrt_len_tokens"),
    "bias window": (Heads(3, 3, 20), False, 64, True, "mean"),
}
# Widths of a small BERT: hidden, heads, inner. Rows with and without a tail, shorter and longer than four vectors.
# The last one's rows of float32 are multiplied in pairs where a text is long enough.
SIZES = ((64, 4, 96), (24, 2, 40), (48, 1, 20), (201, 3, 150), (128, 4, 160))
PLAN_BOUNDS = {"fp32": 5e-6, "int8": 2e-3, "int8-full": 2e-2}


def modern_model(
    random: np.random.Generator, kind: str, lengths: tuple[int, ...] = (1, 2, 37, 5, 16, 130)
) -> SmallModel:
    """One layer of every step that BERT does not have: rotary with head norms, RMSNorms, gates, sums, odd attention."""
    heads, causal, window, biased, pooling = ATTENTIONS[kind]
    hidden, inner, longest = heads.query * heads.width, 40, max(lengths)
    shapes: dict[str, tuple[int, ...]] = {
        "word": (50, hidden), "qkv.weight": (heads.columns, hidden), "q.weight": (heads.width,),
        "k.weight": (heads.width,), "first.weight": (hidden,), "second.weight": (hidden,), "last.weight": (hidden,),
        "up.weight": (2 * inner, hidden), "down.weight": (hidden, inner), "head.weight": (24, hidden),
    }  # fmt: skip
    weights: dict[str, Loaded] = {}
    for name, shape in shapes.items():
        values = (random.standard_normal(shape) * (0.8 / hidden**0.5)).astype(np.float32)
        kind_of = "table" if name == "word" else "vector" if len(shape) == 1 else "linear"
        weights[name] = load_one(kind_of, values + (kind_of == "vector"), "fp32")
    weights["bias"] = TableF32(random.standard_normal((2 * longest - 1, heads.query)).astype(np.float32))
    bias = RelativeBias("bias", random.permutation(2 * longest - 1).astype(np.int32)) if biased else None
    g = Graph(shapes)
    x = embedding(g, word="word", factor=3.5)
    qkv = linear(g, rms_norm(g, x, "first", 1e-6), "qkv")
    table = rotation_table(longest, heads.width, 10000.0)
    qkv = rotary(g, qkv, heads, table, norms=("q.weight", "k.weight") if causal else None, eps=1e-6)
    mixed = attention(g, qkv, heads, causal=causal, window=window, bias=bias)
    x = rms_norm(g, mixed, "second", 1e-6, residual=x, offset=1.0, norm_first=True)
    x = add(g, x, linear(g, gate(g, linear(g, x, "up"), "silu"), "down"))
    tokens = layer_norm(g, x, "last", 1e-5)
    pooled = unit_length(g, linear(g, pool(g, tokens, pooling, skip_prompt=True), "head", activation="tanh"))
    ids = [random.integers(0, 50, length).astype(np.int32) for length in lengths]
    return SmallModel(Plan(tuple(g.ops), g.count, tokens, pooled), weights, Batch.of(ids, prompt=1))


def blinkered(model: SmallModel) -> SmallModel:
    """The same with texts that attend to their first tokens only, one of them to none."""
    seen = [1, 0, 3, 5, 10, 20]
    assert len(seen) == model.batch.texts
    return replace(model, batch=replace(model.batch, visible=np.array(seen, np.int32)))


# Scores of the keys 0 .. n of a text, each as far from the others as rounding needs in order not to matter.
SCORES: dict[str, Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]] = {
    "scores equal": lambda key: np.zeros(key.shape),
    "scores rising fast": lambda key: 9.0 * key,
    "scores rising slowly": lambda key: 0.08 * key,
    "scores falling": lambda key: -9.0 * key,
    "one score far above": lambda key: np.where(key % 29 == 20, 1e30 * (1 + key), 0),
    "scores far above zero": lambda key: 1e34 * (1 + key * 7 % 131),
    "scores far below zero": lambda key: -1e34 * (1 + key * 7 % 131),
    "scores next to nothing": lambda key: 1e-37 * key,
}


SCORED_BOUND = 2e-5  # what comes out is not of unit length


def scored_model(random: np.random.Generator, kind: str, scores: str, pooling: str) -> SmallModel:
    """Attention alone, whose keys score as they are told to with every query: a table gives it its rows."""
    heads, causal, window, biased, _ = ATTENTIONS[kind]
    lengths = (1, 2, 37, 5, 16, 130)
    table = random.standard_normal((sum(lengths), heads.columns)).astype(np.float32)
    keys = np.concatenate([SCORES[scores](np.arange(length)) for length in lengths])
    first, last = heads.query * heads.width, (heads.query + heads.key_value) * heads.width
    table[:, :first] = 1
    table[:, first:last] = keys[:, None] / heads.width
    bias_table = random.standard_normal((2 * max(lengths) - 1, heads.query)).astype(np.float32)
    weights: dict[str, Loaded] = {"rows": TableF32(table), "bias": TableF32(bias_table)}
    bias = RelativeBias("bias", np.arange(len(bias_table), dtype=np.int32)) if biased else None
    g = Graph({"rows": table.shape})
    tokens = attention(g, embedding(g, word="rows"), heads, scale=1.0, causal=causal, window=window, bias=bias)
    pooled = pool(g, tokens, pooling)
    ids = np.split(np.arange(len(table), dtype=np.int32), np.cumsum(lengths)[:-1])
    return SmallModel(Plan(tuple(g.ops), g.count, tokens, pooled), weights, Batch.of(ids))


ONE_ROW = (("cls", False), ("cls", True), ("lasttoken", False), ("lasttoken", True))


def one_row(random: np.random.Generator, kind: str, pooling: str, *, skip_prompt: bool) -> SmallModel:
    """A model with any kind of attention that pools one row, and texts that all have a row behind their prompt."""
    model = modern_model(random, kind, (2, 3, 37, 5, 16, 130))
    ops = tuple(
        replace(op, mode=pooling, skip_prompt=skip_prompt) if isinstance(op, Pool) else op for op in model.plan.ops
    )
    return replace(model, plan=replace(model.plan, ops=ops))


def early(model: SmallModel) -> SmallModel:
    """The same with the steps for the pooled rows alone, which are its tokens too."""
    found = pool_early(model.plan)
    assert found is not None and found.serves(model.batch)
    return replace(model, plan=Plan(found.ops, model.plan.values, model.plan.pooled, model.plan.pooled))


def static_model(random: np.random.Generator, precision: str, width: int = 21) -> SmallModel:
    """A table whose rows tokens share, and texts without a token among the others."""
    table = random.standard_normal((20, width)).astype(np.float32)
    weights: dict[str, Loaded] = {
        "table": load_one("table", table, precision),
        "mapping": Index(random.integers(0, 20, 50).astype(np.int32)),
        "weights": Vector(random.random(50).astype(np.float32)),
    }
    g = Graph({"table": table.shape})
    tokens = lookup(g, table="table", mapping="mapping", weights="weights")
    pooled = unit_length(g, pool(g, tokens, "mean"))
    ids = [random.integers(0, 50, length).astype(np.int32) for length in (0, 1, 40, 0, 3, 0)]
    return SmallModel(Plan(tuple(g.ops), g.count, tokens, pooled), weights, Batch.of(ids))


def plan_case(model: SmallModel, name: str, bound: float) -> Case:
    """A whole plan; every weight is an input, and the operations name their weights by input number + 1."""
    compiler = Compiler(model.weights)
    for step in model.plan.ops:
        step.compile(compiler)
    laid, first_weight = lay_rows(model.batch), 8
    if not any(op.pairs for op in compiler.ops):
        laid = Laid(model.batch)
    batch = laid.batch
    number = {array.ctypes.data: i + first_weight + 1 for i, array in enumerate(compiler.kept)}
    ops = (InkOp * len(compiler.ops))(*compiler.ops)
    for op in ops:
        for field in ("w0", "w1", "w2", "w3", "w4", "w5"):
            address = getattr(op, field)
            setattr(op, field, number[address] if address else None)
    rows = {"tokens": batch.tokens, "texts": batch.texts}
    sizes = np.array([buffer.row_bytes * rows[buffer.rows] for buffer in compiler.buffers], np.int64)
    pooled, tokens = run_reference(model.plan, model.weights, model.batch)
    if laid.of_tokens is not None and model.plan.tokens.rows == "tokens":
        rows = np.full((batch.tokens, tokens.shape[1]), np.nan, np.float32)
        rows[laid.of_tokens] = tokens
        tokens = rows
    places = tuple(compiler.places[value.index] for value in (model.plan.pooled, model.plan.tokens))
    raw = np.frombuffer(ctypes.string_at(ops, ctypes.sizeof(ops)), np.uint8)
    visible = np.zeros(0, np.int32) if batch.visible is None else batch.visible
    starts, ends = batch.starts[:-1], batch.starts[1:] if laid.ends is None else laid.ends
    inputs = [raw, batch.ids, batch.positions, batch.types, starts, sizes, visible, ends, *compiler.kept]
    ints = (*places, batch.prompt, 1 << 20, laid.paired)
    return Case("plan", name, ints, inputs, [padded_columns(pooled), padded_columns(tokens)], bound)


def write_cases(cases: list[Case]) -> bytes:
    """The file that driver.c reads: little-endian, every array with its length in bytes before it."""
    out = [struct.pack("<i", len(cases))]
    for case in cases:
        ints = (*case.ints, *[0] * (5 - len(case.ints)))
        head = (KERNELS.index(case.kernel), *ints, len(case.inputs), len(case.outputs))
        out.append(struct.pack("<8if", *head, case.bound))
        for array in (*case.inputs, *case.outputs):
            kind = {"f": 0, "i": 1, "u": 2}[array.dtype.kind]
            raw = np.ascontiguousarray(array).tobytes()
            out += [struct.pack("<iq", kind, len(raw)), raw]
    return b"".join(out)
