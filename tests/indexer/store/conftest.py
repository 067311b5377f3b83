from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from indexer.store.candidates import StoreCandidates
from indexer.store.reader import Reader
from indexer.store.writer import Writer


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    with Writer.open(tmp_path) as opened:
        yield opened


@pytest.fixture
def root(writer: Writer) -> int:
    return writer.add_root(b"/home/ann").root_id


@pytest.fixture
def reader(writer: Writer, tmp_path: Path) -> Iterator[Reader]:
    with Reader.open(tmp_path) as opened:
        yield opened


@pytest.fixture
def source(reader: Reader) -> StoreCandidates:
    return StoreCandidates(reader)
