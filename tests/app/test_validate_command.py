"""`inkling validate`: what it compares, where it says the worst is, and what it takes for a reference."""

import json
import math
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app import cli
from engine import Encoder
from engine.folder import ModelFolder
from engine.options import available_precisions
from tests.engine.conftest import use_isa
from tests.goldens.reading import HERE, reference
from tests.goldens.texts import AWKWARD

TINY = HERE / "tiny_bert"
HAS_FULL = "int8-full" in available_precisions(ModelFolder.open(TINY))  # which is the processor's business
Rows = list[dict[str, Any]]


def golden_rows() -> Rows:
    """What the reference class made of the awkward texts, as lines of a reference file."""
    wanted = reference("tiny_bert")
    starts = wanted["starts"]
    return [
        {"text": AWKWARD[name], "ids": wanted["ids"][starts[i] : starts[i + 1]].tolist(), "vector": vector.tolist()}
        for i, (name, vector) in enumerate(zip(wanted["names"], wanted["vectors"], strict=True))
    ]


def write(file: Path, rows: Rows) -> Path:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def validate(data: Path, *arguments: str, model: Path = TINY) -> int:
    return cli.run(["--data-dir", str(data), "validate", "--model", str(model), *arguments])


def checks(out: str) -> dict[str, dict[str, Any]]:
    return {check["name"]: check for check in json.loads(out)["checks"]}


def test_a_golden_passes_and_the_numbers_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "reference.jsonl", golden_rows())
    assert validate(tmp_path, "--reference", str(file), "--json") == 0
    out = json.loads(capsys.readouterr().out)
    assert out["good"] is True
    ids, fp32, int8, *full = out["checks"]
    assert ids["verdict"] is fp32["verdict"] is int8["verdict"] is True
    assert [check["verdict"] for check in full] == [None] * HAS_FULL
    assert ids["values"] == {"texts": len(golden_rows()), "compared": len(golden_rows()) - 2, "different": 0}
    assert "2 with decomposed Hangul or kana" in ids["found"]
    assert 0 < fp32["values"]["largest"] <= 1e-5 and 0.99 < int8["values"]["worst_cosine"] < 1


def test_npz_says_the_same_as_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = golden_rows()
    ids = [np.array(row["ids"], np.int32) for row in rows]
    starts = np.cumsum([0, *map(len, ids)])
    texts, vectors = np.array([row["text"] for row in rows]), np.array([row["vector"] for row in rows])
    np.savez(tmp_path / "reference.npz", texts=texts, vectors=vectors, ids=np.concatenate(ids), starts=starts)
    assert validate(tmp_path, "--reference", str(write(tmp_path / "r.jsonl", rows)), "--json") == 0
    lines = capsys.readouterr().out
    assert validate(tmp_path, "--reference", str(tmp_path / "reference.npz"), "--json") == 0
    assert capsys.readouterr().out == lines


def test_roles_and_prompts_of_a_reference_are_heard(tmp_path: Path) -> None:
    with Encoder.load(TINY, precision="fp32", workers=1) as encoder:
        rows: Rows = []
        given: list[dict[str, Any]] = [{"role": "query"}, {"role": "document"}, {"prompt": "find: "}, {}]
        for options in given:
            (vector,), (ids,) = encoder.encode(["tea"], **options), encoder.token_ids(["tea"], **options)
            rows.append({"text": "tea", "vector": vector.tolist(), "ids": ids.tolist(), **options})
    assert validate(tmp_path, "--reference", str(write(tmp_path / "r.jsonl", rows))) == 0
    for row in rows:
        row.pop("role", None)
    assert validate(tmp_path, "--reference", str(write(tmp_path / "r.jsonl", rows))) == 1


def test_other_ids_are_found_first_and_placed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = golden_rows()
    number = next(i for i, row in enumerate(rows) if row["text"] == AWKWARD["query"])
    right = rows[number]["ids"][3]
    rows[number]["ids"][3] = 5
    rows[number + 1]["ids"] = rows[number + 1]["ids"][:-1]
    assert validate(tmp_path, "--reference", str(write(tmp_path / "r.jsonl", rows))) == 1
    out, err = capsys.readouterr()
    first = out.splitlines()[0]
    assert first.startswith("OFF ids: 2 of ") and f"first text {number + 1}, 'how do I renew my passp…'" in first
    assert f"token 3: {right} here, 5 in the reference" in first
    assert err == "inkling: tiny_bert does not compute as it should: ids.\n"


