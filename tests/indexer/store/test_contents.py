from __future__ import annotations

from pathlib import Path

import pytest

from indexer.store import contents
from indexer.store import writer as writing
from indexer.store.reader import Reader
from indexer.store.records import NewChunk, text_hash
from indexer.store.writer import Writer
from tests.indexer.store.building import STAMP, add_file, embed_pending, new_vector, rows_in


class Crash(Exception):
    pass


def chunks_of(*texts: str) -> list[NewChunk]:
    return [NewChunk(10 * i, 10 * i + len(text), text) for i, text in enumerate(texts)]


def test_a_small_file_is_there_as_a_whole_or_not_at_all(writer: Writer, root: int) -> None:
    before = rows_in(writer)
    with pytest.raises(Crash), writer.transaction():
        content = writer.begin_content(b"hash", "text/1")
        writer.add_chunks(content.content_id, chunks_of("some words"))
        raise Crash
    assert rows_in(writer) == before
    assert writer.db.execute("SELECT count(*) FROM words WHERE words MATCH 'some'").get == 0
    assert writer.counts().chunks == 0


def test_a_big_file_goes_on_where_a_killed_writer_stopped(tmp_path: Path) -> None:
    with Writer.open(tmp_path) as writer:
        root = writer.add_root(b"/r").root_id
        content = writer.begin_content(b"hash", "text/1")
        writer.put_document(root, b"big.log", size=9, mtime_ns=1, content_id=content.content_id)
        writer.add_chunks(content.content_id, chunks_of("first part", "second part"))
    with Writer.open(tmp_path) as writer:
        again = writer.begin_content(b"hash", "text/1")
        assert (again.content_id, again.chunk_count, again.complete) == (content.content_id, 2, False)
        assert writer.counts().partial == 1
        writer.add_chunks(again.content_id, chunks_of("first part", "second part", "third part")[again.chunk_count :])
        writer.finish_content(again.content_id, char_count=30)
        assert writer.counts().partial == 0
        rows = writer.db.execute("SELECT ordinal, text FROM chunks ORDER BY ordinal").fetchall()
        assert rows == [(0, "first part"), (1, "second part"), (2, "third part")]


def test_words_are_found_before_there_are_vectors(writer: Writer, root: int) -> None:
    add_file(writer, root, "a.txt", "words come first")
    assert writer.db.execute("SELECT count(*) FROM stems WHERE stems MATCH 'come'").get == 1
    assert writer.pending_count() == 1


def test_killed_between_the_stages_the_meaning_is_still_pending(tmp_path: Path) -> None:
    with Writer.open(tmp_path) as writer:
        add_file(writer, writer.add_root(b"/r").root_id, "a.txt", "one", "two")
    with Writer.open(tmp_path) as writer:
        assert embed_pending(writer) == 2
        assert writer.pending_count() == 0


def test_an_edit_embeds_only_the_chunks_that_changed(writer: Writer, root: int) -> None:
    add_file(writer, root, "a.txt", "same beginning", "old middle", "same end")
    embed_pending(writer)
    add_file(writer, root, "a.txt", "same beginning", "new middle", "same end")
    assert [chunk.text for chunk in writer.pending_chunks(10)] == ["new middle"]
    embed_pending(writer)
    writer.purge_orphans()
    assert rows_in(writer)["vectors"] == 3


def test_equal_texts_wait_once(writer: Writer, root: int) -> None:
    add_file(writer, root, "a.txt", "boilerplate", "a")
    add_file(writer, root, "b.txt", "boilerplate", "b")
    assert [chunk.text for chunk in writer.pending_chunks(10)] == ["boilerplate", "a", "b"]
    embed_pending(writer)
    assert (writer.pending_count(), rows_in(writer)["vectors"]) == (0, 3)


def test_a_small_file_does_not_wait_for_a_huge_one(writer: Writer, root: int) -> None:
    add_file(writer, root, "huge.log", *(f"line {number}" for number in range(500)))
    add_file(writer, root, "small.txt", "short note")
    assert "short note" in [chunk.text for chunk in writer.pending_chunks(65)]


def test_chunks_past_the_vector_limit_never_wait(writer: Writer, root: int) -> None:
    add_file(writer, root, "a.log", "words only", embed=False)
    assert writer.pending_count() == 0
    assert writer.db.execute("SELECT count(*) FROM words WHERE words MATCH 'only'").get == 1


def test_texts_that_cannot_be_embedded_are_not_asked_for_again(writer: Writer, root: int) -> None:
    add_file(writer, root, "a.txt", "awkward", "fine")
    writer.use_model(STAMP)
    awkward = next(chunk for chunk in writer.pending_chunks(9) if chunk.text == "awkward")
    writer.forgo_vectors([awkward.chunk_id])
    assert [chunk.text for chunk in writer.pending_chunks(9)] == ["fine"]


