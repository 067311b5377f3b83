"""Published weights: read without a copy, and nothing in a header believed unchecked."""

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from engine.errors import ModelError
from engine.weights.safetensors import Weights


def write_raw(file: Path, header: Any, data: bytes, length: int | None = None) -> None:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + data)


def entry(dtype: Any = "F32", shape: Any = (2,), offsets: Any = (0, 8)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def test_float32_is_a_read_only_view_of_the_file(tmp_path: Path) -> None:
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    save_file(
        {"a": values, "b": np.arange(3, dtype=np.int8)}, tmp_path / "model.safetensors", metadata={"format": "pt"}
    )
    weights = Weights.open(tmp_path)
    found = weights.f32("a", (2, 3))
    np.testing.assert_array_equal(found, values)
    assert not found.flags.owndata and not found.flags.writeable
    assert weights.names == ("a", "b") and weights.shape("b") == (3,) and weights.metadata == {"format": "pt"}
    weights.close()
    np.testing.assert_array_equal(found, values)  # the view keeps its mapping
    with pytest.raises(ModelError, match="was closed"):
        weights.array("a")


@pytest.mark.parametrize("dtype", ["F16", "BF16", "F64"])
def test_other_floats_are_converted(tmp_path: Path, dtype: str) -> None:
    values = np.array([1.5, -2.25, 0.0, 1024.0])
    raw = (
        (values.astype(np.float32).view(np.uint32) >> 16).astype("<u2").tobytes()
        if dtype == "BF16"
        else values.astype({"F16": "<f2", "F64": "<f8"}[dtype]).tobytes()
    )
    write_raw(tmp_path / "model.safetensors", {"a": entry(dtype, (2, 2), (0, len(raw)))}, raw)
    found = Weights.open(tmp_path).f32("a")
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found.ravel(), values)


def test_integers_are_not_taken_for_weights(tmp_path: Path) -> None:
    write_raw(tmp_path / "model.safetensors", {"a": entry("I32")}, bytes(8))
    with pytest.raises(ModelError, match="'a' holds I32"):
        Weights.open(tmp_path).f32("a")


def test_a_misaligned_tensor_is_copied_into_line(tmp_path: Path) -> None:
    text = json.dumps({"a": entry()}).encode()
    write_raw(tmp_path / "model.safetensors", text + b" " * (1 + -len(text) % 8), np.array([1, 2], "<f4").tobytes())
    found = Weights.open(tmp_path).f32("a")
    assert found.flags.aligned and found.tolist() == [1, 2]


def test_empty_and_scalar_tensors_are_read(tmp_path: Path) -> None:
    write_raw(
        tmp_path / "model.safetensors", {"a": entry("F32", [], [0, 4]), "b": entry("F32", [0, 3], [4, 4])}, bytes(4)
    )
    weights = Weights.open(tmp_path)
    assert weights.f32("a").shape == () and weights.f32("b").shape == (0, 3)


