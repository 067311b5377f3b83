"""Ways to break a model folder: a maker gets a fresh copy of a golden checkpoint and puts one thing wrong."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import struct
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.numpy

from tests.goldens.reading import HERE

Maker = Callable[[Path], None]

WEIGHTS = "model.safetensors"
SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
INDEX = "model.safetensors.index.json"
ST = "sentence_transformers.models"
QUERY = "encoder.layer.0.attention.self.query.weight"
WORDS = "embeddings.word_embeddings.weight"
NORM = "encoder.layer.1.output.LayerNorm.weight"

# What code of a folder would leave behind if it were ever run.
MARKER = "this-code-was-run"


@dataclass(frozen=True)
class Broken:
    """make: breaks a copy of the golden `base`. words: what the sentence says."""

    make: Maker
    words: tuple[str, ...]
    base: str = "tiny_bert"


class Payload:
    """A pickle that leaves the marker when it is read."""

    def __init__(self, marker: Path):
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.marker),)


def write(broken: Broken, place: Path) -> Path:
    """The folder, with code beside it that leaves a marker: `place / MARKER` must never exist."""
    folder = place / "broken"
    shutil.copytree(HERE / broken.base, folder, ignore=shutil.ignore_patterns("*.npz"))
    code = f"import os\nos.mkdir({str(place / MARKER)!r})\n"
    for name in ("modeling_own.py", "configuration_own.py", "custom_st.py", "__init__.py"):
        (folder / name).write_text(code)
    broken.make(folder)
    return folder


def change(name: str, **values: Any) -> Maker:
    """Set keys of a JSON file; Ellipsis takes a key away."""

    def make(folder: Path) -> None:
        content = json.loads((folder / name).read_text(encoding="utf-8"))
        content.update(values)
        kept = {key: value for key, value in content.items() if value is not ...}
        (folder / name).write_text(json.dumps(kept), encoding="utf-8")

    return make


def config(**values: Any) -> Maker:
    return change("config.json", **values)


def tokenizer(edit: Callable[[dict[str, Any]], None]) -> Maker:
    """Change tokenizer.json in place."""

    def make(folder: Path) -> None:
        content = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
        edit(content)
        (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")

    return make


def set_in(*path: str | int, value: Any) -> Maker:
    """Set one field of tokenizer.json, by the keys that lead to it."""

    def edit(content: dict[str, Any]) -> None:
        inner: Any = content
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value

    return tokenizer(edit)


def without(*names: str) -> Maker:
    def make(folder: Path) -> None:
        for name in names:
            (folder / name).unlink()

    return make


def written(name: str, content: bytes | str) -> Maker:
    data = content.encode() if isinstance(content, str) else content
    return lambda folder: (folder / name).write_bytes(data) and None


def in_order(*makers: Maker) -> Maker:
    def make(folder: Path) -> None:
        for one in makers:
            one(folder)

    return make


def replaced(name: str, put: Maker) -> Maker:
    """Take a file away and put something else in its place."""
    return in_order(without(name), put)


def tensors(**changes: Any) -> Maker:
    """Change tensors of the weights by a function; None takes one away. Names have __ for dots."""

    def make(folder: Path) -> None:
        found = {name: value.copy() for name, value in safetensors.numpy.load_file(folder / WEIGHTS).items()}
        for name, edit in changes.items():
            name = name.replace("__", ".")
            value = found.pop(name)
            if edit is not None:
                found[name] = edit(value)
        safetensors.numpy.save_file(found, folder / WEIGHTS)

    return make


def one_number(name: str, value: float) -> Maker:
    """One number of one tensor is another."""

    def edit(values: Any) -> Any:
        values.reshape(-1)[values.size // 2] = value
        return values

    return tensors(**{name.replace(".", "__"): edit})


def header(edit: Callable[[dict[str, Any]], None], file: str = WEIGHTS) -> Maker:
    """Change the header of a safetensors file, and leave the data as they are."""

    def make(folder: Path) -> None:
        data = (folder / file).read_bytes()
        (length,) = struct.unpack("<Q", data[:8])
        content = json.loads(data[8 : 8 + length])
        edit(content)
        text = json.dumps(content).encode()
        (folder / file).write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length :])

    return make


def entry(name: str, **values: Any) -> Maker:
    """Change what the header says of one tensor."""
    return header(lambda content: content[name].update(values))


def shift(name: str, start: int, stop: int) -> Maker:
    """Move the offsets that the header gives one tensor."""

    def edit(content: dict[str, Any]) -> None:
        first, last = content[name]["data_offsets"]
        content[name]["data_offsets"] = [first + start, last + stop]

    return header(edit)


def claimed_length(length: int) -> Maker:
    def make(folder: Path) -> None:
        data = (folder / WEIGHTS).read_bytes()
        (folder / WEIGHTS).write_bytes(struct.pack("<Q", length) + data[8:])

    return make


def cut(name: str, size: int) -> Maker:
    """Keep the first bytes of a file; a negative size counts from its end."""

    def make(folder: Path) -> None:
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data[:size])

    return make


def modules(*entries: tuple[str, str]) -> Maker:
    listing = [{"idx": i, "name": str(i), "path": path, "type": kind} for i, (kind, path) in enumerate(entries)]
    return written("modules.json", json.dumps(listing))


TRANSFORMER, POOLING = (f"{ST}.Transformer", ""), (f"{ST}.Pooling", "1_Pooling")


def linked_out(name: str) -> Maker:
    """A module's folder becomes a link to one that lies outside."""

    def make(folder: Path) -> None:
        outside = folder.parent / "outside"
        shutil.move(folder / name, outside)
        (folder / name).symlink_to(outside, target_is_directory=True)

    return make


