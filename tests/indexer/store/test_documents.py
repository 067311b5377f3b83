from __future__ import annotations

import pytest

from indexer.store.dump import dump
from indexer.store.reader import Reader
from indexer.store.records import file_type, path_key
from indexer.store.writer import Writer
from tests.indexer.store.building import add_file, embed_pending, rows_in


def paths(writer: Writer, root: int, under: bytes = b"") -> list[bytes]:
    return [document.path for document in writer.documents(root, under)]


def test_documents_come_in_the_byte_order_of_their_paths_across_pages(writer: Writer, root: int) -> None:
    names = sorted([b"%04d/x.txt" % number for number in range(2100)] + [b"\xff\xfe.txt", "ä.txt".encode()])
    with writer.transaction():
        for name in names:
            writer.put_document(root, name, size=1, mtime_ns=1, content_id=None)
    assert paths(writer, root) == names


def test_a_folder_does_not_take_in_its_neighbours(writer: Writer, root: int) -> None:
    for name in (b"a/1", b"a/b/2", b"a-b/3", b"a.txt", b"ab/4", b"a0/5"):
        writer.put_document(root, name, size=1, mtime_ns=1, content_id=None)
    assert paths(writer, root, b"a") == [b"a/1", b"a/b/2"]
    assert writer.document_count(root, b"a") == 2


def test_paths_that_differ_in_case_or_normalisation_are_different_files(writer: Writer, root: int) -> None:
    for name in ("README.md", "readme.md", "caf\u00e9", "cafe\u0301"):
        writer.put_document(root, name.encode(), size=1, mtime_ns=1, content_id=None)
    assert writer.document_count(root) == 4
    assert [found.path for found in writer.documents_like(root, "CAFE\u0301".encode())] == [
        "cafe\u0301".encode(),
        "caf\u00e9".encode(),
    ]


def test_a_rename_changes_one_row_and_no_vector(writer: Writer, root: int) -> None:
    document = add_file(writer, root, "letters/old.txt", "about a car")
    embed_pending(writer)
    before = rows_in(writer)
    changes = writer.db.total_changes()
    writer.move_document(document, root, b"letters/old renamed.txt")
    # The row, and the name in the index of names: out and in, with the text it was made from.
    assert writer.db.total_changes() - changes < 30
    assert rows_in(writer) == before
    assert writer.pending_count() == 0
    assert embed_pending(writer) == 0


def test_moving_a_folder_is_one_update_of_documents(writer: Writer, root: int) -> None:
    for number in range(50):
        add_file(writer, root, f"Alt/sub/{number}.txt", f"text number {number}")
    embed_pending(writer)
    other = writer.add_root(b"/media/disk").root_id
    statements: list[str] = []
    writer.db.trace_v2(1, lambda event: statements.append(event["sql"]))
    moved = writer.move_directory(root, b"Alt", other, b"Neu/\xe9")
    writer.db.trace_v2(0, None)
    assert moved == 50
    assert sum(sql.startswith("UPDATE documents") for sql in statements) == 1
    assert not any(word in sql for sql in statements for word in ("chunks", "vectors", "segments"))
    assert paths(writer, root) == []
    assert paths(writer, other)[0] == b"Neu/\xe9/sub/0.txt"
    key = writer.db.execute("SELECT path_key FROM documents LIMIT 1").get
    assert key == path_key(b"Neu/\xe9/sub/0.txt")
    assert embed_pending(writer) == 0


def test_a_move_replaces_what_stood_at_the_new_place(writer: Writer, root: int) -> None:
    add_file(writer, root, "a/x.txt", "kept")
    add_file(writer, root, "b/x.txt", "replaced")
    writer.move_directory(root, b"a", root, b"b")
    document = writer.document(root, b"b/x.txt")
    add_file(writer, root, "c.txt", "also replaced")
    assert document is not None
    writer.move_document(document.document_id, root, b"c.txt")
    assert paths(writer, root) == [b"c.txt"]
    writer.purge_orphans()
    assert [row[0] for row in writer.db.execute("SELECT text FROM chunks").fetchall()] == ["kept"]


def test_a_copy_shares_its_content(writer: Writer, root: int) -> None:
    add_file(writer, root, "a.txt", "the same words")
    embed_pending(writer)
    add_file(writer, root, "copy of a.txt", "the same words")
    assert rows_in(writer)["chunks"] == 1
    assert embed_pending(writer) == 0
    writer.delete_directory(root, b"nothing")
    document = writer.document(root, b"a.txt")
    assert document is not None
    writer.delete_documents([document.document_id])
    assert writer.purge_orphans() == 0
    assert rows_in(writer)["chunks"] == 1


def test_deleted_and_created_again_before_the_purge_embeds_nothing(writer: Writer, root: int) -> None:
    document = add_file(writer, root, "a.txt", "moved by delete and create")
    embed_pending(writer)
    writer.delete_documents([document])
    add_file(writer, root, "b/a.txt", "moved by delete and create")
    writer.purge_orphans()
    assert embed_pending(writer) == 0


@pytest.mark.parametrize("way", ["documents", "directory", "root", "edit"])
def test_after_the_purge_nothing_of_a_file_is_left_in_any_table(
    writer: Writer, root: int, reader: Reader, way: str
) -> None:
    empty = rows_in(writer) | {"roots": 0}
    document = add_file(writer, root, "d/secret.txt", "xylophone one", "xylophone two", title="Xylophone")
    embed_pending(writer)
    writer.record_failure(root, b"d/secret.txt", "warning", "Something.")
    if way == "documents":
        writer.delete_documents([document])
        writer.clear_failure(root, b"d/secret.txt")
    elif way == "directory":
        writer.delete_directory(root, b"d")
        writer.clear_failure(root, b"d/secret.txt")
    elif way == "edit":
        writer.clear_failure(root, b"d/secret.txt")
        writer.put_document(root, b"d/secret.txt", size=0, mtime_ns=9, content_id=None)
        writer.delete_documents([document])
    if way == "root":
        writer.remove_root(root)
    while writer.purge_orphans():
        pass
    left = rows_in(writer)
    left["roots"] = 0
    assert left == empty | {"generations": 1}
    for table in ("words", "stems", "names"):
        assert writer.db.execute(f"SELECT count(*) FROM {table} WHERE {table} MATCH 'xylophone'").get == 0
    assert list(dump(reader))[-1] == {"strays": dict.fromkeys(list(dump(reader))[-1]["strays"], 0)}


def test_deleted_text_is_gone_from_the_bytes_of_the_file(writer: Writer, root: int) -> None:
    add_file(writer, root, "kept.txt", "ordinary words that stay")
    document = add_file(
        writer, root, "secret-zanzibar.txt", "the zanzibarquux password is qwertzuiop", title="zanzibarquux"
    )
    embed_pending(writer)
    writer.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    assert b"zanzibarquux" in writer.path.read_bytes()
    writer.delete_documents([document])
    while writer.purge_orphans():
        pass
    writer.tidy()
    writer.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    data = writer.path.read_bytes()
    for word in (b"zanzibar", b"quux", b"qwertz"):
        assert word not in data
    assert b"ordinary" in data


def test_the_file_type_is_the_suffix(writer: Writer) -> None:
    assert [
        file_type(name) for name in (b"a/B.PDF", b"x.tar.gz", b"Makefile", b".bashrc", b"a.b/c", b"\xff.t\xfe")
    ] == [
        "pdf",
        "gz",
        "",
        "",
        "",
        "t\ufffd",
    ]