BROKEN: dict[str, tuple[Callable[[Path], None], str]] = {
    "an empty file": (lambda f: f.write_bytes(b"") and None, "is empty"),
    "seven bytes": (lambda f: f.write_bytes(b"1234567") and None, "too short"),
    "a header longer than the file": (lambda f: write_raw(f, {}, b"", 2**40), "cut off"),
    "a header that is no JSON": (lambda f: write_raw(f, b"{nope", b""), "not valid JSON"),
    "a header that is a list": (lambda f: write_raw(f, [], b""), "not a JSON object"),
    "a header in no encoding": (lambda f: write_raw(f, b"\xff\xfe", b""), "not valid JSON"),
    "a header nested too deep": (lambda f: write_raw(f, b"[" * 200_000, b""), "not valid JSON"),
    "a name given twice": (lambda f: write_raw(f, b'{"a": 1, "a": 2}', b""), "twice"),
    "metadata with numbers": (lambda f: write_raw(f, {"__metadata__": {"a": 1}}, b""), "__metadata__"),
    "a tensor that is no object": (lambda f: write_raw(f, {"a": 5}, b""), "'a' is not described"),
    "a missing key": (lambda f: write_raw(f, {"a": {"dtype": "F32"}}, b""), "'a' is not described"),
    "an unknown dtype": (lambda f: write_raw(f, {"a": entry("F8_E4M3")}, bytes(8)), "dtype 'F8_E4M3'"),
    "a dtype that is a list": (lambda f: write_raw(f, {"a": entry(["F32"])}, bytes(8)), "dtype"),
    "a negative shape": (lambda f: write_raw(f, {"a": entry(shape=(-2,))}, bytes(8)), "impossible shape"),
    "a fractional shape": (lambda f: write_raw(f, {"a": entry(shape=(2.0,))}, bytes(8)), "impossible shape"),
    "offsets backwards": (lambda f: write_raw(f, {"a": entry(offsets=(8, 0))}, bytes(8)), "data_offsets"),
    "three offsets": (lambda f: write_raw(f, {"a": entry(offsets=(0, 8, 8))}, bytes(8)), "data_offsets"),
    "too few bytes for the shape": (lambda f: write_raw(f, {"a": entry(offsets=(0, 4))}, bytes(4)), "needs 8"),
    "a shape that overflows": (lambda f: write_raw(f, {"a": entry(shape=(2**40, 2**40))}, bytes(8)), "needs"),
    "data cut off": (lambda f: write_raw(f, {"a": entry()}, bytes(5)), "cut off"),
    "data left over": (lambda f: write_raw(f, {"a": entry()}, bytes(9)), "belong to no tensor"),
    "an overlap": (lambda f: write_raw(f, {"a": entry(), "b": entry(offsets=(4, 12))}, bytes(12)), "overlaps"),
    "a gap": (lambda f: write_raw(f, {"a": entry(), "b": entry(offsets=(12, 20))}, bytes(20)), "gap"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_file_is_a_sentence(tmp_path: Path, what: str) -> None:
    make, words = BROKEN[what]
    make(tmp_path / "model.safetensors")
    with pytest.raises(ModelError, match=words) as caught:
        Weights.open(tmp_path)
    assert "model.safetensors" in str(caught.value)


def test_missing_tensors_and_wrong_shapes_are_named(tmp_path: Path) -> None:
    save_file({"a": np.zeros((2, 3), np.float32)}, tmp_path / "model.safetensors")
    weights = Weights.open(tmp_path)
    with pytest.raises(ModelError, match="no tensor 'b'"):
        weights.f32("b")
    with pytest.raises(ModelError, match=r"'a' has shape \[2, 3\].*\[3, 2\]"):
        weights.array("a", (3, 2))


def test_pickles_are_never_read(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(ModelError, match=r"pytorch_model\.bin is a Python pickle"):
        Weights.open(tmp_path)
    with pytest.raises(ModelError, match="no weights to read"):
        Weights.open(tmp_path / "elsewhere")


def write_shards(folder: Path, weight_map: Any) -> None:
    save_file({"a": np.full(2, 1, np.float32)}, folder / "one.safetensors")
    save_file({"b": np.full(2, 2, np.float32)}, folder / "two.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))


def test_shards_are_one_set_of_tensors(tmp_path: Path) -> None:
    write_shards(tmp_path, {"a": "one.safetensors", "b": "two.safetensors"})
    weights = Weights.open(tmp_path)
    assert weights.names == ("a", "b") and weights.f32("b").tolist() == [2, 2]
    before = weights.fingerprint
    save_file({"b": np.full(2, 3, np.float32)}, tmp_path / "two.safetensors")
    assert Weights.open(tmp_path).fingerprint != before


@pytest.mark.parametrize(
    ("weight_map", "words"),
    [
        ({"a": "../one.safetensors"}, "not a file beside it"),
        ({"a": "/etc/passwd"}, "not a file beside it"),
        ({"a": "C:one.safetensors"}, "not a file beside it"),
        ({"a": "sub\\one.safetensors"}, "not a file beside it"),
        ({"a": 7}, "not a file beside it"),
        ({"a": "three.safetensors"}, "three.safetensors"),
        ({"a": "two.safetensors"}, "lacks tensor 'a'"),
        ({}, "weight_map"),
        ([], "weight_map"),
    ],
)
def test_a_broken_shard_index_is_a_sentence(tmp_path: Path, weight_map: Any, words: str) -> None:
    write_shards(tmp_path, weight_map)
    with pytest.raises(ModelError, match=words):
        Weights.open(tmp_path)


def test_the_fingerprint_of_one_file_is_its_sha256(tmp_path: Path) -> None:
    import hashlib

    save_file({"a": np.zeros(2, np.float32)}, tmp_path / "model.safetensors")
    expected = hashlib.sha256((tmp_path / "model.safetensors").read_bytes()).hexdigest()
    assert Weights.open(tmp_path).fingerprint == expected
