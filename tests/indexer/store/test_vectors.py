from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engine.search.candidates import Filters
from indexer.errors import StoreError
from indexer.store.candidates import StoreCandidates
from indexer.store.dump import digest, dump
from indexer.store.reader import Reader
from indexer.store.records import NewVector
from indexer.store.writer import Writer
from tests.indexer.store.building import DIM, STAMP, ToyEncoder, add_file, embed_pending, new_vector, rows_in

NEW_MODEL = replace(STAMP, fingerprint="toy-2", model="toy two")


def nearest_text(source: StoreCandidates, query: str) -> str:
    vector = ToyEncoder().encode_all([query])[0][0]
    with source.snapshot():
        ids, _ = source.nearest(vector, 1, source.scope(Filters(), (), ()))
        return source.passages(ids)[0].text if ids.size else ""


def test_old_vectors_answer_until_the_new_model_is_complete(writer: Writer, root: int, source: StoreCandidates) -> None:
    add_file(writer, root, "a.txt", "a car", "a cat", "a tree")
    embed_pending(writer)
    new = writer.use_model(NEW_MODEL)
    assert (new.state, writer.pending_count()) == ("building", 3)
    batch = writer.pending_chunks(2)
    writer.add_vectors(new.generation, [new_vector(chunk.text) for chunk in batch])
    assert nearest_text(source, "automobile") == "a car"
    active = writer.active_generation()
    assert active is not None and active.stamp == STAMP
    writer.add_vectors(new.generation, [new_vector(chunk.text) for chunk in writer.pending_chunks(9)])
    active = writer.active_generation()
    assert active is not None and active.stamp == NEW_MODEL
    assert nearest_text(source, "automobile") == "a car"
    while writer.purge_orphans():
        pass
    assert rows_in(writer)["vectors"] == rows_in(writer)["token_bits"] == 3
    assert rows_in(writer)["generations"] == 1
    assert nearest_text(source, "automobile") == "a car"


def test_going_back_to_the_active_model_embeds_only_what_is_new(writer: Writer, root: int) -> None:
    add_file(writer, root, "a.txt", "a car")
    embed_pending(writer)
    writer.use_model(NEW_MODEL)
    add_file(writer, root, "b.txt", "a cat")
    assert writer.use_model(STAMP).state == "active"
    assert [chunk.text for chunk in writer.pending_chunks(9)] == ["a cat"]


def test_the_same_model_again_queues_nothing(writer: Writer, root: int) -> None:
    add_file(writer, root, "a.txt", "a car")
    embed_pending(writer)
    moved = writer.use_model(replace(STAMP, model="/elsewhere/toy"))
    assert (moved.state, moved.stamp.model, writer.pending_count()) == ("active", "/elsewhere/toy", 0)


def test_an_interrupted_switch_goes_on_with_what_is_left(writer: Writer, root: int) -> None:
    add_file(writer, root, "a.txt", "a car", "a cat")
    embed_pending(writer)
    new = writer.use_model(NEW_MODEL)
    writer.add_vectors(new.generation, [new_vector(writer.pending_chunks(1)[0].text)])
    assert writer.use_model(NEW_MODEL) == new
    assert writer.pending_count() == 1


def test_deleting_the_last_pending_file_completes_the_switch(writer: Writer, root: int) -> None:
    add_file(writer, root, "a.txt", "a car")
    embed_pending(writer)
    document = add_file(writer, root, "b.txt", "a cat")
    new = writer.use_model(NEW_MODEL)
    writer.add_vectors(new.generation, [new_vector("a car")])
    writer.delete_documents([document])
    writer.purge_orphans()
    active = writer.active_generation()
    assert active is not None and active.stamp == NEW_MODEL


def test_vectors_of_a_dropped_generation_are_passed_over(writer: Writer, root: int) -> None:
    add_file(writer, root, "a.txt", "a car")
    embed_pending(writer)
    dropped = writer.use_model(NEW_MODEL)
    writer.use_model(STAMP)
    writer.add_vectors(dropped.generation, [new_vector("a car")])
    assert rows_in(writer)["vectors"] == 1


@pytest.mark.parametrize(
    "bad",
    [
        NewVector(b"k", np.zeros(DIM + 1, np.float32), np.zeros((1, DIM // 8), np.uint8)),
        NewVector(b"k", np.full(DIM, np.nan, np.float32), np.zeros((1, DIM // 8), np.uint8)),
        NewVector(b"k", np.zeros(DIM, np.float32), np.zeros((1, DIM), np.uint8)),
    ],
)
def test_a_vector_that_does_not_fit_is_refused_and_nothing_is_written(
    writer: Writer, root: int, bad: NewVector
) -> None:
    add_file(writer, root, "a.txt", "a car")
    generation = writer.use_model(STAMP).generation
    with pytest.raises(StoreError):
        writer.add_vectors(generation, [new_vector("a car"), bad])
    assert rows_in(writer)["vectors"] == 0
    assert writer.pending_count() == 1


def test_without_a_model_there_is_no_generation_to_fill(writer: Writer) -> None:
    with pytest.raises(StoreError, match="use_model"):
        writer.target_generation()


def test_two_indexes_of_the_same_files_have_the_same_picture(
    writer: Writer, root: int, reader: Reader, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Another order, other batches, a detour over deletions and a rename: ids differ, the picture does not."""
    add_file(writer, root, "a.txt", "a car", "a cat")
    add_file(writer, root, "b.txt", "a tree")
    embed_pending(writer)
    other_dir = tmp_path_factory.mktemp("other")
    with Writer.open(other_dir) as other:
        other_root = other.add_root(b"/home/ann").root_id
        gone = add_file(other, other_root, "gone.txt", "temporary words")
        moved = add_file(other, other_root, "z.txt", "a tree")
        embed_pending(other)
        add_file(other, other_root, "a.txt", "a car", "a cat")
        other.delete_documents([gone])
        other.move_document(moved, other_root, b"b.txt")
        embed_pending(other)
        while other.purge_orphans():
            pass
        with Reader.open(other_dir) as other_reader:
            assert list(dump(other_reader)) == list(dump(reader))
            assert digest(other_reader) == digest(reader)
            add_file(other, other_root, "c.txt", "more")
            assert digest(other_reader) != digest(reader)


def test_what_no_document_uses_is_not_embedded_any_more(writer: Writer, root: int, reader: Reader) -> None:
    gone = add_file(writer, root, "gone.txt", "a cat", "a shared passage")
    add_file(writer, root, "stays.txt", "a car", "a shared passage")
    writer.use_model(STAMP)
    writer.delete_documents([gone])
    assert {chunk.text for chunk in writer.pending_chunks(9)} == {"a car", "a shared passage"}
    assert writer.pending_count() == reader.counts().pending_chunks == 2
