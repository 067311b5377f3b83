from __future__ import annotations

import json
from pathlib import Path

import pytest

from app import cli
from indexer.store.writer import Writer
from tests.indexer.store.building import add_file


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    with Writer.open(tmp_path) as writer:
        root = writer.add_root(b"/home/ann").root_id
        add_file(writer, root, "cat.md", "The cat sleeps on the sofa", title="About cats")
        add_file(writer, root, "dog.txt", "The dog sleeps on the floor")
    return tmp_path


def run(data_dir: Path, *arguments: str) -> int:
    return cli.run(["search", "--data-dir", str(data_dir), *arguments])


def test_hits_are_printed_for_people(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(data_dir, "cat", "--mode", "words") == 0
    printed = capsys.readouterr()
    assert printed.out == " 1. About cats\n    /home/ann/cat.md, line 1\n    The cat sleeps on the sofa\n\n"
    assert printed.err == ""


def test_json_is_one_object(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(data_dir, "sleeps", "sofa", "--mode", "words", "--json", "-n", "1") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["query"] == "sleeps sofa"
    assert [hit["path"] for hit in found["hits"]] == ["/home/ann/cat.md"]


def test_nothing_found_is_no_error(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(data_dir, "zebra", "--mode", "words") == 0
    assert capsys.readouterr().out == "Nothing found.\n"


def test_types_and_folders_narrow(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(data_dir, "sleeps", "--mode", "words", "--type", "txt,pdf", "--folder", "/home/ann", "--json") == 0
    assert [hit["path"] for hit in json.loads(capsys.readouterr().out)["hits"]] == ["/home/ann/dog.txt"]


def test_known_trouble_is_a_sentence(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(data_dir / "none", "cat", "--mode", "words") == 1
    assert "no index" in capsys.readouterr().err
