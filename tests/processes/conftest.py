"""What tests of real processes share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.indexer.tiny_model import write_tiny_model


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real model folder that computes in no time."""
    return write_tiny_model(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """An empty data folder."""
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty folder to index."""
    folder = tmp_path / "files"
    folder.mkdir()
    return folder
