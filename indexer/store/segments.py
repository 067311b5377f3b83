"""The compact code that large scans read: int8 vectors in a few big blobs, kept in step with the vectors of record.

New vectors arrive as small segments. When FAN_OUT neighbours of one level are there, they are merged into one of the
next, so a store of n vectors has about FAN_OUT * log(n) segments, each vector is rewritten at most once a level, and a
reader that has cached the others reads only what is new. All of it happens in the transaction that adds the vectors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from indexer.store.transaction import Transactions

FAN_OUT = 8
LARGEST_ROWS = 65_536
DEAD_SHARE = 0.25


def quantise(vectors: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Symmetric int8 with one scale a row.

    vectors: (n, dim) float32.
    Returns codes (n, dim) int8 in -127..127 and scales (n,) float32: vectors are about codes * scales.
    """
    scales = (np.abs(vectors).max(axis=1) / 127.0).astype(np.float32)
    safe = np.where(scales > 0, scales, np.float32(1.0))
    return np.rint(vectors / safe[:, None]).astype(np.int8), scales


class SegmentTables(Transactions):
    """Part of the writer: `segments` and `segment_ids`."""

    def append_segment(self, generation: int, ids: Sequence[int], vectors: NDArray[np.float32]) -> None:
        """Add the compact codes of new vectors (ids ascending, above all earlier ones), merging where a level is full.

        vectors: (n, dim) float32.
        """
        with self.transaction():
            codes, scales = quantise(vectors)
            self._insert(generation, 0, np.array(ids, "<i8"), codes.tobytes(), scales.astype("<f4").tobytes())
            self._merge_levels(generation)

    def drop_from_segments(self, generation: int, ids: Sequence[int]) -> None:
        """Mark vectors as deleted. Only the rows of ids are rewritten, until a quarter of a segment is dead."""
        with self.transaction():
            wanted = np.unique(np.array(ids, np.int64))
            for segment_id, first_id, last_id in self._all(
                "SELECT segment_id, first_id, last_id FROM segments WHERE generation = ?", generation
            ):
                assert isinstance(segment_id, int) and isinstance(first_id, int) and isinstance(last_id, int)
                inside = wanted[(wanted >= first_id) & (wanted <= last_id)]
                if inside.size:
                    self._mark_dead(segment_id, inside)

    def _mark_dead(self, segment_id: int, gone: NDArray[np.int64]) -> None:
        rows = self._all("SELECT ids FROM segment_ids WHERE segment_id = ?", segment_id)
        assert isinstance(rows[0][0], bytes)
        ids = np.frombuffer(rows[0][0], "<i8").copy()
        ids[np.isin(ids, gone)] = -1
        dead = int((ids < 0).sum())
        if dead > DEAD_SHARE * ids.size:
            self._rewrite(segment_id, ids)
        else:
            self._run(
                "UPDATE segment_ids SET ids = ?, dead = ?, version = version + 1 WHERE segment_id = ?",
                ids.tobytes(),
                dead,
                segment_id,
            )

    def _rewrite(self, segment_id: int, ids: NDArray[np.int64]) -> None:
        """Replace a segment by one without its dead rows. It gets a new segment_id, so readers drop their copy."""
        rows = self._all("SELECT generation, level, codes, scales FROM segments WHERE segment_id = ?", segment_id)
        generation, level, codes, scales = rows[0]
        assert isinstance(generation, int) and isinstance(level, int)
        assert isinstance(codes, bytes) and isinstance(scales, bytes)
        alive = ids >= 0
        self._run("DELETE FROM segments WHERE segment_id = ?", segment_id)
        if alive.any():
            kept = np.frombuffer(codes, np.int8).reshape(ids.size, -1)[alive]
            self._insert(generation, level, ids[alive], kept.tobytes(), np.frombuffer(scales, "<f4")[alive].tobytes())

    def _merge_levels(self, generation: int) -> None:
        level = 0
        while True:
            found = self._all(
                "SELECT segment_id, rows FROM segments WHERE generation = ? AND level = ? ORDER BY first_id",
                generation,
                level,
            )
            if not found and level > 8:
                return
            if len(found) >= FAN_OUT and sum(rows for _, rows in found if isinstance(rows, int)) <= LARGEST_ROWS:
                self._merge(
                    generation, level + 1, [segment_id for segment_id, _ in found if isinstance(segment_id, int)]
                )
            level += 1

    def _merge(self, generation: int, level: int, segment_ids: Sequence[int]) -> None:
        ids: list[NDArray[np.int64]] = []
        codes: list[bytes] = []
        scales: list[bytes] = []
        for segment_id in segment_ids:
            rows = self._all(
                "SELECT ids, codes, scales FROM segments JOIN segment_ids USING (segment_id) WHERE segment_id = ?",
                segment_id,
            )
            raw_ids, raw_codes, raw_scales = rows[0]
            assert isinstance(raw_ids, bytes) and isinstance(raw_codes, bytes) and isinstance(raw_scales, bytes)
            part = np.frombuffer(raw_ids, "<i8")
            alive = part >= 0
            ids.append(part[alive])
            codes.append(np.frombuffer(raw_codes, np.int8).reshape(part.size, -1)[alive].tobytes())
            scales.append(np.frombuffer(raw_scales, "<f4")[alive].tobytes())
        self._many("DELETE FROM segments WHERE segment_id = ?", [(segment_id,) for segment_id in segment_ids])
        merged = np.concatenate(ids)
        if merged.size:
            self._insert(generation, level, merged, b"".join(codes), b"".join(scales))

    def _insert(self, generation: int, level: int, ids: NDArray[np.int64], codes: bytes, scales: bytes) -> None:
        self._run(
            "INSERT INTO segments (generation, level, first_id, last_id, rows, codes, scales) VALUES (?, ?, ?, ?, ?, "
            "?, ?)",
            generation,
            level,
            int(ids[0]),
            int(ids[-1]),
            int(ids.size),
            codes,
            scales,
        )
        self._run("INSERT INTO segment_ids (segment_id, ids) VALUES (?, ?)", self.db.last_insert_rowid(), ids.tobytes())
