"""`inkling embed`: its formats, its inputs, and the numbers it prints."""

import io
import json
import subprocess
import sys
import tracemalloc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from app import cli, text_input
from engine import Encoder
from tests.conftest import ROOT

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
    monkeypatch.setattr(sys, "stdin", Input(b"first line\r\nzweite Zeile\n\n end"))
    assert embed(*arguments, data=tmp_path) == 0
    found = rows(capfdbinary.readouterr().out.decode())
    assert [row["text"] for row in found] == ["first line", "zweite Zeile", "", " end"]


def test_no_lines_give_no_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Input(b""))
    out = tmp_path / "out.npy"
    assert embed("--format", "npy", "--out", str(out), data=tmp_path) == 0
    assert np.load(out).shape == (0, 64)


def test_json_lines_keep_their_ids(
    tmp_path: Path, encoder: Encoder, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    lines = '\ufeff{"id": 7, "text": "größer"}\n\n{"text": "one", "other": true}\r\n{"id": {"a": null}, "text": ""}'
    monkeypatch.setattr(sys, "stdin", Input(lines.encode()))
    assert embed("--input", "jsonl", data=tmp_path) == 0
    found = rows(capfdbinary.readouterr().out.decode())
    vectors = [row.pop("vector") for row in found]
    assert found == [{"id": 7, "text": "größer"}, {"text": "one"}, {"id": {"a": None}, "text": ""}]
    np.testing.assert_array_equal(np.array(vectors, np.float32), encoder.encode(["größer", "one", ""]))


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("{", "Standard input, line 3 is not JSON"),
        ("[1]", "Standard input, line 3 is no object with a text"),
        ('{"text": null}', "Standard input, line 3 is no object with a text"),
        ('{"id": 3}', "Standard input, line 3 is no object with a text"),
    ],
)
def test_a_bad_line_is_a_sentence_with_its_number(
    line: str,
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "stdin", Input(f'{{"text": "a"}}\n\n{line}\n{{"text": "b"}}\n'.encode()))
    assert embed("--input", "jsonl", "--out", str(tmp_path / "out"), data=tmp_path) == 1
    assert sentence in capsys.readouterr().err


def test_files_are_lines_json_lines_or_one_text_each(tmp_path: Path, encoder: Encoder) -> None:
    one, two, out = tmp_path / "one.txt", tmp_path / "two.txt", tmp_path / "out"
    one.write_bytes(b"first\nsecond")
    two.write_text('{"text": "third"}')
    files = ("--file", str(one), "--file", str(two), "--out", str(out))
    assert embed(*files, data=tmp_path) == 0
    assert [row["text"] for row in rows(out.read_text())] == ["first", "second", '{"text": "third"}']
    assert embed(*files, "--input", "whole", data=tmp_path) == 0
    found = rows(out.read_text())
    assert [row["file"] for row in found] == [str(one), str(two)] and "text" not in found[0]
    wanted = encoder.encode(["first\nsecond", '{"text": "third"}'])
    np.testing.assert_array_equal(np.array([row["vector"] for row in found], np.float32), wanted)
    assert embed("--file", str(two), "--input", "jsonl", "--out", str(out), data=tmp_path) == 0
    assert [row["text"] for row in rows(out.read_text())] == ["third"]


@pytest.mark.parametrize(
    ("kind", "content", "place"),
    [
        ("lines", b"first\nsec\xffond\n", ", line 2 is not UTF-8 text (byte 3)"),
        ("lines", "UTF-16".encode("utf-16"), ", line 1 is not UTF-8 text (byte 0)"),
        ("jsonl", b'{"text": "a"}\n{"text": "\xe9"}', ", line 2 is not UTF-8 text (byte 10)"),
        ("whole", b"first\nsec\xffond\n", " is not UTF-8 text (byte 9)"),
        ("whole", b"x" * 1234 + b"\xc3", " is not UTF-8 text (byte 1,234)"),
    ],
)
def test_what_is_no_text_is_refused_where_it_begins(
    kind: str,
    content: bytes,
    place: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "file.bin"
    file.write_bytes(content)
    monkeypatch.setattr(sys, "stdin", Input(content))
    for source, arguments in ((str(file), ["--file", str(file)]), ("Standard input", [])):
        assert embed(*arguments, "--input", kind, "--out", str(tmp_path / "out"), data=tmp_path) == 1
        assert capsys.readouterr().err.startswith(f"inkling: {source}{place}; save text of another encoding")


def test_npy_without_ids_says_so_and_keeps_the_order(
    tmp_path: Path, encoder: Encoder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out, options = tmp_path / "out.npy", ("--input", "jsonl", "--format", "npy", "--out")
    for lines, said in (('{"text": "one"}\n{"id": 3, "text": "two"}', "npy holds no ids"), ('{"text": "one"}', "")):
        monkeypatch.setattr(sys, "stdin", Input(lines.encode()))
        assert embed(*options, str(out), data=tmp_path) == 0
        np.testing.assert_array_equal(np.load(out), encoder.encode(["one", "two"][: lines.count("text")]))
        err = capsys.readouterr().err
        assert said in err and bool(err) == bool(said)


def test_whole_files_go_in_portions_of_bounded_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_input, "PORTION_CHARS", 10)
    for i in range(5):
        (tmp_path / str(i)).write_text("x" * (4 + 16 * (i == 2)))
    portions = list(text_input.from_files([tmp_path / str(i) for i in range(5)], "whole"))
    assert [[len(item.text) for item in portion] for portion in portions] == [[4, 4], [20], [4, 4]]


def test_lines_are_answered_as_they_come_and_longer_than_a_read_are_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = [b"a\nb", b"c\n", b"d" * 10, b"d" * 10, b"\ne\n", b"f"]

    class Slow:
        def read1(self, size: int) -> bytes:
            return reads.pop(0) if reads else b""

    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=Slow()))
    found = text_input.from_standard_input("lines")
    assert [item.text for item in next(found)] == ["a"] and len(reads) == 5
    rest = [[item.text for item in portion] for portion in found]
    assert rest == [["bc"], ["d" * 20, "e"], ["f"]]


