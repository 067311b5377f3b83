from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.evaluation import load_set, mrr, ndcg, recall
from engine.errors import EngineError


def write_set(folder: Path, qrels: str = "qrels.tsv") -> Path:
    lines = [{"_id": "d1", "title": "T", "text": "one"}, {"_id": "d2", "text": "two"}]
    (folder / "corpus.jsonl").write_text("\n".join(json.dumps(line) for line in lines) + "\n")
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "first"}\n{"_id": "q2", "text": "unjudged"}\n')
    path = folder / qrels
    path.parent.mkdir(exist_ok=True)
    path.write_text("query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\n")
    return folder


@pytest.mark.parametrize("qrels", ["qrels.tsv", "qrels/test.tsv"])
def test_a_set_is_read_in_both_layouts(tmp_path: Path, qrels: str) -> None:
    found = load_set(write_set(tmp_path, qrels))
    assert found.documents == [("d1", "T", "one"), ("d2", "", "two")]
    assert found.queries == [("q1", "first")]
    assert found.answers == {"q1": {"d1": 2}}


def test_what_is_missing_or_wrong_is_named(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"corpus\.jsonl cannot be read"):
        load_set(tmp_path)
    write_set(tmp_path)
    (tmp_path / "queries.jsonl").write_text('{"text": "no id"}\n')
    with pytest.raises(EngineError, match=r"Line 1 of .*queries\.jsonl"):
        load_set(tmp_path)
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq1 d1 1\n")
    with pytest.raises(EngineError, match=r"Line 2 of .*qrels\.tsv"):
        load_set(tmp_path)
    (tmp_path / "qrels.tsv").unlink()
    with pytest.raises(EngineError, match=r"neither qrels\.tsv nor"):
        load_set(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("queries.jsonl", b'{"_id": "q1", "text": "\xff"}', "queries.jsonl is not UTF-8"),
        ("corpus.jsonl", b"\xff", "corpus.jsonl is not UTF-8"),
        ("qrels.tsv", b"q1\td1\t1\n\xff", "qrels.tsv is not UTF-8"),
        ("queries.jsonl", b'{"_id": "q1"}', "Line 1 of .*queries.jsonl is not a JSON object with an _id and a text"),
        ("corpus.jsonl", b'{"_id": "d1"}', "Line 1 of .*corpus.jsonl is not"),
        ("corpus.jsonl", b'["_id", "text"]', "Line 1 of .*corpus.jsonl is not"),
        ("corpus.jsonl", b'{"_id": "\\ud800", "text": ""}', "Line 1 of .*corpus.jsonl is not"),
        ("corpus.jsonl", b'{"_id": "d", "text": "", "title": "\\ud800"}', "Line 1 of .*corpus.jsonl is not"),
        ("corpus.jsonl", b"[" * 100_000, "Line 1 of .*corpus.jsonl is not"),
        ("qrels.tsv", b"q1\td1\t1\nq1\td1\t--2", "Line 2 of .*qrels.tsv is not"),
        ("qrels.tsv", "q1\td1\t1\nq1\td1\t²".encode(), "Line 2 of .*qrels.tsv is not"),
        ("qrels.tsv", b"q9\td1\t1", "No query of .* has an answer in its corpus"),
        ("qrels.tsv", b"q1\td9\t1", "No query of .* has an answer in its corpus"),
        ("qrels.tsv", b"", "No query of .* has an answer in its corpus"),
    ],
)
def test_a_file_that_is_not_what_it_should_be_is_a_sentence(
    name: str, content: bytes, words: str, tmp_path: Path
) -> None:
    (write_set(tmp_path) / name).write_bytes(content)
    with pytest.raises(EngineError, match=words):
        load_set(tmp_path)


def test_what_ends_a_line_elsewhere_may_stand_in_a_text(tmp_path: Path) -> None:
    corpus = write_set(tmp_path) / "corpus.jsonl"
    corpus.write_text('{"_id": "d1", "text": "one\u2028two"}\n', encoding="utf-8")
    assert load_set(tmp_path).documents == [("d1", "", "one\u2028two")]


def test_ndcg_is_that_of_trec_eval() -> None:
    answers = {"a": 1, "b": 1}
    assert ndcg(["a", "b", "c"], answers, 10) == 1.0
    assert ndcg(["c", "a"], {"a": 1}, 10) == pytest.approx(0.63093, abs=1e-5)
    assert ndcg(["b", "a"], {"a": 3, "b": 1}, 10) == pytest.approx((1 + 3 / 1.58496) / (3 + 1 / 1.58496), abs=1e-4)
    assert ndcg(["x"] * 10 + ["a"], {"a": 1}, 10) == 0.0


def test_recall_and_reciprocal_rank() -> None:
    assert recall(["a", "x", "b"], {"a": 1, "b": 1, "c": 1, "d": 1}, 2) == 0.25
    assert mrr(["x", "y", "a"], {"a": 1}, 10) == pytest.approx(1 / 3)
    assert mrr(["x", "y", "a"], {"a": 1}, 2) == 0.0
