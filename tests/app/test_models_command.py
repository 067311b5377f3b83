"""`inkling models`: what it prints, what it leaves behind, and how it ends."""

import io
import json
import shutil
import zipfile
from pathlib import Path

import pytest

from app import cli
from engine.catalog import BUNDLED_MODELS
from engine.record import Record

GOLDENS = Path(__file__).parent.parent / "goldens"
TINY = GOLDENS / "tiny_bert"


@pytest.fixture
def data(tmp_path: Path) -> str:
    return str(tmp_path / "data")


def megabytes(folder: Path) -> str:
    return f"{sum(file.stat().st_size for file in folder.rglob('*') if file.is_file()) / 1e6:.1f}"


def test_list_shows_what_is_here_first(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--data-dir", data, "models", "import", str(TINY)]) == 0
    capsys.readouterr()
    assert cli.run(["--data-dir", data, "models", "list", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert list(rows)[:2] == ["all-MiniLM-L6-v2", "tiny_bert"]
    assert rows["all-MiniLM-L6-v2"]["bundled"] and rows["tiny_bert"]["path"].startswith(data)
    assert rows["bge-small-en-v1.5"]["path"] is None and rows["bge-m3"]["computed"]
    assert cli.run(["--data-dir", data, "models", "list"]) == 0
    heads, first, second, *others = capsys.readouterr().out.splitlines()
    assert heads.split() == ["model", "dim", "tokens", "MB", "precision", "languages", "licence", "where"]
    size = megabytes(BUNDLED_MODELS / "all-MiniLM-L6-v2")
    assert first.split() == ["all-MiniLM-L6-v2", "384", "256", size, "int8", "en", "Apache-2.0", "here"]
    assert len(others) == len(rows) - 2
    assert second.split() == ["tiny_bert", "64", "48", megabytes(Path(data, "models", "tiny_bert")), "int8", "imported"]


def test_list_tells_what_is_known_of_an_import(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--data-dir", data, "models", "import", str(TINY), "--name", "bad", "--no-measure"]) == 0
    folder = Path(data, "models", "tiny")
    shutil.copytree(Path(data, "models", "bad"), folder)
    Record("OWNER/tiny", "0123456789" * 4).write(folder)
    Path(data, "models", "bad", "config.json").write_text("{}")
    capsys.readouterr()
    assert cli.run(["--data-dir", data, "models", "list"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert lines["tiny"].endswith("imported from OWNER/tiny@0123456") and " int8 " in lines["tiny"]
    assert lines["bad"].endswith("broken: `inkling models verify` says why")
    assert cli.run(["--data-dir", data, "models", "list", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    found = {key: rows["tiny"][key] for key in ("source", "revision", "bytes", "dim", "precision", "problem")}
    assert found == {
        "source": "OWNER/tiny", "revision": "0123456789" * 4, "bytes": size, "dim": 64, "precision": "int8",
        "problem": None,
    }  # fmt: skip
    assert "model_type" in rows["bad"]["problem"] and len({frozenset(row) for row in rows.values()}) == 1


def test_an_import_may_be_given_a_name(tmp_path: Path, data: str, capsys: pytest.CaptureFixture[str]) -> None:
    bring = ["--data-dir", data, "models", "import", "--no-measure"]
    assert cli.run([*bring, str(TINY), "--name", "größer.2"]) == 0
    archive = shutil.make_archive(str(tmp_path / "one"), "zip", GOLDENS, "tiny_bert")
    assert cli.run([*bring, archive, "--name", "Other_one", "--pack", "--json"]) == 0
    assert '"name": "Other_one"' in capsys.readouterr().out
    assert sorted(path.name for path in Path(data, "models").iterdir()) == ["Other_one", "größer.2"]
    assert cli.run(["--data-dir", data, "embed", "--model", "größer.2", "--workers", "1", "x"]) == 0
    assert cli.run([*bring, str(TINY), "--name", "Other_one"]) == 1
    assert "exists already" in capsys.readouterr().err
    for name in (".hidden", "a/b", "..", "a b", "x" * 101, "dot.", "-x"):
        assert cli.run([*bring, str(TINY), f"--name={name}"]) == 1
        assert "is no name for a model" in capsys.readouterr().err
    for name in ("all-minilm-l6-v2", "bge-m3"):
        assert cli.run([*bring, str(TINY), "--name", name]) == 1
        assert "is the name of another model" in capsys.readouterr().err


def test_a_name_that_says_how_to_use_a_model_is_kept(
    tmp_path: Path, data: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(TINY, tmp_path / "e5-small-v2", ignore=shutil.ignore_patterns("config_sentence*"))
    bring = ["--data-dir", data, "models", "import", "--no-measure", str(tmp_path / "e5-small-v2")]
    assert cli.run([*bring, "--name", "mine"]) == 1
    assert "with which prefixes and widths e5-small-v2 is used" in capsys.readouterr().err
    assert cli.run([*bring, "--name", "e5-small-v2"]) == 0
    shutil.copytree(TINY, tmp_path / "gte-small", ignore=shutil.ignore_patterns("modules.json"))
    assert cli.run([*bring[:-1], str(tmp_path / "gte-small"), "--name", "mine"]) == 1
    assert "under the name mine nothing would say how to pool" in capsys.readouterr().err


@pytest.mark.parametrize(("inner", "meant"), [("sub", True), ("snapshots/0123", True), ("1_Pooling", False)])
def test_a_model_within_the_folder_that_was_given_is_pointed_at(
    tmp_path: Path, data: str, inner: str, meant: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(TINY if meant else TINY / "1_Pooling", tmp_path / "outer" / inner)
    for command in (["models", "import", str(tmp_path / "outer")], ["embed", "--model", str(tmp_path / "outer"), "x"]):
        assert cli.run(["--data-dir", data, *command]) == 1
        said = capsys.readouterr().err
        assert "holds no config.json" in said and (f"Did you mean {tmp_path / 'outer' / inner}?" in said) == meant
    if meant:
        file = tmp_path / "outer" / inner / "model.safetensors"
        assert cli.run(["--data-dir", data, "embed", "--model", str(file), "x"]) == 1
        said = capsys.readouterr().err
        assert f"is a file and no folder, so it is no model folder. Did you mean {file.parent}?" in said


def test_a_folder_of_other_weights_says_which(tmp_path: Path, data: str, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(TINY, tmp_path / "model", ignore=shutil.ignore_patterns("*.safetensors"))
    (tmp_path / "model" / "onnx").mkdir()
    (tmp_path / "model" / "onnx" / "model.onnx").write_bytes(b"onnx")
    assert cli.run(["--data-dir", data, "models", "import", str(tmp_path / "model")]) == 1
    assert "model.onnx is ONNX; this program reads model.safetensors only" in capsys.readouterr().err


def test_pull_knows_what_was_imported(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--data-dir", data, "models", "import", str(TINY), "--no-measure"]) == 0
    capsys.readouterr()
    assert cli.run(["--data-dir", data, "models", "pull", "tiny_bird"]) == 1
    assert "Did you mean tiny_bert? Models here: all-MiniLM-L6-v2, tiny_bert." in capsys.readouterr().err
    assert cli.run(["--data-dir", data, "models", "pull", "tiny_bert"]) == 1
    assert "tiny_bert is here already, in " in capsys.readouterr().err


def test_an_imported_model_is_known_by_its_name(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--data-dir", data, "models", "--json", "import", str(TINY)]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["name"], answer["path"]) == ("tiny_bert", str(Path(data, "models", "tiny_bert")))
    assert answer["int8"]["kind"] == "vectors"
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


def test_archives_are_brought_in_like_folders(tmp_path: Path, data: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = shutil.make_archive(str(tmp_path / "both"), "zip", GOLDENS, "tiny_bert")
    with zipfile.ZipFile(file, "a") as out:
        for path in (GOLDENS / "static").iterdir():
            if path.is_file():
                out.write(path, f"static/{path.name}")
    assert cli.run(["--data-dir", data, "models", "import", file]) == 1
    assert "both.zip::FOLDER (there are static, tiny_bert)" in capsys.readouterr().err
    assert cli.run(["--data-dir", data, "models", "import", f"{file}::tiny_bert", "--pack", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["name"] == "tiny_bert" and answer["int8"]["worst"] > 0.999
    assert cli.run(["--data-dir", data, "models", "import", f"{file}::static", "--no-measure"]) == 0
    assert capsys.readouterr().out.count("\n") == 1
    for missing in ("nothing.zip", "nothing.zip::inner", str(tmp_path / "both.zip") + "::../static"):
        assert cli.run(["--data-dir", data, "models", "import", missing]) == 1
        assert capsys.readouterr().err.count("\n") == 1
    assert sorted(path.name for path in Path(data, "models").iterdir()) == ["static", "tiny_bert"]


def test_show_tells_what_is_to_be_known(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--data-dir", data, "models", "import", str(TINY)]) == 0
    capsys.readouterr()
    assert cli.run(["--data-dir", data, "models", "show", "tiny_bert"]) == 0
    shown = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert shown["name"] == "tiny_bert" and shown["architecture"].startswith("bert, ")
    assert shown["measured"].startswith("int8 against fp32: worst cosine 0.99") and "auto computes int8" in str(shown)
    assert cli.run(["--data-dir", data, "models", "show", "tiny_bert", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["path"] == str(Path(data, "models", "tiny_bert")) and values["measured"]["texts"] >= 64
    assert set(values["memory"]["weights"]) == {"fp32", "int8"}


@pytest.mark.parametrize("name", ["reranker_bert", "late_stanford", "static"])
def test_show_knows_every_kind(name: str, data: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--data-dir", data, "models", "show", str(GOLDENS / name)]) == 0
    assert "measured         never" in capsys.readouterr().out


def test_show_tells_of_a_known_model_that_is_not_here(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--data-dir", data, "models", "show", "Qwen3-Embedding-4B"]) == 0
    out = capsys.readouterr().out
    assert "`inkling models pull Qwen3-Embedding-4B` fetches it" in out and "may be cut to 1024, 768" in out
    assert cli.run(["--data-dir", data, "models", "show", "bge-m3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["path"] is None
    assert cli.run(["--data-dir", data, "models", "show", "nothing"]) == 1
    shutil.copytree(TINY, Path(data, "models", "bge-m3"))
    Path(data, "models", "bge-m3", "config.json").write_text("{}")
    assert cli.run(["--data-dir", data, "models", "show", "bge-m3"]) == 1, "it is here, and broken"


def test_remove_asks_or_is_told(
    data: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli.run(["--data-dir", data, "models", "import", str(TINY)]) == 0
    folder = Path(data, "models", "tiny_bert")
    assert cli.run(["--data-dir", data, "models", "remove", "tiny_bert"]) == 1 and folder.is_dir()
    assert "--yes" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin", Terminal("no\n"))
    assert cli.run(["--data-dir", data, "models", "remove", "tiny_bert"]) == 1 and folder.is_dir()
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    assert cli.run(["--data-dir", data, "models", "remove", "tiny_bert"]) == 0
    assert "Delete tiny_bert" in capsys.readouterr().err
    assert not list(Path(data, "models").iterdir())


def test_remove_keeps_what_is_not_its_own_or_in_use(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--data-dir", data, "models", "remove", "all-MiniLM-L6-v2", "--yes"]) == 1
    assert cli.run(["--data-dir", data, "models", "remove", str(TINY), "--yes"]) == 1 and TINY.is_dir()
    assert capsys.readouterr().err.count("not among the models that were fetched or brought in") == 2
    assert cli.run(["--data-dir", data, "models", "import", str(TINY)]) == 0
    Path(data, "settings.toml").write_text('model = "tiny_bert"\n')
    capsys.readouterr()
    assert cli.run(["--data-dir", data, "models", "remove", "tiny_bert", "--yes"]) == 1
    assert "the model that the settings name" in capsys.readouterr().err
    Path(data, "settings.toml").write_text('model = "gone"\n')
    assert cli.run(["--data-dir", data, "models", "remove", "tiny_bert", "--yes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bytes"] > 300_000


def test_remove_takes_the_disk_weights_of_the_model_along(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    cli.run(["--data-dir", data, "models", "cache"])
    assert "No model is laid out" in capsys.readouterr().out
    assert cli.run(["--data-dir", data, "models", "import", str(TINY)]) == 0
    assert cli.run(["--data-dir", data, "embed", "--model", "tiny_bert", "tea"]) == 0
    capsys.readouterr()
    cli.run(["--data-dir", data, "models", "cache", "--json"])
    assert [file["model"] for file in json.loads(capsys.readouterr().out)] == ["tiny_bert"]
    assert cli.run(["--data-dir", data, "models", "remove", "tiny_bert", "--yes"]) == 0
    capsys.readouterr()
    cli.run(["--data-dir", data, "models", "cache", "--json"])
    assert json.loads(capsys.readouterr().out) == []


class Terminal(io.StringIO):
    """Somebody who types an answer."""

    def isatty(self) -> bool:
        return True
