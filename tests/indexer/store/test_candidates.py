from __future__ import annotations

import threading
import unicodedata
from pathlib import Path

import numpy as np
import pytest

from engine.search import lexical
from engine.search.candidates import NO_FILTERS, Filters
from engine.search.pipeline import Cancelled, Mode, Request, Result, search
from indexer.store import candidates
from indexer.store.candidates import StoreCandidates
from indexer.store.reader import Reader
from indexer.store.writer import Writer
from tests.indexer.store.building import ToyEncoder, add_file, embed_pending

ENCODER = ToyEncoder()


def ask(
    source: StoreCandidates, query: str, *, mode: Mode = "hybrid", limit: int = 20, filters: Filters = NO_FILTERS
) -> Result:
    return search(Request(query, limit, mode, filters=filters), source, ENCODER)


def found(
    source: StoreCandidates, query: str, *, mode: Mode = "hybrid", limit: int = 20, filters: Filters = NO_FILTERS
) -> list[str]:
    hits = ask(source, query, mode=mode, limit=limit, filters=filters).hits
    return [hit.documents[0].path.decode() for hit in hits]


@pytest.fixture
def library(writer: Writer, root: int) -> Writer:
    add_file(
        writer, root, "cars/repair.txt", "How to repair a car engine", "Change the oil of the car first", mtime_ns=10
    )
    add_file(writer, root, "pets/cat.md", "The cat sleeps on the sofa all day", mtime_ns=20)
    add_file(
        writer, root, "work/invoice.pdf", "Invoice INV-2041 for painting the house, version 2026.4.10", mtime_ns=30
    )
    add_file(
        writer, root, "work/code.txt", "We wrote it in C++ with foo_bar and a bit of C, running tests", mtime_ns=40
    )
    add_file(writer, root, "日本/東京.txt", "東京都は日本の首都です。人口は約千四百万人。", mtime_ns=50)
    add_file(writer, root, "work/other.txt", "Invoice INV-2042 for gardening, version 2026.4.11", mtime_ns=60)
    embed_pending(writer)
    return writer


@pytest.mark.parametrize("mode", ["hybrid", "words", "meaning"])
def test_every_mode_finds_the_words_it_was_asked_for(library: Writer, source: StoreCandidates, mode: Mode) -> None:
    assert found(source, "car engine", mode=mode)[0] == "cars/repair.txt"


def test_meaning_finds_what_shares_no_word(library: Writer, source: StoreCandidates) -> None:
    assert found(source, "automobile", mode="words") == []
    assert found(source, "automobile")[0] == "cars/repair.txt"
    hit = ask(source, "feline").hits[0]
    assert hit.documents[0].path == b"pets/cat.md"
    assert "cat" in hit.passage


def test_words_need_no_model(library: Writer, source: StoreCandidates) -> None:
    result = search(Request("painting", mode="hybrid"), source, None)
    assert [hit.documents[0].path for hit in result.hits] == [b"work/invoice.pdf"]
    assert result.words_only
    calls = ENCODER.calls
    ask(source, "painting", mode="words")
    assert ENCODER.calls == calls


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("INV-2041", "work/invoice.pdf"),
        ("inv-2042", "work/other.txt"),
        ("2026.4.10", "work/invoice.pdf"),
        ("C++", "work/code.txt"),
        ("foo_bar", "work/code.txt"),
        ("東京", "日本/東京.txt"),
        ("都", "日本/東京.txt"),
        ("す", "日本/東京.txt"),
        ("人口", "日本/東京.txt"),
        ("run test", "work/code.txt"),
    ],
)
@pytest.mark.parametrize("mode", ["hybrid", "words"])
def test_codes_and_short_words_of_any_script_come_first(
    library: Writer, source: StoreCandidates, query: str, path: str, mode: Mode
) -> None:
    assert found(source, query, mode=mode)[0] == path


def test_a_quoted_phrase_must_stand_there(library: Writer, source: StoreCandidates) -> None:
    assert found(source, '"the car first"') == ["cars/repair.txt"]
    assert found(source, '"car the first"') == []
    assert sorted(found(source, '"the cat" OR "the house"')) == ["pets/cat.md", "work/invoice.pdf"]


def test_an_excluded_word_keeps_its_whole_document_out(library: Writer, source: StoreCandidates) -> None:
    assert found(source, "invoice -gardening", mode="words") == ["work/invoice.pdf"]
    assert "cars/repair.txt" not in found(source, "engine -oil")


