from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.search_service import SearchRequest, SearchService
from engine.errors import EngineError
from indexer.errors import IndexerError, StoreError
from indexer.store.writer import Writer
from tests.indexer.store.building import ToyEncoder, add_file, embed_pending


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    with Writer.open(tmp_path) as writer:
        root = writer.add_root(b"/home/ann").root_id
        add_file(
            writer,
            root,
            "cars/repair.txt",
            "How to repair a car engine",
            "Change the oil of the car first",
            title="Repair",
        )
        add_file(writer, root, "pets/cat.md", "The cat sleeps on the sofa all day", mtime_ns=1_700_000_000 * 10**9)
        add_file(writer, root, b"broken\xff\nname.txt", "A bird in the hand")
        embed_pending(writer)
    return tmp_path


@pytest.fixture
def service(data_dir: Path) -> Iterator[SearchService]:
    with SearchService(data_dir, encoder=ToyEncoder()) as opened:
        yield opened


def test_a_hit_has_all_that_scripts_are_promised(service: SearchService) -> None:
    response = service.search(SearchRequest("automobile oil", limit=1))
    found = json.loads(json.dumps(response.as_json()))
    assert set(found) == {"query", "took_ms", "stages_ms", "hits"}
    hit = found["hits"][0]
    assert {
        "path",
        "title",
        "score",
        "page",
        "line",
        "start_char",
        "end_char",
        "snippet",
        "highlights",
        "passage",
    } <= set(hit)
    assert (hit["path"], hit["title"]) == ("/home/ann/cars/repair.txt", "Repair")
    assert hit["passage"] == "Change the oil of the car first"
    assert [hit["snippet"][start:end] for start, end in hit["highlights"]] == ["oil"]
    assert "path_bytes" not in hit


def test_a_name_that_is_no_utf8_comes_with_its_bytes(service: SearchService) -> None:
    response = service.search(SearchRequest("bird", mode="words"))
    assert os.fsencode(response.hits[0].path) == b"/home/ann/broken\xff\nname.txt"
    shown = response.as_json()["hits"][0]
    assert shown["path"] == "/home/ann/broken\ufffd\nname.txt"
    assert shown["path_bytes"] == "L2hvbWUvYW5uL2Jyb2tlbv8KbmFtZS50eHQ="


def test_the_narrowing_of_a_request_holds(service: SearchService) -> None:
    def paths(request: SearchRequest) -> set[str]:
        return {Path(hit.path).name for hit in service.search(request).hits}

    assert paths(SearchRequest("car cat bird", types=(".MD",))) == {"cat.md"}
    assert paths(SearchRequest("car cat bird", folder="/home/ann/cars")) == {"repair.txt"}
    assert paths(SearchRequest("car cat bird", folder="cars")) == {"repair.txt"}
    assert paths(SearchRequest("car cat bird", after="2020")) == {"cat.md"}
    assert "cat.md" not in paths(SearchRequest("car cat bird", before="2020-01-31"))


def test_a_date_that_is_none_is_explained(service: SearchService) -> None:
    with pytest.raises(EngineError, match="'tomorrow' is not a date"):
        service.search(SearchRequest("car", after="tomorrow"))


def test_words_do_not_load_the_model(data_dir: Path) -> None:
    with SearchService(data_dir) as service:
        assert service.search(SearchRequest("sofa", mode="words")).hits[0].path.endswith("cat.md")


def test_without_its_model_words_are_searched_and_it_is_said(data_dir: Path) -> None:
    with SearchService(data_dir) as service:
        response = service.search(SearchRequest("sofa"))
        assert [Path(hit.path).name for hit in response.hits] == ["cat.md"]
        assert response.note.startswith("Only words were searched")
        with pytest.raises(EngineError, match="model"):
            service.search(SearchRequest("sofa", mode="meaning"))


def test_no_index_is_a_sentence(tmp_path: Path) -> None:
    with SearchService(tmp_path) as service, pytest.raises(StoreError, match="no index"):
        service.search(SearchRequest("car"))


def test_before_anything_is_embedded_words_are_searched(tmp_path: Path) -> None:
    with Writer.open(tmp_path) as writer:
        add_file(writer, writer.add_root(b"/r").root_id, "a.txt", "a car")
    with SearchService(tmp_path) as service:
        response = service.search(SearchRequest("car"))
        assert len(response.hits) == 1 and "only words" in response.note


def test_a_new_index_file_is_opened_by_itself(data_dir: Path, service: SearchService) -> None:
    assert service.search(SearchRequest("sofa", mode="words")).hits
    for file in data_dir.glob("index.db*"):
        file.unlink()
    with Writer.open(data_dir) as writer:
        add_file(writer, writer.add_root(b"/r").root_id, "new.txt", "a sofa made of words")
    assert [hit.path for hit in service.search(SearchRequest("sofa", mode="words")).hits] == ["/r/new.txt"]


def test_an_excerpt_shows_the_passage_in_its_document(service: SearchService) -> None:
    hit = service.search(SearchRequest("automobile oil", limit=1)).hits[0]
    excerpt = service.excerpt(hit.document_id, hit.start_char, hit.end_char, "oil")
    assert excerpt.text == "How to repair a car engine\nChange the oil of the car first"
    assert excerpt.text[slice(*excerpt.passage)] == hit.passage
    assert [excerpt.text[start:end] for start, end in excerpt.highlights] == ["oil"]
    assert not excerpt.cut_before and not excerpt.cut_after
    with pytest.raises(IndexerError, match="no longer"):
        service.excerpt(10**6, 0, 1)


def test_nonsense_finds_only_weak_hits_and_sense_strong_ones(service: SearchService) -> None:
    for query in ("vfzz", "mnop qrrr"):
        assert all(hit.weak for hit in service.search(SearchRequest(query)).hits)
    for query in ("feline", "car", "how to repair an automobile", '"the cat"'):
        assert not service.search(SearchRequest(query)).hits[0].weak
    assert not any(hit.weak for hit in service.search(SearchRequest("sofa", mode="words")).hits)