def test_nuls_and_lone_surrogates_become_one_character_each(writer: Writer, root: int) -> None:
    add_file(writer, root, "a.txt", "a\0b\ud800c end")
    text = writer.db.execute("SELECT text FROM chunks").get
    assert text == "a\ufffdb\ufffdc end"
    assert writer.pending_chunks(1)[0].text_hash == text_hash(text)


def test_a_new_extractor_version_keeps_the_old_text_until_the_new_is_complete(writer: Writer, root: int) -> None:
    document = add_file(writer, root, "a.txt", "old text", extractor="text/1")
    content = writer.begin_content(text_hash(repr(("old text",))), "text/2")
    writer.add_chunks(content.content_id, chunks_of("new text"))
    found = writer.document(root, b"a.txt")
    assert found is not None and found.extractor == "text/1" and found.document_id == document
    writer.finish_content(content.content_id, char_count=8)
    writer.put_document(root, b"a.txt", size=1, mtime_ns=1, content_id=content.content_id)
    writer.purge_orphans()
    assert [row[0] for row in writer.db.execute("SELECT text FROM chunks").fetchall()] == ["new text"]


def test_the_text_of_a_document_is_put_together_from_its_chunks(writer: Writer, root: int, reader: Reader) -> None:
    document = add_file(writer, root, "a.txt", "first chunk", "second chunk", "third")
    whole = reader.document_text(document)
    assert whole is not None and whole.text == "first chunk\nsecond chunk\nthird"
    assert (whole.total_chars, whole.complete) == (len(whole.text), True)
    part = reader.document_text(document, 6, 18)
    assert part is not None and part.text == whole.text[6:18]
    assert reader.document_text(document + 1) is None


def test_vectors_of_texts_that_have_gone_are_passed_over(writer: Writer, root: int) -> None:
    document = add_file(writer, root, "a.txt", "soon gone")
    generation = writer.use_model(STAMP).generation
    writer.delete_documents([document])
    writer.purge_orphans()
    writer.add_vectors(generation, [new_vector("soon gone")])
    assert rows_in(writer)["vectors"] == rows_in(writer)["segments"] == 0


def test_a_huge_file_is_purged_in_bounded_parts_and_may_come_back_meanwhile(writer: Writer, root: int) -> None:
    texts = [f"entry {number}" for number in range(100)]
    document = add_file(writer, root, "huge.log", *texts)
    embed_pending(writer)
    writer.delete_documents([document])
    assert writer.purge_orphans(30) > 0
    assert rows_in(writer)["chunks"] == 70
    assert writer.purge_orphans(30) > 0
    again = add_file(writer, root, "huge.log", *texts)
    assert writer.document(root, b"huge.log") is not None
    assert rows_in(writer)["chunks"] == 100
    embed_pending(writer)
    assert rows_in(writer)["vectors"] == 100
    writer.delete_documents([again])
    while writer.purge_orphans(30):
        pass
    assert rows_in(writer)["contents"] == rows_in(writer)["chunks"] == rows_in(writer)["vectors"] == 0


def test_words_are_filled_anew_when_text_is_prepared_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Writer.open(tmp_path) as writer:
        root = writer.add_root(b"/r").root_id
        document = add_file(writer, root, "a.txt", "Some Words", "and more")
        counts = writer.db.execute("SELECT * FROM term_counts").fetchall()
    with monkeypatch.context() as other:
        other.setattr(writing, "PREPARED_BY", "older")
        other.setattr(contents, "prepare_text", lambda text: text.lower().replace("o", "zzz"))
        with Writer.open(tmp_path) as writer:
            assert writer.db.execute("SELECT count(*) FROM words WHERE words MATCH 'szzzme'").get == 1
    with Writer.open(tmp_path) as writer:
        assert writer.db.execute("SELECT count(*) FROM words WHERE words MATCH 'szzzme'").get == 0
        assert writer.db.execute("SELECT count(*) FROM stems WHERE stems MATCH 'word'").get == 1
        assert writer.db.execute("SELECT * FROM term_counts").fetchall() == counts
        writer.delete_documents([document])
        writer.purge_orphans()
        assert writer.counts().chunks == 0


def test_vectors_of_a_dropped_content_are_kept_for_its_next_reading_or_purged(writer: Writer, root: int) -> None:
    add_file(writer, root, "a.txt", "kept text", "other text")
    embed_pending(writer)
    found = writer.find_content(text_hash(repr(("kept text", "other text"))), "text/1")
    assert found is not None
    assert writer.drop_content(found.content_id) == 2
    add_file(writer, root, "a.txt", "kept text", "changed text")
    assert [chunk.text for chunk in writer.pending_chunks(9)] == ["changed text"]
    embed_pending(writer)
    while writer.purge_orphans():
        pass
    assert rows_in(writer)["vectors"] == rows_in(writer)["token_bits"] == 2