@pytest.mark.parametrize(
    ("narrowed", "paths"),
    [
        ("type:pdf", {"work/invoice.pdf"}),
        ("ext:md,pdf", {"pets/cat.md", "work/invoice.pdf"}),
        ("folder:pets", {"pets/cat.md"}),
        ("folder:WORK", {"work/invoice.pdf", "work/code.txt", "work/other.txt"}),
        ("dir:/home/ann/cars", {"cars/repair.txt"}),
        ("dir:/home/ann", None),
        ("dir:/home/an", set()),
        ("folder:日本", {"日本/東京.txt"}),
        ("folder:ork", set()),
        ("folder:%", set()),
    ],
)
@pytest.mark.parametrize("mode", ["hybrid", "meaning", "words"])
def test_filters_hold_in_every_mode(
    library: Writer, source: StoreCandidates, narrowed: str, paths: set[str] | None, mode: Mode
) -> None:
    hits = set(found(source, f"car cat invoice 東京 foo_bar {narrowed}", mode=mode))
    assert hits == paths if paths is not None else len(hits) == 6


def test_times_are_a_half_open_range(library: Writer, source: StoreCandidates) -> None:
    filters = Filters(after_ns=20, before_ns=40)
    assert set(found(source, "the", filters=filters)) == {"pets/cat.md", "work/invoice.pdf"}


def test_a_name_is_found_though_the_text_does_not_hold_it(library: Writer, source: StoreCandidates) -> None:
    assert found(source, "repair.txt", mode="words")[0] == "cars/repair.txt"
    root = library.roots()[0].root_id
    add_file(library, root, "Quarterly Budget.txt", "numbers and more numbers", title="Spending of the spring")
    assert found(source, "quarterly budget", mode="words") == ["Quarterly Budget.txt"]
    assert found(source, "spring spending", mode="words") == ["Quarterly Budget.txt"]


def test_equal_documents_are_one_hit(library: Writer, source: StoreCandidates) -> None:
    root = library.roots()[0].root_id
    add_file(library, root, "pets/copy.md", "The cat sleeps on the sofa all day")
    add_file(library, root, "pets/again.txt", "The cat  sleeps on the\nsofa all day")
    embed_pending(library)
    hits = ask(source, "cat sofa", mode="words").hits
    assert [document.path for document in hits[0].documents] == [b"pets/cat.md", b"pets/copy.md", b"pets/again.txt"]
    assert len(hits) == 1


def test_a_document_is_one_hit_by_its_best_passage(library: Writer, source: StoreCandidates) -> None:
    result = ask(source, "oil of the car")
    assert [hit.documents[0].path for hit in result.hits].count(b"cars/repair.txt") == 1
    hit = result.hits[0]
    assert hit.passage == "Change the oil of the car first"
    assert (hit.start_char, hit.end_char, hit.more) == (27, 58, 1)
    assert next(hit.snippet[start:end] for start, end in hit.highlights) == "oil"


