"""`inkling models`: what it prints, what it leaves behind, and how it ends."""

import json
import shutil
from pathlib import Path

import pytest

from app import cli
from engine.catalog import BUNDLED_MODELS

GOLDENS = Path(__file__).parent.parent / "goldens"
TINY = GOLDENS / "tiny_bert"


@pytest.fixture
def data(tmp_path: Path) -> str:
    return str(tmp_path / "data")


def test_list_shows_what_is_here_first(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--data-dir", data, "models", "import", str(TINY)]) == 0
    capsys.readouterr()
    assert cli.run(["--data-dir", data, "models", "list", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert list(rows)[:2] == ["all-MiniLM-L6-v2", "tiny_bert"]
    assert rows["all-MiniLM-L6-v2"]["bundled"] and rows["tiny_bert"]["path"].startswith(data)
    assert rows["bge-small-en-v1.5"]["path"] is None and rows["bge-m3"]["computed"]
    assert cli.run(["--data-dir", data, "models", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(rows) and lines[0].startswith("all-MiniLM-L6-v2") and lines[0].endswith("here")


def test_an_imported_model_is_known_by_its_name(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--data-dir", data, "models", "--json", "import", str(TINY)]) == 0
    assert json.loads(capsys.readouterr().out) == {"name": "tiny_bert", "path": str(Path(data, "models", "tiny_bert"))}
    assert cli.run(["--data-dir", data, "models", "verify", "tiny_bert"]) == 0
    assert capsys.readouterr().out == "tiny_bert: intact\n"
    assert cli.run(["--data-dir", data, "models", "import", str(TINY)]) == 1
    assert "exists already" in capsys.readouterr().err


def test_verify_looks_at_everything_that_is_here(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    broken = Path(data, "models", "broken")
    shutil.copytree(TINY, broken)
    with (broken / "model.safetensors").open("r+b") as file:
        file.truncate(200_000)
    assert cli.run(["--data-dir", data, "models", "verify", "--json"]) == 1
    out, err = capsys.readouterr()
    rows = json.loads(out)
    assert [(row["name"], row["state"]) for row in rows] == [("all-MiniLM-L6-v2", "genuine"), ("broken", "broken")]
    assert "cut off" in rows[1]["message"] and err == "inkling: 1 of 2 models cannot be used: broken.\n"


def test_convert_packs_into_a_new_folder(tmp_path: Path, data: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert cli.run(["--data-dir", data, "models", "convert", str(TINY), str(out), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer == {"path": str(out), "bytes": (out / "model.safetensors").stat().st_size}
    assert cli.run(["--data-dir", data, "models", "convert", str(TINY), str(out)]) == 1
    assert cli.run(["--data-dir", data, "models", "convert", str(BUNDLED_MODELS / "all-MiniLM-L6-v2"), str(out)]) == 1
    assert "packed already" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["import"], ["convert", "one"], ["fetch", "x"]])
def test_wrong_usage_ends_with_two(data: str, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.run(["--data-dir", data, "models", *arguments])
    assert caught.value.code == 2 and "usage: inkling models" in capsys.readouterr().err


def test_a_folder_that_is_no_model_is_a_sentence(tmp_path: Path, data: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--data-dir", data, "models", "import", str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and "holds no config.json and no modules.json" in err
