"""A model that was imported is found by its name wherever a model is named: indexing, searching, embedding, doctor."""

import json
from pathlib import Path

import pytest

import resources
from app import cli

NAME = "all-MiniLM-L6-v2-published"


def test_a_folder_is_indexed_and_searched_with_an_imported_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ["--data-dir", str(tmp_path / "data")]
    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / "animals.txt").write_text("The cat slept on the warm stove.\n", encoding="utf-8")
    (documents / "money.txt").write_text("The invoice is due within a fortnight.\n", encoding="utf-8")

    assert cli.run(["models", "import", str(resources.path("models", "all-MiniLM-L6-v2")), *place]) == 0
    assert cli.run(["index", str(documents), "--once", "--model", NAME, *place]) == 0
    capsys.readouterr()
    assert cli.run(["search", "sleeping feline", "--mode", "meaning", "--json", *place]) == 0
    assert json.loads(capsys.readouterr().out)["hits"][0]["path"].endswith("animals.txt")
    assert cli.run(["status", "--json", *place]) == 0
    assert json.loads(capsys.readouterr().out)["model"] == NAME

    (tmp_path / "data" / "settings.toml").write_text(f'model = "{NAME}"\n', encoding="utf-8")
    assert cli.run(["doctor", "--json", *place]) == 0
    assert NAME in json.loads(capsys.readouterr().out)["model"]["message"]
