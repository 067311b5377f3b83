"""`inkling bench`: what it measures, on how many tokens, and what it prints."""

import json
import os
from pathlib import Path

import psutil
import pytest

from app import cli
from app.benchmark import LEAST_RUNS, peak_bytes, text_of
from engine import Encoder
from engine.folder import ModelFolder
from engine.options import available_precisions
from tests.goldens.reading import HERE

TINY = HERE / "tiny_bert"


def bench(data: Path, *arguments: str, model: Path = TINY) -> int:
    return cli.run(["--data-dir", str(data), "bench", "--model", str(model), "--seconds", "0.001", *arguments])


def test_every_precision_and_worker_count_is_a_case(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(tmp_path, "--workers", "1,2", "--json") == 0
    out = json.loads(capsys.readouterr().out)
    assert out["model"] == "tiny_bert" and out["machine"]["cores"] == os.cpu_count() and out["machine"]["processor"]
    cases = {(case["precision"], case["workers"]): case for case in out["cases"]}
    precisions = available_precisions(ModelFolder.open(TINY))
    assert {"fp32", "int8"} <= set(precisions)
    assert set(cases) == {(precision, workers) for precision in precisions for workers in (1, 2)}
    for case in cases.values():
        assert case["isa"] and case["first_vector_s"] > 0 and case["peak_bytes"] > 10_000_000
        assert (case["query"]["tokens"], case["query"]["texts"], case["text"]["tokens"]) == (12, 1, 48)
        assert case["batch"]["texts"] > 24
        for name in ("query", "text", "batch"):
            found = case[name]
            assert 0 < found["p10_ms"] <= found["median_ms"] <= found["p90_ms"] and found["runs"] >= LEAST_RUNS
            assert found["tokens_a_second"] == pytest.approx(found["tokens"] / found["median_ms"] * 1000)


def test_a_person_sees_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(tmp_path, "--workers", "1", "--precision", "int8", model=HERE / "late_pylate") == 0
    title, heads, row = capsys.readouterr().out.splitlines()
    assert title.startswith("late_pylate on ")
    assert "12 tokens" in heads and heads.split()[:2] == ["precision", "workers"]
    assert row.split()[:2] == ["int8", "1"] and "tokens/s" in row and row.endswith("MB")


@pytest.mark.parametrize("name", ["tiny_bert", "qwen3", "xlm_roberta", "static"])
def test_texts_have_the_tokens_that_they_should(name: str) -> None:
    with Encoder.load(HERE / name, workers=1) as encoder:
        for tokens in (12, 30):
            (ids,) = encoder.token_ids([text_of(encoder, tokens)], prompt="")
            assert abs(len(ids) - tokens) <= 1


@pytest.mark.parametrize("seconds", ["0", "-0.0", "-1", "nan", "inf", "3601", "soon", ""])
def test_no_time_to_measure_in_is_wrong_usage(tmp_path: Path, seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        bench(tmp_path, f"--seconds={seconds}")
    said = capsys.readouterr().err
    assert caught.value.code == 2 and f"{seconds!r} is not a number of seconds above 0 and up to 3600" in said


def test_trouble_of_the_measuring_process_is_the_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(tmp_path, model=HERE / "reranker_bert") == 1
    said = capsys.readouterr().err
    assert said.startswith("inkling: ") and said.count("inkling: ") == 1 and "modules.json is missing" in said


@pytest.mark.parametrize("argument", ["--workers=0", "--workers=1,x", "--seconds=x", "--seconds=-1"])
def test_wrong_usage_ends_with_two(argument: str, tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as caught:
        bench(tmp_path, argument)
    assert caught.value.code == 2


def test_the_peak_is_no_less_than_what_was_held_and_stays() -> None:
    held = bytearray(80_000_000)
    held[::4096] = b"x" * len(held[::4096])
    most = psutil.Process().memory_info().rss
    del held
    peak = peak_bytes()
    # The system counts in lumps, some of which are not added up yet.
    assert peak is not None and peak >= most * 0.98 and most > 80_000_000
