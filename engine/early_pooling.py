"""Pooling before the last layer's row-wise steps, where it takes one row of a text.

A step that turns every row by itself gives the same row whether it runs over all tokens or only over those that are
pooled. So pooling moves up through such steps, and past attention: there every token is a key, and only the pooled one
a query. What is left of the last layer is its keys and values over all tokens, and the rest over one row a text.
The compiled kernels run these steps; NumPy, which defines what is right, runs the whole plan.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from engine.batch import Batch
from engine.layers.attention import Attention, QueryRow
from engine.layers.gate import Gate, Sum
from engine.layers.linear import Linear
from engine.layers.norm import LayerNorm, RmsNorm, UnitLength
from engine.layers.pooling import Pool
from engine.plan import Op, Plan, Value

# Steps that compute a row of what they make from the same row of what they read, and from nothing else.
ROW_WISE = (Linear, LayerNorm, RmsNorm, Gate, Sum, UnitLength)

# Ways of pooling that take one row of a text (mode, skip_prompt), and the query that is left of attention.
QUERY_ROWS: dict[tuple[str, bool], QueryRow] = {
    ("cls", False): "first",
    ("cls", True): "after prompt",
    ("lasttoken", False): "last",
    ("lasttoken", True): "last",
}


@dataclass(frozen=True)
class EarlyPooling:
    """ops: what makes a plan's pooled value and not its tokens; skip_prompt: that of the pooling."""

    ops: tuple[Op, ...]
    skip_prompt: bool

    def serves(self, batch: Batch) -> bool:
        """Whether every text has a row to pool: one without pools to zeros, which the steps behind would change."""
        skipped = batch.prompt if self.skip_prompt else 0
        return bool(np.diff(batch.starts).min(initial=skipped + 1) > skipped)


def pool_early(plan: Plan) -> EarlyPooling | None:
    """The steps for the pooled value alone; None where pooling reads more than a row, or can move past nothing.

    The pooled value keeps its number and, on the compiled kernels, every bit.
    """
    pools = [op for op in plan.ops if isinstance(op, Pool)]
    if len(pools) != 1 or (pools[0].mode, pools[0].skip_prompt) not in QUERY_ROWS:
        return None
    (pool,) = pools
    whole = _needed_whole(plan)
    if pool.x.index in whole:
        return None
    moved = _Moved(plan, pool, whole)
    moved.row(pool.x, pool.out)
    head = (op for op in plan.ops if op.out.rows == "texts" and op is not pool)
    return EarlyPooling((*moved.ops, *head), pool.skip_prompt)


def _needed_whole(plan: Plan) -> set[int]:
    """The values of which every token's row is read by something that pooling cannot move past."""
    whole: set[int] = set()
    for op in reversed(plan.ops):
        if op.out.rows == "texts":
            continue
        if not isinstance(op, (*ROW_WISE, Attention)):
            whole.add(op.out.index)
        if op.out.index in whole or not isinstance(op, ROW_WISE):
            whole.update(value.index for value in op.inputs)
    return whole


class _Moved:
    """Writes the steps: those of the whole values as they are, then each other one for one row a text."""

    def __init__(self, plan: Plan, pool: Pool, whole: set[int]):
        self._made_by = {op.out.index: op for op in plan.ops}
        self._pool, self._whole, self._count = pool, whole, plan.values
        self._rows: dict[int, Value] = {}  # value index -> its pooled row
        self.ops = [op for op in plan.ops if op.out.index in whole]

    def row(self, value: Value, out: Value | None = None) -> Value:
        """The pooled row of a value (texts, width), made where it is not yet; out: the value to make it in."""
        if value.index not in self._rows:
            if out is None:
                out = Value(self._count, value.width, "texts")
                self._count += 1
            op = self._step(value, out)
            self._rows[value.index] = out
            self.ops.append(op)
        return self._rows[value.index]

    def _step(self, value: Value, out: Value) -> Op:
        op = self._made_by[value.index]
        if value.index in self._whole:
            return replace(self._pool, x=value, out=out)
        if isinstance(op, Attention):
            return replace(op, out=out, query_row=QUERY_ROWS[self._pool.mode, self._pool.skip_prompt])
        read = {field.name: getattr(op, field.name) for field in fields(op) if field.name != "out"}
        rows = {name: self.row(found) for name, found in read.items() if isinstance(found, Value)}
        return replace(op, out=out, **rows)
