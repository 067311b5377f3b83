"""The words stage: when a file that could not be read is tried again."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from indexer.extract.process import WorkerDied
from indexer.options import IndexerOptions
from indexer.store.writer import Writer
from indexer.words import Derivation, WordStage


@pytest.mark.parametrize(("kind", "wait_s"), [("timeout", 300.0), ("crash", 1.0)])
def test_a_file_that_took_too_long_lets_others_go_first(tmp_path: Path, kind: str, wait_s: float) -> None:
    (tmp_path / "slow.html").write_text("x")
    told: list[str] = []
    with Writer.open(tmp_path / "data") as writer:
        root = writer.add_root(str(tmp_path).encode())
        writer.enqueue(root.root_id, [b"slow.html"])
        derivation = Derivation(None, 200, IndexerOptions(tmp_path / "data"))
        stage = WordStage(writer, derivation, lambda path, kind, message: told.append(kind), distrust_partials=False)
        now_s = time.time()
        stage.fail(writer.take()[0], root.path, WorkerDied(kind, "It took long.", blamed=True), now_s)
        due_s = writer.next_due_s()
        assert due_s is not None and due_s - now_s == pytest.approx(wait_s)
        stage.fail(writer.take(now_s=due_s)[0], root.path, WorkerDied(kind, "Again.", blamed=True), due_s)
        assert writer.next_due_s() is None and told == [kind, kind], "twice is enough"