def test_the_worst_vector_is_found_and_placed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = golden_rows()
    rows[7]["vector"][11] += 0.01
    rows[9]["vector"] = [-x for x in rows[9]["vector"]]
    rows[9]["vector"][2] = math.copysign(5, rows[9]["vector"][2])
    file = write(tmp_path / "r.jsonl", rows)
    assert validate(tmp_path, "--reference", str(file), "--json", "--precision", "fp32") == 1
    worst = checks(capsys.readouterr().out)["vectors, fp32"]
    assert (worst["values"]["text"], worst["values"]["component"], worst["values"]["worst_text"]) == (9, 2, 9)
    assert worst["verdict"] is False and worst["values"]["worst_cosine"] < 0
    del rows[9]
    file = write(tmp_path / "r.jsonl", rows)
    assert validate(tmp_path, "--reference", str(file), "--json", "--precision", "fp32") == 1
    worst = checks(capsys.readouterr().out)["vectors, fp32"]["values"]
    assert (worst["text"], worst["component"], worst["row"]) == (7, 11, 0)
    assert worst["largest"] == pytest.approx(0.01, rel=0.1)
    assert validate(tmp_path, "--reference", str(file), "--precision", "fp32", "--bound", "0.02") == 0
    assert validate(tmp_path, "--reference", str(file), "--precision", "int8") == 0


def test_a_reference_without_ids_says_that_they_were_not_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{key: value for key, value in row.items() if key != "ids"} for row in golden_rows()]
    assert validate(tmp_path, "--reference", str(write(tmp_path / "r.jsonl", rows))) == 0
    assert capsys.readouterr().out.startswith("--  ids: the reference has none to compare\nok  vectors, fp32: ")


@pytest.mark.parametrize("name", ["tiny_bert", "reranker_bert", "late_pylate", "static"])
def test_without_a_reference_a_model_is_compared_with_itself(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert validate(tmp_path, "--json", model=HERE / name) == 0
    found = checks(capsys.readouterr().out)
    same, threads = "alone and in a batch", "1 and 2 workers"
    precisions = ("fp32", "int8", "int8-full")[: 2 + HAS_FULL]
    wanted = {f"{what}, {precision}" for precision in precisions for what in (same, threads, "kernels")}
    assert set(found) == wanted | {f"{precision} against fp32" for precision in precisions[1:]}
    assert all(check["verdict"] for name, check in found.items() if name != "int8-full against fp32")
    assert found[f"{same}, int8"]["values"]["largest"] == found[f"{threads}, fp32"]["values"]["largest"] == 0
    assert 0.95 <= found["int8 against fp32"]["values"]["top10"] <= 1
    assert found["kernels, fp32"]["values"]["text"] % 4 == 0


def test_packed_weights_are_validated_in_the_precision_that_they_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["--data-dir", str(tmp_path), "models", "convert", str(TINY), str(tmp_path / "packed")]) == 0
    capsys.readouterr()
    assert validate(tmp_path, "--json", model=tmp_path / "packed") == 0
    assert all(name.endswith(("int8", "int8-full")) for name in checks(capsys.readouterr().out))


def test_kernels_that_compute_something_else_are_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    encode = Encoder.encode

    def off(self: Encoder, texts: list[str], **options: Any) -> np.ndarray:
        vectors = encode(self, texts, **options)
        if self.isa != "reference" and len(texts) > 1:
            vectors[:, 5] += 0.01
        return vectors

    monkeypatch.setattr(Encoder, "encode", off)
    assert validate(tmp_path, "--json") == 1
    found = checks(capsys.readouterr().out)
    assert found["kernels, fp32"]["verdict"] is found["kernels, int8"]["verdict"] is False
    assert found["kernels, fp32"]["values"]["component"] == 5
    assert found["alone and in a batch, int8"]["verdict"] is False
    assert found["1 and 2 workers, int8"]["verdict"] is True


def test_int8_that_ranks_differently_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    encode, noise = Encoder.encode, np.random.default_rng(1)

    def off(self: Encoder, texts: list[str], **options: Any) -> np.ndarray:
        vectors = encode(self, texts, **options)
        spread = 0.0 if self.precision == "fp32" else 0.02
        return vectors + noise.normal(0, spread, vectors.shape).astype(np.float32)

    monkeypatch.setattr(Encoder, "encode", off)
    assert validate(tmp_path, "--json") == 1
    result = checks(capsys.readouterr().out)["int8 against fp32"]
    assert result["verdict"] is False and result["values"]["top10"] < 0.95