def test_results_do_not_depend_on_the_order_of_indexing(
    library: Writer, source: StoreCandidates, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("again")
    with Writer.open(folder) as writer:
        root = writer.add_root(b"/home/ann").root_id
        for path, texts in reversed(TEXTS):
            add_file(writer, root, path, *texts)
            embed_pending(writer)
        with Reader.open(folder) as reader:
            for query in ("car engine", "invoice version", "automobile oil", "the"):
                mine = [(hit.documents[0].path, hit.snippet) for hit in ask(source, query).hits]
                theirs = [(hit.documents[0].path, hit.snippet) for hit in ask(StoreCandidates(reader), query).hits]
                assert sorted(mine) == sorted(theirs)
                assert mine[0] == theirs[0]


TEXTS = [
    ("cars/repair.txt", ["How to repair a car engine", "Change the oil of the car first"]),
    ("pets/cat.md", ["The cat sleeps on the sofa all day"]),
    ("work/invoice.pdf", ["Invoice INV-2041 for painting the house, version 2026.4.10"]),
    ("work/code.txt", ["We wrote it in C++ with foo_bar and a bit of C, running tests"]),
    ("日本/東京.txt", ["東京都は日本の首都です。人口は約千四百万人。"]),
    ("work/other.txt", ["Invoice INV-2042 for gardening, version 2026.4.11"]),
]


def test_an_empty_query_or_store_finds_nothing(writer: Writer, root: int, source: StoreCandidates) -> None:
    assert found(source, "anything") == []
    assert found(source, "") == found(source, "?!") == []


def test_a_newer_query_ends_the_older_one(library: Writer, source: StoreCandidates) -> None:
    with pytest.raises(Cancelled):
        search(Request("car"), source, ENCODER, cancelled=lambda: True)
    assert found(source, "car")


def test_offline_documents_stay_found_and_say_so(library: Writer, source: StoreCandidates) -> None:
    library.set_root_status(library.roots()[0].root_id, "offline", "The drive is not connected.")
    hit = ask(source, "cat sofa").hits[0]
    assert not hit.documents[0].online


def test_searches_go_on_while_the_indexer_writes(tmp_path: Path) -> None:
    """Every answer belongs to one committed state: a hit always has its text, and its document."""
    with Writer.open(tmp_path) as writer:
        root = writer.add_root(b"/r").root_id
        add_file(writer, root, "first.txt", "a car in the beginning")
        embed_pending(writer)
        stop = threading.Event()

        def index() -> None:
            number = 0
            while not stop.is_set():
                number += 1
                document = add_file(writer, root, f"{number % 20}.txt", f"car number {number}", "and a cat")
                embed_pending(writer)
                if number % 7 == 0:
                    writer.delete_documents([document])
                    writer.purge_orphans()

        thread = threading.Thread(target=index)
        thread.start()
        try:
            with Reader.open(tmp_path) as reader:
                source = StoreCandidates(reader)
                for _ in range(60):
                    hits = ask(source, "automobile beginning", limit=50).hits
                    assert any(hit.documents[0].path == b"first.txt" for hit in hits)
                    assert all("car" in hit.snippet or "cat" in hit.snippet for hit in hits)
        finally:
            stop.set()
            thread.join()


def test_similarities_are_unknown_without_a_vector(library: Writer, source: StoreCandidates) -> None:
    root = library.roots()[0].root_id
    add_file(library, root, "new.txt", "words only so far")
    ids = np.array([row[0] for row in library.db.execute("SELECT chunk_id FROM chunks ORDER BY chunk_id")], np.int64)
    with source.snapshot():
        cosines = source.similarities(ids, ENCODER.encode_all(["car"])[0][0])
    assert np.isnan(cosines[-1]) and not np.isnan(cosines[:-1]).any()
    assert found(source, "words only so far")[0] == "new.txt"


@pytest.mark.parametrize("small", [0, 10_000])
@pytest.mark.parametrize("query", ["common word", "common -excluded", "folder:old common"])
def test_a_filter_acts_before_the_limits_of_the_word_search(
    writer: Writer, root: int, source: StoreCandidates, monkeypatch: pytest.MonkeyPatch, small: int, query: str
) -> None:
    monkeypatch.setattr(candidates, "SMALL_SCOPE_CHUNKS", small)
    monkeypatch.setattr(lexical, "CANDIDATES", 5)
    with writer.transaction():
        add_file(writer, root, "old/wanted.txt", "a common word of old, among others that make it long", mtime_ns=5)
        for number in range(50):
            add_file(writer, root, f"new/{number}.txt", f"common word {number}", "excluded", mtime_ns=100)
    filters = Filters(before_ns=50) if query == "common word" else NO_FILTERS
    assert found(source, query, mode="words", filters=filters) == ["old/wanted.txt"]


def test_in_a_narrow_scope_too_words_must_occur(library: Writer, source: StoreCandidates) -> None:
    assert found(source, "invoice folder:pets", mode="words") == []
    assert found(source, "gardening folder:work", mode="words") == ["work/other.txt"]


@pytest.mark.parametrize("on_disk", ["NFC", "NFD"])
@pytest.mark.parametrize("asked", ["NFC", "NFD"])
def test_a_folder_is_found_in_either_spelling_of_its_letters(
    writer: Writer, root: int, source: StoreCandidates, on_disk: str, asked: str
) -> None:
    add_file(writer, root, unicodedata.normalize(on_disk, "Bücher/a.txt"), "a word")
    add_file(writer, root, "other/b.txt", "a word")
    filters = Filters(folders=(unicodedata.normalize(asked, "/home/ann/Bücher"),))
    paths = found(source, "word", mode="words", filters=filters)
    assert paths == [unicodedata.normalize(on_disk, "Bücher/a.txt")]
