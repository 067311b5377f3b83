"""Arguments that cannot be meant: exit code 2 and a sentence that says what would be right."""

from pathlib import Path

import pytest

from app import cli

EMPTY = "it is empty"
WORKERS = "not a number from 1 to 256"


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--data-dir", "", "status"], EMPTY),
        (["status", "--data-dir", ""], EMPTY),
        (["models", "list", "--data-dir", " "], EMPTY),
        (["index", ""], EMPTY),
        (["index", "--forget", ""], EMPTY),
        (["index", ".", "--model", ""], EMPTY),
        (["search", "cat", "--folder", ""], EMPTY),
        (["eval", ""], EMPTY),
        (["eval", ".", "--model", ""], EMPTY),
        (["embed", "x", "--out", ""], EMPTY),
        (["embed", "x", "--model", ""], EMPTY),
        (["models", "import", ""], EMPTY),
        (["models", "verify", ""], EMPTY),
        (["models", "convert", "", "out"], EMPTY),
        (["models", "convert", "in", ""], EMPTY),
        (["index", ".", "--workers", "0"], WORKERS),
        (["index", ".", "--workers", "257"], WORKERS),
        (["index", ".", "--workers", "99999"], WORKERS),
        (["index", ".", "--workers", "-1"], WORKERS),
        (["index", ".", "--workers", "two"], WORKERS),
        (["embed", "x", "--workers", "99999"], WORKERS),
        (["embed", "x", "--workers", "9" * 5000], WORKERS),
        (["search", "cat", "-n", "0"], "'0' is not a number from 1 to"),
        (["search", "cat", "-n", "abc"], "'abc' is not a number from 1 to"),
        (["search", "cat", "-n", "²"], "is not a number from 1 to"),
        (["search", "cat", "--after", "soon"], "'soon' is not a date: write it as 2024, 2024-05 or 2024-05-17"),
        (["search", "cat", "--after", ""], "is not a date"),
        (["search", "cat", "--before", "2024-13"], "'2024-13' is not a date"),
        (["search", "cat", "--type", ",."], "',.' names no type"),
    ],
)
def test_it_is_wrong_usage_with_a_sentence(
    argv: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("INKLING_DATA_DIR", str(tmp_path / "data"))
    with pytest.raises(SystemExit) as ended:
        cli.run(argv)
    assert ended.value.code == 2
    printed = capsys.readouterr()
    assert words in printed.err and "usage: inkling" in printed.err and not printed.out
    assert list(tmp_path.iterdir()) == []
