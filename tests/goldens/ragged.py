"""Goldens of lengths: for every encoder one text of each length that it takes, and the reference's vectors of them.

For development only; make.py writes the files. A folder's ragged.npz holds `source` and `characters` of each text,
which is the beginning of one of SOURCES, in the order of their lengths in tokens, from special tokens alone to the most
that the model takes; and `vectors`, one row a text. The reference reads one text at a time and without a prompt.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.goldens.texts import AWKWARD

SOURCES = (AWKWARD["far too long"], "a " * 300, "7" * 300, AWKWARD["code"] * 2)


def text(source: int, characters: int) -> str:
    """One text of the file."""
    return SOURCES[source][:characters]


def make(folder: Path, model: Any, longest: int) -> None:
    """Write the file of one folder. model: its reference; longest: the most tokens that it takes."""
    found: dict[int, tuple[int, int]] = {}
    for source, whole in enumerate(SOURCES):
        for characters in range(min(len(whole), 1200)):
            count = len(model.preprocess([whole[:characters]], prompt="")["input_ids"][0])
            found.setdefault(count, (source, characters))
            if count == longest:
                break
    lengths = sorted(found)
    assert lengths == list(range(lengths[0], longest + 1)), f"{folder.name}: not every length is there: {lengths}"
    rows = []
    for count in lengths:
        features = model.preprocess([text(*found[count])], prompt="")
        rows.append(model(dict(features.items()))["sentence_embedding"][0].detach().numpy())
    source, characters = np.array([found[count] for count in lengths], np.int32).T
    vectors = np.stack(rows).astype(np.float32)
    np.savez_compressed(folder / "ragged.npz", source=source, characters=characters, vectors=vectors)
