"""The meaning stage: batches across files, one bad text alone left out, every text embedded once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np

from engine import Encoder, EngineError, TokenVectors
from indexer.embed import EMBEDDED_STAMP, MOST_TEXTS, MeaningStage
from indexer.store.reader import Reader
from indexer.store.records import NewChunk
from indexer.store.writer import Writer

DIM = 8
FIRST, LAST, PREFIX = 101, 102, 7


class FakeEncoder:
    """One token a word, its vector made of the word's length; [FIRST] prefix words [LAST], cut at 12 tokens."""

    name, precision, fingerprint, dim, hidden = "fake", "fp32", "f1", DIM, DIM

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def encode_all(self, texts: Sequence[str], *, role: str) -> tuple[np.ndarray, list[TokenVectors]]:
        assert role == "document"
        self.batches.append(list(texts))
        if any("impossible" in text for text in texts):
            raise EngineError("This text cannot be computed.")
        pooled = np.ones((len(texts), DIM), np.float32) / np.sqrt(np.float32(DIM))
        return pooled, self.encode_tokens(texts, role=role)

    def encode_tokens(self, texts: Sequence[str], *, role: str) -> list[TokenVectors]:
        found = []
        for text in texts:
            ids = np.array([FIRST, PREFIX, *[len(word) for word in text.split()][:9], LAST], np.int32)
            signs = np.where(ids % 2 == 0, 1.0, -1.0).astype(np.float32)
            found.append(TokenVectors(ids, np.repeat(signs[:, None], DIM, axis=1)))
        return found

    def close(self) -> None:
        pass


def stage_with(writer: Writer, texts: Sequence[str], batch_tokens: int = 4096) -> tuple[MeaningStage, FakeEncoder]:
    encoder = FakeEncoder()
    stage = MeaningStage(writer, cast(Encoder, encoder), "fake", batch_tokens)
    content = writer.begin_content(b"hash", "x")
    writer.add_chunks(content.content_id, [NewChunk(0, len(text), text) for text in texts])
    writer.finish_content(content.content_id, char_count=1)
    root = writer.add_root(b"/r")
    writer.put_document(root.root_id, b"a", size=1, mtime_ns=1, content_id=content.content_id)
    encoder.batches.clear()
    return stage, encoder


def run(stage: MeaningStage) -> int:
    total = 0
    while done := stage.step():
        total += done
    return total


def test_every_text_is_embedded_once_and_counted(tmp_path: Path) -> None:
    with Writer.open(tmp_path) as writer:
        stage, encoder = stage_with(writer, ["one", "two words", "one", "three of them"])
        assert run(stage) == 3
        assert sorted(text for batch in encoder.batches for text in batch) == ["one", "three of them", "two words"]
        assert writer.pending_count() == 0 and writer.stamp(EMBEDDED_STAMP) == "3"


def test_batches_are_cut_by_size_and_count(tmp_path: Path) -> None:
    with Writer.open(tmp_path) as writer:
        stage, encoder = stage_with(writer, [f"{n} " + "x" * 390 for n in range(25)], batch_tokens=1000)
        run(stage)
        assert max(len(batch) for batch in encoder.batches) == 10
    with Writer.open(tmp_path / "two") as writer:
        stage, encoder = stage_with(writer, [str(n) for n in range(MOST_TEXTS + 5)])
        run(stage)
        assert [len(batch) for batch in encoder.batches] == [MOST_TEXTS, 5]


def test_a_text_longer_than_a_batch_still_goes(tmp_path: Path) -> None:
    with Writer.open(tmp_path) as writer:
        stage, _ = stage_with(writer, ["x" * 9000, "short"], batch_tokens=10)
        assert run(stage) == 2


def test_a_text_that_cannot_be_embedded_costs_only_itself(tmp_path: Path) -> None:
    with Writer.open(tmp_path) as writer:
        stage, _ = stage_with(writer, ["good", "impossible", "also good"])
        assert run(stage) == 3
        counts = writer.counts()
        assert (counts.vectors, counts.pending_chunks) == (2, 0)


def test_token_rows_are_those_of_the_text_itself(tmp_path: Path) -> None:
    with Writer.open(tmp_path) as writer:
        stage, _ = stage_with(writer, ["ab abc abcd", "a " * 20])
        run(stage)
        with Reader.open(tmp_path) as reader:
            rows = dict(
                reader.rows(
                    "SELECT text, bits FROM chunks JOIN vectors USING (text_hash) JOIN token_bits USING (vector_id)"
                )
            )
    assert rows["ab abc abcd"] == bytes([255, 0, 255])  # even, odd, even lengths; no special, no prefix
    assert len(rows[("a " * 20)]) == 9  # as far as the model read
