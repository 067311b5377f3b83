from __future__ import annotations

import itertools

import numpy as np
import pytest

from engine.search.candidates import F32, Filters
from indexer.store import candidates, segments
from indexer.store.candidates import StoreCandidates
from indexer.store.reader import Reader
from indexer.store.records import NewChunk, NewVector, text_hash
from indexer.store.segments import quantise
from indexer.store.writer import Writer
from tests.indexer.store.building import DIM, STAMP


def fill(writer: Writer, root: int, count: int, batch: int, seed: int = 1) -> dict[str, F32]:
    """`count` chunks, one a document, with random vectors, embedded `batch` at a time."""
    chance = np.random.default_rng(seed)
    vectors: dict[str, F32] = {}
    with writer.transaction():
        for number in range(count):
            text = f"text {seed} {number}"
            content = writer.begin_content(text_hash(text), "t")
            writer.add_chunks(content.content_id, [NewChunk(0, len(text), text)])
            writer.finish_content(content.content_id, char_count=len(text))
            writer.put_document(root, text.encode(), size=1, mtime_ns=number, content_id=content.content_id)
            vector = chance.standard_normal(DIM).astype(np.float32)
            vectors[text] = vector / np.linalg.norm(vector)
    generation = writer.use_model(STAMP).generation
    bits = np.zeros((1, DIM // 8), np.uint8)
    while waiting := writer.pending_chunks(batch):
        writer.add_vectors(generation, [NewVector(chunk.text_hash, vectors[chunk.text], bits) for chunk in waiting])
    return vectors


def found(source: StoreCandidates, query: F32, limit: int, filters: Filters | None = None) -> list[str]:
    with source.snapshot():
        ids, cosines = source.nearest(query, limit, source.scope(filters or Filters(), (), ()))
        assert (np.diff(cosines) <= 0).all()
        return [passage.text for passage in source.passages(ids)]


def truth(vectors: dict[str, F32], query: F32, limit: int) -> list[str]:
    return sorted(vectors, key=lambda text: -float(vectors[text] @ query))[:limit]


def query_of(seed: int) -> F32:
    vector = np.random.default_rng(1000 + seed).standard_normal(DIM).astype(np.float32)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def test_codes_stay_close_to_their_vectors() -> None:
    vectors = np.random.default_rng(0).standard_normal((100, DIM)).astype(np.float32)
    codes, scales = quantise(vectors)
    assert np.abs(codes * scales[:, None] - vectors).max() <= scales.max() / 2 + 1e-6
    assert quantise(np.zeros((1, 4), np.float32))[0].tolist() == [[0, 0, 0, 0]]


@pytest.mark.parametrize("batch", [1, 7, 64, 1000])
def test_merged_segments_find_what_brute_force_finds(
    writer: Writer, root: int, source: StoreCandidates, batch: int
) -> None:
    vectors = fill(writer, root, 700, batch)
    for seed in range(5):
        assert found(source, query_of(seed), 20) == truth(vectors, query_of(seed), 20)
    count = writer.db.execute("SELECT count(*) FROM segments").get
    assert count <= 4 * segments.FAN_OUT
    ranges = writer.db.execute("SELECT first_id, last_id FROM segments ORDER BY first_id").fetchall()
    assert all(a[1] < b[0] for a, b in itertools.pairwise(ranges))


def test_deletions_leave_the_codes_until_a_quarter_is_dead(
    writer: Writer, root: int, source: StoreCandidates, reader: Reader
) -> None:
    vectors = fill(writer, root, 200, 200)
    query = query_of(1)
    assert found(source, query, 10) == truth(vectors, query, 10)
    segment = writer.db.execute("SELECT segment_id FROM segments").get

    def drop(names: list[str]) -> None:
        for name in names:
            document = writer.document(root, name.encode())
            assert document is not None
            writer.delete_documents([document.document_id])
            del vectors[name]
        while writer.purge_orphans(1000):
            pass

    drop(truth(vectors, query, 30))
    assert writer.db.execute("SELECT segment_id, dead FROM segment_ids").fetchall() == [(segment, 30)]
    assert found(source, query, 10) == truth(vectors, query, 10)
    drop(truth(vectors, query, 40))
    ((rows, dead),) = writer.db.execute(
        "SELECT rows, dead FROM segments JOIN segment_ids USING (segment_id)"
    ).fetchall()
    assert (rows, dead) == (130, 0)
    assert found(source, query, 10) == truth(vectors, query, 10)
    drop(list(vectors))
    assert writer.db.execute("SELECT count(*) FROM segments").get == 0
    assert found(source, query, 10) == []


def test_deleted_documents_are_not_found_before_the_purge_either(
    writer: Writer, root: int, source: StoreCandidates
) -> None:
    vectors = fill(writer, root, 300, 100)
    query = query_of(2)
    for name in truth(vectors, query, 290):
        document = writer.document(root, name.encode())
        assert document is not None
        writer.delete_documents([document.document_id])
        del vectors[name]
    assert found(source, query, 10) == truth(vectors, query, 10)


def test_a_reader_reads_only_segments_that_are_new(
    writer: Writer, root: int, source: StoreCandidates, reader: Reader
) -> None:
    fill(writer, root, 100, 100)
    found(source, query_of(1), 5)
    statements: list[str] = []
    reader.db.trace_v2(1, lambda event: statements.append(event["sql"]))
    found(source, query_of(1), 5)
    assert not any("segments" in sql for sql in statements)
    fill(writer, root, 10, 10, seed=2)
    found(source, query_of(1), 5)
    reader.db.trace_v2(0, None)
    assert sum(sql.startswith("SELECT codes") for sql in statements) == 1


@pytest.mark.parametrize("small", [0, 10_000])
def test_filters_act_before_the_limit(
    writer: Writer, root: int, source: StoreCandidates, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    """Both ways: distances of record for few candidates, the widened scan for many."""
    monkeypatch.setattr(candidates, "SMALL_SCOPE_CHUNKS", small)
    vectors = fill(writer, root, 600, 600)
    query = query_of(3)
    worst = truth(vectors, query, 600)[-40:]
    times = {int(name.rsplit(" ", 1)[1]) for name in worst}
    low, high = min(times), max(times) + 1
    allowed = {name: vector for name, vector in vectors.items() if low <= int(name.rsplit(" ", 1)[1]) < high}
    filters = Filters(after_ns=low, before_ns=high)
    assert found(source, query, 15, filters) == truth(allowed, query, 15)
    narrow = Filters(after_ns=low, before_ns=low + 1)
    assert found(source, query, 15, narrow) == [f"text 1 {low}"]


def test_a_reader_in_its_snapshot_sees_one_state_while_the_writer_goes_on(
    writer: Writer, root: int, source: StoreCandidates, reader: Reader
) -> None:
    vectors = fill(writer, root, 50, 50)
    query = query_of(4)
    with source.snapshot():
        before = reader.counts()
        more = fill(writer, root, 50, 50, seed=3)
        ids, _ = source.nearest(query, 10, source.scope(Filters(), (), ()))
        assert [passage.text for passage in source.passages(ids)] == truth(vectors, query, 10)
        assert reader.counts() == before
    assert found(source, query, 10) == truth(vectors | more, query, 10)
