"""A plan in the compiled kernels' form: one call a batch, buffers shared by values that never meet."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from copy import copy
from ctypes import POINTER, Structure, c_float, c_int32, c_int64, c_void_p
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.batch import Batch
from engine.early_pooling import EarlyPooling, pool_early
from engine.kernels.loader import PAIR_BYTES, Library
from engine.kernels.pairing import PAIRED_TOKENS, Laid, lay_rows
from engine.kernels.threads import pool
from engine.layers.attention import QueryRow
from engine.layers.heads import Heads
from engine.plan import Op, Plan, Rows, Value
from engine.weights.int8 import DEPTH, GROUP, PANEL
from engine.weights.loaded import LinearF32, LinearI8, LinearU8, Loaded, TableF32, TableI8

F32 = NDArray[np.float32]

# The enumerations of ink.h.
(EMBED, LAYERNORM, QUANTIZE, LINEAR, LINEAR_I8, ATTENTION, POOL, UNIT, RMSNORM, ROTARY, GATE, ADD, LOOKUP,
 LINEAR_U8) = range(14)  # fmt: skip
ACTIVATION_MODES = {None: 0, "gelu": 1, "gelu_new": 2, "gelu_pytorch_tanh": 2, "relu": 3, "silu": 4, "tanh": 5}
POOLING_MODES = {"mean": 0, "cls": 1, "lasttoken": 2, "max": 3, "mean_sqrt_len_tokens": 4, "weightedmean": 5}
QUERY_ROWS: dict[QueryRow, int] = {"every": 0, "first": 1, "after prompt": 2, "last": 3}
ROUNDING = (LAYERNORM, RMSNORM, GATE, UNIT, ADD)  # operations that round a finished row while it is at hand
LANES = 16  # of attention.h: queries at once
BIAS_MORE = LANES  # entries behind each row of an attention bias
ALIGNMENT_BYTES = 64
PAIR_INPUTS = 32  # of ink.h
PAIRED_OUTPUTS = 64  # what a product of pairs takes at once at most
LEAST_BLOCK = 128  # in shorter blocks of inputs no number could stand out, see pairs.h


class InkOp(Structure):
    _fields_ = [
        *((name, c_int32) for name in ("kind", "a", "b", "out", "codes", "scales", "code_bits", "k", "n", "mode")),
        *((name, c_int32) for name in ("heads", "kv_heads", "head_dim", "window", "texts", "limit", "query_row")),
        ("pairs", c_int32),
        ("f0", c_float),
        *((name, c_void_p) for name in ("w0", "w1", "w2", "w3", "w4", "w5")),
    ]


class InkRun(Structure):
    _fields_ = [
        ("ops", POINTER(InkOp)),
        *((name, c_int32) for name in ("op_count", "tokens", "texts", "longest", "prompt", "workers", "paired")),
        *((name, c_void_p) for name in ("ids", "positions", "types", "starts", "ends", "visible", "buffers")),
        *((name, c_void_p) for name in ("next", "done", "scratch")),
        ("scratch_bytes", c_int64),
    ]


@dataclass
class Buffer:
    """Room for one intermediate matrix: bytes a row, what its rows are, and the steps that first and last touch it."""

    row_bytes: int
    rows: Rows
    first: int
    last: int


def _align(size: int, to: int) -> int:
    return -(-size // to) * to


class Compiler:
    """Collects the kernels' operations while the plan's steps describe themselves."""

    def __init__(self, weights: dict[str, Loaded]):
        self.weights = weights
        self.ops: list[InkOp] = []
        self.buffers: list[Buffer] = []
        self.kept: list[NDArray[Any]] = []  # arrays whose addresses the operations hold
        self.places: dict[int, int] = {}  # value index -> buffer
        self.rounded: dict[int, tuple[int, int]] = {}  # value index -> buffers of its codes and row scales
        self.made_by: dict[int, int] = {}  # value index -> the operation that makes it
        self.pairs = True  # whether float32 rows may be

    def branch(self) -> Compiler:
        """One that goes on from here by itself. The two share the arrays that they hold."""
        other = copy(self)
        other.ops = [InkOp.from_buffer_copy(op) for op in self.ops]
        other.buffers = [replace(buffer) for buffer in self.buffers]
        other.places, other.rounded, other.made_by = dict(self.places), dict(self.rounded), dict(self.made_by)
        return other

    def embedding(self, out: Value, word: str, position: str | None, token_type: str | None, factor: float) -> None:
        op = InkOp(kind=EMBED, out=self._new(out), n=out.width, f0=factor)
        for slot, name in enumerate((word, position, token_type)):
            if name is None:
                continue
            table = self.weights[name]
            if isinstance(table, TableI8):
                setattr(op, f"w{slot}", self._keep(table.codes))
                setattr(op, f"w{slot + 3}", self._keep(table.scales))
                op.k = table.scales.shape[1]  # the same for all tables, which are equally wide
            elif isinstance(table, TableF32):
                setattr(op, f"w{slot}", self._keep(table.values))
        self._add(op, out)

    def lookup(self, out: Value, table: str, mapping: str | None, weights: str | None) -> None:
        op, rows = InkOp(kind=LOOKUP, out=self._new(out), n=out.width), self.weights[table]
        if isinstance(rows, TableI8):
            op.w0, op.w3, op.k = self._keep(rows.codes), self._keep(rows.scales), rows.scales.shape[1]
        elif isinstance(rows, TableF32):
            op.w0 = self._keep(rows.values)
        if mapping is not None:
            op.w1 = self._keep(self.weights[mapping].index())
        if weights is not None:
            op.w2 = self._keep(self.weights[weights].dense())
        self._add(op, out)

    def layer_norm(self, x: Value, residual: Value | None, out: Value, name: str, eps: float) -> None:
        op = InkOp(kind=LAYERNORM, a=self._use(x), b=self._maybe(residual), out=self._new(out), k=x.width, f0=eps)
        op.w0 = self._keep(self.weights[f"{name}.weight"].dense())
        if f"{name}.bias" in self.weights:
            op.w1 = self._keep(self.weights[f"{name}.bias"].dense())
        self._add(op, out)

    def rms_norm(self, x: Value, residual: Value | None, out: Value, weight: F32, eps: float, before: bool) -> None:
        op = InkOp(kind=RMSNORM, a=self._use(x), b=self._maybe(residual), out=self._new(out), k=x.width, f0=eps)
        op.mode, op.w0 = int(before), self._keep(weight)
        self._add(op, out)

    def add(self, a: Value, b: Value, out: Value) -> None:
        self._add(InkOp(kind=ADD, a=self._use(a), b=self._use(b), out=self._new(out), k=a.width), out)

    def gate(self, x: Value, out: Value, activation: str) -> None:
        op = InkOp(kind=GATE, a=self._use(x), b=-1, out=self._new(out), k=x.width, n=out.width)
        op.mode = ACTIVATION_MODES[activation]
        self._add(op, out)

    def rotary(
        self, x: Value, out: Value, heads: Heads, cosine: F32, sine: F32, norms: tuple[F32, F32] | None, eps: float
    ) -> None:
        op = InkOp(kind=ROTARY, a=self._use(x), b=-1, out=self._new(out), k=x.width, f0=eps)
        op.heads, op.kv_heads, op.head_dim = heads.query, heads.key_value, heads.width
        op.w0, op.w1 = self._keep(cosine), self._keep(sine)
        if norms is not None:
            op.w2, op.w3 = self._keep(norms[0]), self._keep(norms[1])
        self._add(op, out)

    def linear(self, x: Value, out: Value, name: str, bias: bool, activation: str | None) -> None:
        weight = self.weights[f"{name}.weight"]
        op = InkOp(kind=LINEAR, k=x.width, n=out.width, b=-1, mode=ACTIVATION_MODES[activation])
        if bias:
            values = self.weights[f"{name}.bias"].dense()
            padded = np.zeros(_align(out.width, PANEL), np.float32)
            padded[: out.width] = values
            op.w1 = self._keep(padded)
        if isinstance(weight, LinearI8):
            op.kind, op.w0 = LINEAR_I8, self._keep(weight.panels)
            if isinstance(weight, LinearU8):
                op.kind, op.w2, op.w3 = LINEAR_U8, self._keep(weight.group_scales()), self._keep(weight.column_sums())
            else:
                op.w2, op.w4 = self._keep(weight.scales), self._keep(weight.multipliers)
            op.a, op.b = self._round(x, 8 if isinstance(weight, LinearU8) else 16)
        elif isinstance(weight, LinearF32):
            op.pairs = int(self.pairs and x.rows == "tokens" and _pairable(x.width, out.width))
            op.a, op.w0 = self._use(x), self._keep(weight.panels)
        op.out = self._new(out)
        self._add(op, out)

    def attention(
        self,
        qkv: Value,
        out: Value,
        heads: Heads,
        scale: float,
        causal: bool,
        window: int | None,
        bias: F32 | None,
        query_row: QueryRow,
    ) -> None:
        op = InkOp(kind=ATTENTION, a=self._use(qkv), out=self._new(out), k=qkv.width, n=out.width, f0=scale)
        op.heads, op.kv_heads, op.head_dim = heads.query, heads.key_value, heads.width
        op.mode, op.window = int(causal), -1 if window is None else window
        op.query_row = QUERY_ROWS[query_row]
        if bias is not None:
            # By query - key instead of key - query, in units of log2.
            turned = np.pad(bias[:, ::-1] * np.float32(math.log2(math.e)), ((0, 0), (0, BIAS_MORE)))
            op.w0, op.limit = self._keep(turned), (bias.shape[1] + 1) // 2
        self._add(op, out)

    def pool(self, x: Value, out: Value, mode: str, skip_prompt: bool) -> None:
        op = InkOp(kind=POOL, a=self._use(x), out=self._new(out), k=x.width, mode=POOLING_MODES[mode])
        op.limit = int(skip_prompt)
        self._add(op, out)

    def unit_length(self, x: Value, out: Value) -> None:
        self._add(InkOp(kind=UNIT, a=self._use(x), b=-1, out=self._new(out), k=x.width), out)

    def _maybe(self, value: Value | None) -> int:
        return -1 if value is None else self._use(value)

    def _round(self, x: Value, bits: int) -> tuple[int, int]:
        """Codes of a value and a scale a row (of 8 bits: and a shift), made once however many layers read them."""
        if x.index not in self.rounded:
            maker = self.made_by[x.index]
            if self.ops[maker].kind not in ROUNDING:
                maker = len(self.ops)
                self._add(InkOp(kind=QUANTIZE, a=self._use(x), b=-1, k=x.width), x)
            codes = self._room(_align(x.width, GROUP) * bits // 8, x.rows, maker)
            scales = self._room(4 if bits == 16 else 8, x.rows, maker)
            made = self.ops[maker]
            made.codes, made.scales, made.code_bits = codes, scales, bits
            self.rounded[x.index] = codes, scales
        codes, scales = self.rounded[x.index]
        self.buffers[codes].last = self.buffers[scales].last = len(self.ops)
        return codes, scales

    def _room(self, row_bytes: int, rows: Rows, first: int | None = None) -> int:
        first = len(self.ops) if first is None else first
        self.buffers.append(Buffer(row_bytes, rows, first, len(self.ops)))
        return len(self.buffers) - 1

    def _new(self, value: Value) -> int:
        self.places[value.index] = self._room(_align(value.width, PANEL) * 4, value.rows)
        return self.places[value.index]

    def _use(self, value: Value) -> int:
        place = self.places[value.index]
        self.buffers[place].last = len(self.ops)
        return place

    def _keep(self, array: NDArray[Any]) -> int:
        held = np.ascontiguousarray(array)
        self.kept.append(held)
        return held.ctypes.data

    def _add(self, op: InkOp, out: Value) -> None:
        # A pool reads token rows, whatever its result's rows are.
        op.texts = int(out.rows == "texts" and op.kind != POOL)
        op.codes = op.scales = -1
        self.made_by.setdefault(out.index, len(self.ops))
        self.ops.append(op)


class Steps:
    """Compiled operations, and how their buffers share room; the values that are wanted keep theirs to the end."""

    def __init__(self, compiler: Compiler, ops: Sequence[Op], wanted: Sequence[Value]):
        for op in ops:
            op.compile(compiler)
        for value in wanted:
            compiler.buffers[compiler.places[value.index]].last = len(compiler.ops)
        self.ops = (InkOp * len(compiler.ops))(*compiler.ops)
        self.places = compiler.places
        self.slots, self.slot_of = _share(compiler.buffers)


class NativePlan:
    """A plan ready to run on the compiled kernels; thread-safe, one run at a time.

    Where one row of a text is pooled, there are two lists of steps: all of the plan's, and those that make the pooled
    rows alone, which begin alike. They share weights and room.
    """

    def __init__(self, plan: Plan, weights: dict[str, Loaded], found: Library, workers: int):
        self._library = found
        self._pool = pool(found, workers)
        self._tokens, self._pooled = plan.tokens, plan.pooled
        self._early: tuple[EarlyPooling, Steps] | None = None
        early = pool_early(plan)
        compiler, alike = Compiler(weights), 0
        if early is not None:
            alike = _alike(plan.ops, early.ops)
            for op in plan.ops[:alike]:
                op.compile(compiler)
            compiler.pairs = False  # the rows of pooled texts have no partners, and both lists give the same bits
            self._early = early, Steps(compiler.branch(), early.ops[alike:], [plan.pooled])
        self._whole = Steps(compiler, plan.ops[alike:], [plan.tokens, plan.pooled])
        self._kept = compiler.kept
        self._pairs = any(op.pairs for op in self._whole.ops)
        self._head_dim = max((op.head_dim for op in self._whole.ops if op.kind == ATTENTION), default=0)
        self._arena = np.empty(0, np.uint8)

    def run(self, batch: Batch, *, want_tokens: bool) -> tuple[F32, F32 | None]:
        """One batch, at least one text, none of them empty.

        Returns pooled (texts, dim) float32 and, when wanted, tokens (tokens, hidden) float32; both are copies.
        """
        with self._pool.lock:
            longest = int(np.diff(batch.starts).max())
            steps = self._steps(batch, want_tokens)
            rows = lay_rows(batch) if self._pairs and longest >= PAIRED_TOKENS else Laid(batch)
            laid = rows.batch
            addresses, count = self._lay_out(steps, laid, longest), len(steps.ops)
            counters = np.zeros(2 * count, np.int32)
            starts, next_tiles = laid.starts.ctypes.data, counters.ctypes.data
            run = InkRun(
                ops=steps.ops, op_count=count, tokens=laid.tokens, texts=laid.texts, longest=longest,
                prompt=laid.prompt, workers=self._pool.workers, paired=rows.paired,
                ids=laid.ids.ctypes.data, positions=laid.positions.ctypes.data, types=laid.types.ctypes.data,
                starts=starts, ends=starts + 8 if rows.ends is None else rows.ends.ctypes.data,
                visible=None if laid.visible is None else laid.visible.ctypes.data,
                buffers=addresses.ctypes.data, next=next_tiles, done=next_tiles + 4 * count,
                scratch=int(addresses[-1]), scratch_bytes=self._scratch_bytes(longest),
            )  # fmt: skip
            self._library.call("run_plan", self._pool.handle, ctypes.addressof(run))
            pooled = self._read(self._pooled, steps, addresses, laid.texts)
            if not want_tokens:
                return pooled, None
            tokens = self._read(self._tokens, steps, addresses, laid.tokens)
            return pooled, tokens if rows.of_tokens is None else tokens[rows.of_tokens]

    def _steps(self, batch: Batch, want_tokens: bool) -> Steps:
        if want_tokens or self._early is None:
            return self._whole
        early, steps = self._early
        return steps if early.serves(batch) else self._whole

    def _lay_out(self, steps: Steps, batch: Batch, longest: int) -> NDArray[np.int64]:
        """Addresses of every buffer in the arena, and of the scratch behind them as the last entry."""
        count = {"tokens": batch.tokens, "texts": batch.texts}
        offsets, position = [], 0
        for row_bytes, rows in steps.slots:
            offsets.append(position)
            position += _align(row_bytes * count[rows], ALIGNMENT_BYTES)
        size = position + self._scratch_bytes(longest) * self._pool.workers + ALIGNMENT_BYTES
        if self._arena.nbytes < size:
            self._arena = np.empty(size, np.uint8)
        base = _align(self._arena.ctypes.data, ALIGNMENT_BYTES)
        return np.array([*(base + offsets[slot] for slot in steps.slot_of), base + position], np.int64)

    def _scratch_bytes(self, longest: int) -> int:
        """What one worker needs: for attention keys, values, a block of queries and its sums of the longest text; for
        products of pairs of rows, those rows."""
        floats = 2 * (longest + LANES) * self._head_dim
        return _align(max(floats * 4, PAIR_BYTES), ALIGNMENT_BYTES)

    def _read(self, value: Value, steps: Steps, addresses: NDArray[np.int64], rows: int) -> F32:
        width = _align(value.width, PANEL)
        offset = int(addresses[steps.places[value.index]]) - self._arena.ctypes.data
        matrix = self._arena[offset : offset + rows * width * 4].view(np.float32).reshape(rows, width)
        return matrix[:, : value.width].copy()


def _pairable(inputs: int, outputs: int) -> bool:
    """Whether float32 rows so wide may be multiplied in pairs."""
    last = (inputs - 1) % DEPTH + 1
    return inputs % PAIR_INPUTS == 0 and last >= LEAST_BLOCK and outputs >= PAIRED_OUTPUTS


def _alike(ops: Sequence[Op], others: Sequence[Op]) -> int:
    """How many steps the two begin with alike."""
    return next(
        (i for i, (a, b) in enumerate(zip(ops, others, strict=False)) if a is not b), min(len(ops), len(others))
    )


def _share(buffers: list[Buffer]) -> tuple[list[tuple[int, Rows]], list[int]]:
    """Give buffers whose lives never overlap the same slot: slots as (bytes a row, rows), and each buffer's slot.

    The widest come first, so a slot never grows: each buffer goes where none of its time lives yet.
    """
    slots: list[tuple[int, Rows]] = []
    tenants: list[list[Buffer]] = []
    slot_of = [0] * len(buffers)
    for number in sorted(range(len(buffers)), key=lambda i: -buffers[i].row_bytes):
        buffer = buffers[number]
        for slot, others in enumerate(tenants):
            if slots[slot][1] == buffer.rows and all(x.last < buffer.first or buffer.last < x.first for x in others):
                break
        else:
            slot = len(slots)
            slots.append((buffer.row_bytes, buffer.rows))
            tenants.append([])
        tenants[slot].append(buffer)
        slot_of[number] = slot
    return slots, slot_of