def placed(name: str, shard: str) -> Maker:
    """Let the shard index put a tensor into another file."""

    def make(folder: Path) -> None:
        content = json.loads((folder / INDEX).read_text())
        content["weight_map"][name] = shard
        (folder / INDEX).write_text(json.dumps(content))

    return make


def pickled(name: str) -> Maker:
    return lambda folder: (folder / name).write_bytes(pickle.dumps(Payload(folder.parent / MARKER))) and None


def zipped(name: str) -> Maker:
    """What torch.save writes: a zip with a pickle in it."""

    def make(folder: Path) -> None:
        with zipfile.ZipFile(folder / name, "w") as archive:
            archive.writestr("archive/data.pkl", pickle.dumps(Payload(folder.parent / MARKER)))

    return make


def large(name: str, size: int) -> Maker:
    """A valid JSON file of this many bytes."""

    def make(folder: Path) -> None:
        content = (folder / name).read_text(encoding="utf-8")
        (folder / name).write_text(content.rstrip()[:-1] + ', "notes": "' + "x" * size + '"}', encoding="utf-8")

    return make


def sparse(name: str, size: int) -> Maker:
    """A file of this many bytes that takes no room on the disk."""
    return lambda folder: os.truncate(folder / name, size)


def only(*names: str) -> Maker:
    """Nothing but these files, each of a few bytes."""

    def make(folder: Path) -> None:
        shutil.rmtree(folder)
        folder.mkdir()
        for name in names:
            (folder / name).write_bytes(b"GGUF\x03\0\0\0" if name.endswith("gguf") else b"\x08\x07\x12\x04")

    return make


def folder_at(name: str) -> Maker:
    """A folder in place of a file."""
    return replaced(name, lambda folder: (folder / name).mkdir())


def dangling(name: str) -> Maker:
    return replaced(name, lambda folder: (folder / name).symlink_to(folder / "blobs" / "gone"))


def dense(outputs: int, **values: Any) -> Maker:
    settings = {"in_features": outputs, "out_features": outputs, "bias": True, **values}
    return written("2_Dense/config.json", json.dumps(settings))


def words_become(count: int) -> Maker:
    """A vocabulary of more words than the table has rows."""

    def edit(content: dict[str, Any]) -> None:
        vocab = content["model"]["vocab"]
        vocab.update({f"more{i}": len(vocab) for i in range(count)})

    return tokenizer(edit)


def special_id(number: int) -> Callable[[dict[str, Any]], None]:
    """The closing special token gets another id in the template that adds it."""

    def edit(content: dict[str, Any]) -> None:
        content["post_processor"] = {
            "type": "TemplateProcessing",
            "single": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"[SEP]": {"id": "[SEP]", "ids": [number], "tokens": ["[SEP]"]}},
        }

    return edit


def charsmap(content: dict[str, Any]) -> None:
    content["normalizer"] = {"type": "Precompiled", "precompiled_charsmap": "AAAA////"}


def swap_tables(content: dict[str, Any]) -> None:
    """Two tensors of one shape share their bytes."""
    one, other = "encoder.layer.0.output.dense.bias", "encoder.layer.1.output.dense.bias"
    content[one]["data_offsets"] = list(content[other]["data_offsets"])
