"""Disk weights in the program: kept in the cache folder, shared by all commands, listed and removed."""

import json
import shutil
from pathlib import Path

import pytest

from app import cli

TINY = Path(__file__).parent.parent / "goldens" / "tiny_bert"


@pytest.fixture
def place(tmp_path: Path) -> list[str]:
    return ["--data-dir", str(tmp_path / "data")]


def kept(tmp_path: Path) -> dict[str, int]:
    """The files of disk weights, and which files these are."""
    return {file.name: file.stat().st_ino for file in (tmp_path / "data" / "cache" / "weights").glob("*.weights")}


def test_indexer_search_and_doctor_share_one_file(
    tmp_path: Path, place: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / "animals.txt").write_text("The cat slept on the warm stove.\n", encoding="utf-8")
    assert cli.run(["index", str(documents), "--once", "--model", str(TINY), *place]) == 0
    made = kept(tmp_path)
    assert [name[: len("tiny_bert-int8-")] for name in made] == ["tiny_bert-int8-"]
    capsys.readouterr()
    assert cli.run(["search", "sleeping feline", "--mode", "meaning", "--json", *place]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert len(answer["hits"]) == 1
    assert cli.run(["embed", "a text", "--model", str(TINY), *place]) == 0
    assert kept(tmp_path) == made
    capsys.readouterr()
    cli.run(["doctor", "--json", *place])
    facts = json.loads(capsys.readouterr().out)["disk_weights"]["facts"]
    assert facts["files"] == 1 and facts["bytes"] > 50_000
    assert kept(tmp_path) == made


def test_the_bundled_model_needs_none(tmp_path: Path, place: list[str]) -> None:
    assert cli.run(["embed", "a text", *place]) == 0
    assert not (tmp_path / "data" / "cache" / "weights").exists()


def test_the_files_are_listed_and_removed(tmp_path: Path, place: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "a model"
    shutil.copytree(TINY, model)
    for precision in ("fp32", "int8"):
        assert cli.run(["embed", "a text", "--model", str(model), "--precision", precision, *place]) == 0
    capsys.readouterr()
    assert cli.run(["models", "cache", "--json", *place]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["model"], row["precision"]) for row in rows] == [("a model", "fp32"), ("a model", "int8")]
    assert all(row["source"] == str(model / "model.safetensors") for row in rows)
    assert cli.run(["models", "cache", *place]) == 0
    assert "a model fp32" in capsys.readouterr().out
    assert cli.run(["models", "cache", "--clear", "--json", *place]) == 0
    assert json.loads(capsys.readouterr().out) == {"freed_bytes": sum(row["bytes"] for row in rows)}
    assert not kept(tmp_path)
    assert cli.run(["models", "cache", "--clear", *place]) == 0
    assert "0.0 MB" in capsys.readouterr().out
