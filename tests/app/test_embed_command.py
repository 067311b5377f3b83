"""`inkling embed`: its formats, its inputs, and the numbers it prints."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app import cli
from engine import Encoder

TINY = Path(__file__).parent.parent / "goldens" / "tiny_bert"
TEXTS = ["one", "größer", ""]


@pytest.fixture
def encoder() -> Encoder:
    return Encoder.load(TINY, workers=1)


def embed(*arguments: str, data: Path) -> int:
    return cli.run(["--data-dir", str(data), "embed", "--model", str(TINY), "--workers", "1", *arguments])


class Input:
    """Standard input that holds given bytes."""

    def __init__(self, content: bytes, terminal: bool = False) -> None:
        self.buffer = io.BytesIO(content)
        self.isatty = lambda: terminal


def rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_every_float_comes_back_as_it_was(
    tmp_path: Path, encoder: Encoder, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert embed(*TEXTS, data=tmp_path) == 0
    found = rows(capfdbinary.readouterr().out.decode())
    assert [row["text"] for row in found] == TEXTS
    np.testing.assert_array_equal(np.array([row["vector"] for row in found], np.float32), encoder.encode(TEXTS))


def test_a_role_and_a_precision_are_passed_on(tmp_path: Path) -> None:
    out = tmp_path / "out.npy"
    assert (
        embed("tea", "--role", "query", "--precision", "fp32", "--format", "npy", "--out", str(out), data=tmp_path) == 0
    )
    with Encoder.load(TINY, precision="fp32", workers=1) as fp32:
        np.testing.assert_array_equal(np.load(out), fp32.encode(["tea"], role="query"))


def test_tokens_are_rows_with_their_ids(tmp_path: Path, encoder: Encoder) -> None:
    out = tmp_path / "out.jsonl"
    assert embed("one two", "--tokens", "--out", str(out), data=tmp_path) == 0
    (row,) = rows(out.read_text())
    (wanted,) = encoder.encode_tokens(["one two"])
    assert row["ids"] == wanted.ids.tolist()
    np.testing.assert_array_equal(np.array(row["vectors"], np.float32), wanted.vectors)


@pytest.mark.parametrize("arguments", [[], ["-"]])
def test_standard_input_is_one_text_a_line(
    tmp_path: Path,
    encoder: Encoder,
    arguments: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    monkeypatch.setattr(sys, "stdin", Input(b"first line\r\nzweite Zeile\n\n" + b"\xff end"))
    assert embed(*arguments, data=tmp_path) == 0
    found = rows(capfdbinary.readouterr().out.decode())
    assert [row["text"] for row in found] == ["first line", "zweite Zeile", "", "\ufffd end"]


def test_no_lines_give_no_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Input(b""))
    out = tmp_path / "out.npy"
    assert embed("--format", "npy", "--out", str(out), data=tmp_path) == 0
    assert np.load(out).shape == (0, 64)


@pytest.mark.parametrize(
    "arguments", [["x", "--tokens", "--format", "npy"], ["x", "--role", "poet"], ["x", "--workers", "0"], []]
)
def test_wrong_usage_ends_with_two(
    tmp_path: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", Input(b"", terminal=True))
    with pytest.raises(SystemExit) as caught:
        embed(*arguments, data=tmp_path)
    assert caught.value.code == 2 and "inkling embed: error:" in capsys.readouterr().err


def test_trouble_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert embed("x", "--out", str(tmp_path / "none" / "out"), data=tmp_path) == 1
    assert cli.run(["--data-dir", str(tmp_path), "embed", "x", "--model", "no-such-model"]) == 1
    first, second = capsys.readouterr().err.splitlines()
    assert "cannot be written" in first and "no known model" in second