def test_without_compiled_kernels_that_check_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in use_isa("reference", monkeypatch):
        assert validate(tmp_path, "--precision", "int8") == 0
    assert "--  kernels, int8: there are no compiled kernels here" in capsys.readouterr().out


def spoil(rows: Rows, key: str, value: Any) -> Rows:
    return [{**rows[0]}, {**rows[1], key: value}]


BROKEN: dict[str, tuple[Callable[[Rows], Rows], str]] = {
    "no text": (lambda rows: spoil(rows, "text", None), "line 2: key 'text' is not a text"),
    "words for a vector": (lambda rows: spoil(rows, "vector", ["a"]), "line 2: key 'vector' is not a list of numbers"),
    "no vector": (lambda rows: spoil(rows, "vector", []), "line 2: key 'vector' is not a list of numbers"),
    "nothing finite": (lambda rows: spoil(rows, "vector", [float("nan")] * 64), "line 2: key 'vector' holds a number"),
    "another width": (lambda rows: spoil(rows, "vector", [1.0]), "vectors of different widths: 1, 64"),
    "half ids": (lambda rows: spoil(rows, "ids", [1.5]), "line 2: key 'ids' is not a list of whole numbers"),
    "huge ids": (lambda rows: spoil(rows, "ids", [2**40]), "line 2: key 'ids' holds a number that is too large"),
    "no role": (lambda rows: spoil(rows, "role", "poet"), "line 2: key 'role' is 'poet'"),
    "no prompt": (lambda rows: spoil(rows, "prompt", 3), "line 2: key 'prompt' is not a text"),
    "no rows": (lambda rows: [], "holds no texts"),
    "another model": (lambda rows: [{"text": "a", "vector": [1.0] * 3}], "3 numbers, those of tiny_bert have 64"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_reference_is_a_sentence(what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change, sentence = BROKEN[what]
    file = write(tmp_path / "r.jsonl", change(golden_rows()))
    assert validate(tmp_path, "--reference", str(file)) == 1
    assert sentence in capsys.readouterr().err


def test_files_that_are_no_reference_are_sentences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "words.jsonl").write_text('{"text": "a"}\nnot json\n')
    (tmp_path / "list.jsonl").write_text("[1]\n")
    (tmp_path / "words.npz").write_text("not an archive")
    np.savez(tmp_path / "objects.npz", texts=np.array(["a", None], object), vectors=np.zeros((2, 64)))
    np.savez(tmp_path / "half.npz", texts=np.array(["a"]))
    np.savez(tmp_path / "short.npz", texts=np.array(["a"]), vectors=np.zeros((2, 64)))
    for name, sentence in {
        "none.jsonl": "cannot be read",
        "words.jsonl": "line 1: key 'vector'",
        "list.jsonl": "line 1 is not a JSON object",
        "words.npz": "is not an npz file",
        "objects.npz": "is not an npz file of plain arrays",
        "half.npz": "has no array 'vectors'",
        "short.npz": "1 'texts' need as many rows",
    }.items():
        assert validate(tmp_path, "--reference", str(tmp_path / name)) == 1
        assert sentence in capsys.readouterr().err


def test_a_reference_needs_vectors_of_whole_texts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "r.jsonl", golden_rows())
    for name in ("reranker_bert", "late_pylate"):
        assert validate(tmp_path, "--reference", str(file), model=HERE / name) == 1
        assert "gives no vectors of whole texts" in capsys.readouterr().err


def test_a_model_that_is_cut_is_compared_with_cut_vectors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(shutil.copytree(TINY, tmp_path / "Qwen3-Embedding-0.6B"))
    rows = [{"text": row["text"], "vector": row["vector"][:32]} for row in golden_rows()]
    file = write(tmp_path / "r.jsonl", rows)
    assert validate(tmp_path, "--reference", str(file), "--dim", "32", model=folder) == 0
    assert validate(tmp_path, "--reference", str(file), "--dim", "31", model=folder) == 1
    assert "only to 32" in capsys.readouterr().err


def test_a_bound_without_a_reference_is_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        validate(tmp_path, "--bound", "0.1")
    assert caught.value.code == 2 and "--bound is of the differences to a --reference" in capsys.readouterr().err


def test_a_terminal_sees_how_far_it_is_and_then_the_checks_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert validate(tmp_path, "--precision", "int8") == 0
    shown = capsys.readouterr()
    assert "Computing int8  [" in shown.err and "Computing int8 in NumPy  [" in shown.err and "texts" in shown.err
    assert shown.err.endswith("\r\x1b[K") and all(line[:3] in ("ok ", "-- ") for line in shown.out.splitlines())
