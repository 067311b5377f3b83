"""Vectors of record, token bits and generations: the meaning stage."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from indexer.errors import StoreError
from indexer.store.contents import CHUNKS_A_TURN
from indexer.store.records import Generation, ModelStamp, NewVector, PendingChunk
from indexer.store.segments import SegmentTables

GENERATION_COLUMNS = "generation, fingerprint, model, precision, dim, token_dim, state"
# What no document uses waits only to be purged. Those chunks are few, and counted by their own index: joining all that
# wait would take a second where there are a million.
PENDING_COUNT = (
    "SELECT (SELECT count(*) FROM pending) - (SELECT count(*) FROM contents CROSS JOIN chunks USING (content_id) "
    "CROSS JOIN pending USING (chunk_id) WHERE uses = 0)"
)


class VectorTables(SegmentTables):
    """Part of the writer: `generations`, `vectors`, `token_bits` and `pending`."""

    def use_model(self, stamp: ModelStamp) -> Generation:
        """The generation to fill for this model. Call it at each start, before asking for pending chunks.

        A fingerprint that is new queues every chunk once; until the last has its vector, searches go on in the active
        generation. Going back to the active model drops the one that was building. The very first is active at once.
        """
        with self.transaction():
            active, building = self.active_generation(), self._generation("building")
            if building and building.stamp.fingerprint == stamp.fingerprint:
                self._update_model(building, stamp)
            elif active and active.stamp.fingerprint == stamp.fingerprint:
                self._update_model(active, stamp)
                if building:
                    self._retire(building.generation)
                    self._fill_pending(active.generation)
            else:
                if building:
                    self._retire(building.generation)
                self._run(
                    "INSERT INTO generations (fingerprint, model, precision, dim, token_dim, state) VALUES (?, ?, ?, "
                    "?, ?, ?)",
                    stamp.fingerprint,
                    stamp.model,
                    stamp.precision,
                    stamp.dim,
                    stamp.token_dim,
                    "building" if active else "active",
                )
                self._fill_pending(self.db.last_insert_rowid())
            self._finish_generation()
            return self.target_generation()

    def target_generation(self) -> Generation:
        """The generation that new vectors go to. Raises StoreError before the first `use_model`."""
        found = self._generation("building") or self.active_generation()
        if found is None:
            raise StoreError(f"The index {self.path} has no model yet: call use_model first.")
        return found

    def active_generation(self) -> Generation | None:
        """The generation that answers searches; None in a new store."""
        return self._generation("active")

    def pending_chunks(self, limit: int) -> list[PendingChunk]:
        """Up to `limit` texts that wait for a vector in the target generation, each text once.

        Files take turns of 64 chunks, so that a small file does not wait for a huge one. What no document uses is left
        out: it would be embedded only to be purged.
        """
        rows = self._all(
            "SELECT chunk_id, text_hash, text FROM (SELECT pending.chunk_id FROM pending CROSS JOIN chunks "
            "USING (chunk_id) CROSS JOIN contents USING (content_id) WHERE uses > 0 ORDER BY turn, chunk_id LIMIT ?) "
            "JOIN chunks USING (chunk_id) ORDER BY chunk_id",
            limit,
        )
        unique: dict[object, PendingChunk] = {}
        for chunk_id, key, text in rows:
            assert isinstance(chunk_id, int) and isinstance(key, bytes) and isinstance(text, str)
            unique.setdefault(key, PendingChunk(chunk_id, key, text))
        return list(unique.values())

    def pending_count(self) -> int:
        """How many chunks of documents wait for a vector."""
        return self._int(PENDING_COUNT)

    def add_vectors(self, generation: int, vectors: Sequence[NewVector]) -> None:
        """Store vectors, token bits and compact codes in one transaction, and take their chunks out of the wait.

        Vectors of a generation that was dropped meanwhile, or of texts that no chunk has any more, are passed over.
        When the last pending chunk of a building generation is done, it becomes the active one.
        Raises StoreError for a vector of the wrong dimension, or that is not finite.
        """
        with self.transaction():
            row = self._row("SELECT dim, token_dim, state FROM generations WHERE generation = ?", generation)
            if row is None or row[2] == "retired":
                return
            added: list[tuple[int, NewVector]] = []
            for new in vectors:
                self._check(new, row[0], row[1])
                vector_id = self._add_vector(generation, new)
                if vector_id is not None:
                    added.append((vector_id, new))
                self._run(
                    "DELETE FROM pending WHERE chunk_id IN (SELECT chunk_id FROM chunks WHERE text_hash = ?)",
                    new.text_hash,
                )
            if added:
                self.append_segment(
                    generation, [vector_id for vector_id, _ in added], np.stack([new.vector for _, new in added])
                )
            self._finish_generation()

    def forgo_vectors(self, chunk_ids: Sequence[int]) -> None:
        """Texts that the model cannot embed: they stay found by words and are not asked for again in this "
        "generation."""
        with self.transaction():
            self._many(
                "DELETE FROM pending WHERE chunk_id IN (SELECT b.chunk_id FROM chunks a JOIN chunks b USING "
                "(text_hash) "
                "WHERE a.chunk_id = ?)",
                [(chunk_id,) for chunk_id in chunk_ids],
            )
            self._finish_generation()

    def drop_unused_vectors(self, keys: Sequence[bytes]) -> int:
        """Remove the vectors, in all generations, of those texts that no chunk has; returns how many went."""
        with self.transaction():
            gone: list[tuple[int, int]] = []
            for key in keys:
                for generation, vector_id in self._all(
                    "SELECT generation, vector_id FROM vectors WHERE text_hash = ?1 "
                    "AND NOT EXISTS (SELECT 1 FROM chunks WHERE text_hash = ?1 AND embed = 1)",
                    key,
                ):
                    assert isinstance(generation, int) and isinstance(vector_id, int)
                    gone.append((generation, vector_id))
            self._many("DELETE FROM token_bits WHERE vector_id = ?", [(vector_id,) for _, vector_id in gone])
            self._many("DELETE FROM vectors WHERE vector_id = ?", [(vector_id,) for _, vector_id in gone])
            for generation in {generation for generation, _ in gone}:
                self.drop_from_segments(generation, [vector_id for of, vector_id in gone if of == generation])
        return len(gone)

    def drop_retired(self, limit: int) -> int:
        """Remove up to `limit` vectors of retired generations; returns how many went, 0 when none is left."""
        with self.transaction():
            row = self._row("SELECT generation FROM generations WHERE state = 'retired' ORDER BY generation LIMIT 1")
            if row is None:
                return 0
            self._run("DELETE FROM segments WHERE generation = ?", row[0])
            ids = self._all("SELECT vector_id FROM vectors WHERE generation = ? LIMIT ?", row[0], limit)
            self._many("DELETE FROM token_bits WHERE vector_id = ?", ids)
            self._many("DELETE FROM vectors WHERE vector_id = ?", ids)
            if len(ids) < limit:
                self._run("DELETE FROM generations WHERE generation = ?", row[0])
        return max(len(ids), 1)

    def _add_vector(self, generation: int, new: NewVector) -> int | None:
        wanted = self._row("SELECT 1 FROM chunks WHERE text_hash = ? AND embed = 1", new.text_hash)
        if wanted is None:
            return None
        added = self._run(
            "INSERT INTO vectors (generation, text_hash, vector) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            generation,
            new.text_hash,
            np.ascontiguousarray(new.vector, "<f4").tobytes(),
        )
        if not added:
            return None
        vector_id = self.db.last_insert_rowid()
        self._run("INSERT INTO token_bits VALUES (?, ?)", vector_id, np.ascontiguousarray(new.token_bits).tobytes())
        return vector_id

    def _check(self, new: NewVector, dim: object, token_dim: object) -> None:
        if new.vector.shape != (dim,) or not np.isfinite(new.vector).all():
            raise StoreError(
                f"A vector of shape {new.vector.shape} was given where the model has {dim} finite numbers."
            )
        if new.token_bits.ndim != 2 or new.token_bits.shape[1] * 8 != token_dim or new.token_bits.dtype != np.uint8:
            raise StoreError(
                f"Token bits of shape {new.token_bits.shape} were given where the model has {token_dim} dimensions."
            )

    def _generation(self, state: str) -> Generation | None:
        row = self._row(f"SELECT {GENERATION_COLUMNS} FROM generations WHERE state = ?", state)
        return generation_of(row) if row else None

    def _update_model(self, generation: Generation, stamp: ModelStamp) -> None:
        """The same vectors under another name, for example after a model folder was moved."""
        if (generation.stamp.model, generation.stamp.precision) != (stamp.model, stamp.precision):
            self._run(
                "UPDATE generations SET model = ?, precision = ? WHERE generation = ?",
                stamp.model,
                stamp.precision,
                generation.generation,
            )

    def _fill_pending(self, generation: int) -> None:
        self._run("DELETE FROM pending")
        self._run(
            f"INSERT INTO pending SELECT chunk_id, ordinal / {CHUNKS_A_TURN} FROM chunks WHERE embed = 1 AND NOT "
            f"EXISTS "
            "(SELECT 1 FROM vectors WHERE vectors.text_hash = chunks.text_hash AND generation = ?)",
            generation,
        )

    def _retire(self, generation: int) -> None:
        self._run("UPDATE generations SET state = 'retired' WHERE generation = ?", generation)

    def _finish_generation(self) -> None:
        building = self._generation("building")
        if building and not self._int("SELECT EXISTS (SELECT 1 FROM pending)"):
            self._run("UPDATE generations SET state = 'retired' WHERE state = 'active'")
            self._run("UPDATE generations SET state = 'active' WHERE generation = ?", building.generation)


def generation_of(row: Sequence[object]) -> Generation:
    """A row of GENERATION_COLUMNS as a record."""
    generation, fingerprint, model, precision, dim, token_dim, state = row
    assert isinstance(generation, int) and isinstance(dim, int) and isinstance(token_dim, int)
    return Generation(generation, ModelStamp(str(fingerprint), str(model), str(precision), dim, token_dim), str(state))