def test_dim_max_tokens_and_prompt_are_passed_on(tmp_path: Path) -> None:
    out = tmp_path / "out.npy"
    options = ["--dim", "16", "--force-dim", "--max-tokens", "8", "--prompt", "find: ", "--format", "npy"]
    assert embed("one two three four five six seven", *options, "--out", str(out), data=tmp_path) == 0
    with Encoder.load(TINY, workers=1, dim=16, force_dim=True, max_tokens=8) as encoder:
        wanted = encoder.encode(["one two three four five six seven"], prompt="find: ")
    np.testing.assert_array_equal(np.load(out), wanted)


def test_long_texts_come_with_their_windows(tmp_path: Path, encoder: Encoder) -> None:
    out, texts = tmp_path / "out", ["x " * 200, "short"]
    assert embed(*texts, "--long", "--overlap", "3", "--out", str(out), data=tmp_path) == 0
    for row, wanted in zip(rows(out.read_text()), encoder.encode_long(texts, overlap=3), strict=True):
        np.testing.assert_array_equal(np.array(row["vector"], np.float32), wanted.vector)
        np.testing.assert_array_equal(np.array(row["windows"], np.float32), wanted.windows)
        assert (row["spans"], row["tokens"]) == (wanted.spans.tolist(), wanted.tokens.tolist())


@pytest.mark.parametrize("place", ["file", "standard output"])
def test_npy_of_many_portions_is_one_array(
    place: str,
    tmp_path: Path,
    encoder: Encoder,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    monkeypatch.setattr(text_input, "CHUNK_BYTES", 16)
    texts = [f"text number {i}" for i in range(50)]
    monkeypatch.setattr(sys, "stdin", Input("\n".join(texts).encode()))
    out = tmp_path / "out.npy"
    assert embed("--format", "npy", *(["--out", str(out)] if place == "file" else []), data=tmp_path) == 0
    found = np.load(out if place == "file" else io.BytesIO(capfdbinary.readouterr().out))
    np.testing.assert_array_equal(found, encoder.encode(texts))
    assert found.dtype == np.float32


def test_memory_does_not_grow_with_the_input(tmp_path: Path) -> None:
    source, out = tmp_path / "lines.txt", tmp_path / "out.npy"
    options = ["--input", "lines", "--format", "npy", "--out", str(out), "--dim", "2", "--force-dim"]

    def peak(count: int) -> int:
        source.write_text("\n".join(f"number {i} of many lines" for i in range(count)))
        tracemalloc.start()
        assert embed("--file", str(source), *options, data=tmp_path) == 0
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert np.load(out).shape == (count, 2)
        return found

    assert peak(40_000) < peak(12_000) * 1.2


def test_a_reader_that_leaves_early_hears_no_complaint(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "app", "--data-dir", str(tmp_path), "embed", "--model", str(TINY)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    ) as child:
        assert child.stdin is not None and child.stdout is not None and child.stderr is not None
        child.stdin.write(b"one\n")
        child.stdin.flush()
        assert json.loads(child.stdout.readline())["text"] == "one"  # answered although more may come
        child.stdout.close()
        child.stdin.write(b"two\n")
        child.stdin.close()
        assert child.stderr.read() == b""
    assert child.returncode == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["x", "--tokens", "--format", "npy"],
        ["x", "--tokens", "--long"],
        ["x", "--overlap", "3"],
        ["x", "--force-dim"],
        ["x", "--input", "lines"],
        ["x", "--dim", "64", "--tokens"],
        ["x", "--prompt", "p", "--role", "query"],
        ["x", "--file", "f"],
        ["x", "--role", "poet"],
        ["x", "--workers", "0"],
        [],
    ],
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
    assert embed("--file", str(tmp_path / "none"), data=tmp_path) == 1
    assert embed("--file", str(tmp_path), data=tmp_path) == 1
    assert embed("x", "--dim", "16", data=tmp_path) == 1
    assert embed("x", "--max-tokens", "99", data=tmp_path) == 1
    said = capsys.readouterr().err.splitlines()
    wanted = ["cannot be written", "no known model", *["cannot be read"] * 2, "not trained", "up to 48 tokens"]
    assert len(said) == len(wanted) and all(sentence in line for sentence, line in zip(wanted, said, strict=True))
