"""Disk weights: the bits of weights in memory, mapped and not copied, made anew when they are not what they must be."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import mmap
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from engine import CrossEncoder, Encoder, ModelError
from engine.catalog import BUNDLED_MODELS
from engine.folder import ModelFolder
from engine.kernels import loader
from engine.kernels.native import NativePlan
from engine.reranker_folder import RerankerFolder
from engine.weights import disk, opening
from engine.weights.stored import StoredPrecision
from tests import real_models
from tests.engine.conftest import use_isa
from tests.goldens.reading import HERE
from tests.goldens.texts import AWKWARD, ordinary

PRECISIONS: tuple[StoredPrecision, ...] = ("fp32", "int8")
ENCODERS = sorted(file.parent.name for kind in ("reference", "tokens") for file in HERE.glob(f"*/{kind}.npz"))
RERANKERS = sorted(file.parent.name for file in HERE.glob("*/pairs.npz"))
TEXTS = [*AWKWARD.values(), *ordinary(20)]
TINY = HERE / "tiny_bert"


def outputs(model: Path, precision: str, place: Path | None, workers: int = 1) -> np.ndarray[Any, Any]:
    """All that a model computes of TEXTS, as one row of numbers."""
    if model.name in RERANKERS:
        with CrossEncoder.load(model, precision=precision, workers=workers, disk_weights=place) as reranker:
            return reranker.score(TEXTS[-1], TEXTS)
    with Encoder.load(model, precision=precision, workers=workers, disk_weights=place) as encoder:
        late = model.name.startswith("late")
        roles = ("query", "document") if late else (None,)
        rows = [tokens.vectors.ravel() for role in roles for tokens in encoder.encode_tokens(TEXTS, role=role)]
        return np.concatenate(rows if late else [*rows, encoder.encode(TEXTS).ravel()])


def weights_in(place: Path) -> list[Path]:
    return sorted(place.glob("*.weights"))


def others_in(place: Path) -> list[str]:
    return sorted(file.name for file in place.iterdir() if file.suffix != disk.SUFFIX)


def mapping_of(array: np.ndarray[Any, Any]) -> Any:
    """What an array's memory belongs to."""
    owner: Any = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    return owner.obj if isinstance(owner, memoryview) else owner


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", [*ENCODERS, *RERANKERS])
def test_disk_weights_give_the_bits_of_weights_in_memory(tmp_path: Path, name: str, precision: str) -> None:
    wanted = outputs(HERE / name, precision, None)
    np.testing.assert_array_equal(outputs(HERE / name, precision, tmp_path), wanted)  # just made
    made = [file.stat().st_mtime_ns for file in weights_in(tmp_path)]
    np.testing.assert_array_equal(outputs(HERE / name, precision, tmp_path, workers=2), wanted)  # found
    assert len(made) == 1 and made == [file.stat().st_mtime_ns for file in weights_in(tmp_path)]


@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_reference_computes_on_disk_weights_too(
    tmp_path: Path, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in use_isa("reference", monkeypatch):
        wanted = outputs(TINY, precision, None)
        np.testing.assert_array_equal(outputs(TINY, precision, tmp_path), wanted)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", [*ENCODERS, *RERANKERS])
def test_the_kernels_read_the_mapping_itself(
    tmp_path: Path, compiled: str, name: str, precision: StoredPrecision
) -> None:
    folder = RerankerFolder.open(HERE / name) if name in RERANKERS else ModelFolder.open(HERE / name)
    library = loader.library()
    assert library is not None
    for _ in range(2):  # just made, and found
        with folder.weights() as weights:
            loaded = opening.open_parameters(
                folder.parameters(), weights, precision, folder.backbone.family.prefixes,
                name=name, disk_weights=tmp_path,
            )  # fmt: skip
        kept = {array.ctypes.data for array in NativePlan(folder.plan(), loaded, library, 1)._kept}
        for parameter, values in loaded.items():
            arrays = [getattr(values, field.name) for field in dataclasses.fields(values)]
            for array in (array for array in arrays if isinstance(array, np.ndarray)):
                assert isinstance(mapping_of(array), mmap.mmap), parameter
                assert array.ctypes.data % disk.ALIGNMENT_BYTES == 0 and not array.flags.writeable
                if array.ndim > 1 and parameter != "bias":  # biases are padded, MPNet's is spread: small copies
                    assert array.ctypes.data in kept, parameter


def test_a_packed_model_has_no_disk_weights(tmp_path: Path) -> None:
    with Encoder.load(BUNDLED_MODELS / "all-MiniLM-L6-v2", disk_weights=tmp_path / "place") as encoder:
        assert encoder.precision == "int8"
    assert not (tmp_path / "place").exists()


def test_nothing_is_written_into_the_models_folder(tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(TINY, model)
    before = sorted((file, file.stat().st_mtime_ns) for file in model.rglob("*"))
    outputs(model, "int8", tmp_path / "place")
    assert sorted((file, file.stat().st_mtime_ns) for file in model.rglob("*")) == before


def test_the_fingerprint_is_that_of_weights_in_memory_and_reads_no_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Encoder.load(TINY, precision="int8", workers=1) as encoder:
        wanted = encoder.fingerprint
    with Encoder.load(TINY, precision="int8", workers=1, disk_weights=tmp_path) as encoder:
        assert encoder.fingerprint == wanted
    monkeypatch.delattr("engine.weights.safetensors._sha256")
    with Encoder.load(TINY, precision="int8", workers=1, disk_weights=tmp_path) as encoder:
        assert encoder.fingerprint == wanted


# ---- files that are not what they must be -----------------------------------------------------------------------


def signed(data: bytes, change: Callable[[dict[str, Any]], Any]) -> bytes:
    """The file with a changed header whose checksum and length are right."""
    magic, version, length, _ = disk._PREFIX.unpack(data[: disk._PREFIX.size])
    start = disk._align(disk._PREFIX.size + length)
    header = json.loads(data[disk._PREFIX.size : disk._PREFIX.size + length])
    changed = change(header)
    text = json.dumps(header if changed is None else changed, separators=(",", ":")).encode()
    text += b" " * (length - len(text))
    prefix = disk._PREFIX.pack(magic, version, len(text), hashlib.sha256(text).digest())
    return (prefix + text).ljust(disk._align(disk._PREFIX.size + len(text)), b"\0") + data[start:]


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def first_array(data: bytes) -> int:
    return disk._align(disk._PREFIX.size + disk._PREFIX.unpack(data[: disk._PREFIX.size])[2])


def set_array(number: int, **values: Any) -> Callable[[bytes], bytes]:
    return lambda data: signed(data, lambda header: header["arrays"][number].update(values))


def set_key(path: str, value: Any) -> Callable[[bytes], bytes]:
    def change(header: dict[str, Any]) -> None:
        *parents, last = path.split(".")
        for key in parents:
            header = header[key]
        header[last] = value

    return lambda data: signed(data, change)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "one byte": lambda data: data[:1],
    "cut in the prefix": lambda data: data[:40],
    "cut in the header": lambda data: data[:300],
    "cut behind the header": lambda data: data[: first_array(data)],
    "cut by one byte": lambda data: data[:-1],
    "cut by half": lambda data: data[: len(data) // 2],
    "longer by a page": lambda data: data + bytes(4096),
    "another file": lambda data: b"SQLite format 3\0" * 400,
    "other magic": lambda data: flipped(data, 0),
    "other version": lambda data: data[:8] + (disk.VERSION + 1).to_bytes(4, "little") + data[12:],
    "header longer than the file": lambda data: data[:12] + (1 << 31).to_bytes(4, "little") + data[16:],
    "header of no length": lambda data: data[:12] + bytes(4) + data[16:],
    "flipped header checksum": lambda data: flipped(data, 20),
    "flipped header byte": lambda data: flipped(data, 200),
    "header that is no JSON": lambda data: signed(data, lambda header: "x").replace(b'"x"', b"{x}", 1),
    "header that is a list": lambda data: signed(data, lambda header: []),
    "header that is nested without end": lambda data: _nested(data),
    "empty header": lambda data: signed(data, lambda header: {}),
    "origin is a number": set_key("origin", 5),
    "other precision": set_key("origin.precision", "int8-full"),
    "other parameters": set_key("origin.parameters", "0" * 64),
    "no files": set_key("origin.files", []),
    "arrays are a number": set_key("arrays", 7),
    "no arrays": set_key("arrays", []),
    "digests are missing": set_key("digests", None),
    "too many digests": set_key("digests", ["0" * 64] * 2),
    "offset beyond the file": set_array(1, offset=1 << 50),
    "negative offset": set_array(1, offset=-64),
    "unaligned offset": set_array(1, offset=3),
    "overlapping arrays": set_array(2, offset=0),
    "offset is text": set_array(1, offset="0"),
    "huge shape": set_array(0, shape=[1 << 40, 1 << 40]),
    "negative shape": set_array(0, shape=[-1, 64]),
    "transposed shape": lambda data: signed(data, lambda h: h["arrays"][0]["shape"].reverse()),
    "other dtype": set_array(0, dtype="<f8"),
    "dtype of objects": set_array(0, dtype="|O"),
    "other parameter": set_array(0, parameter="layers.0.up.weight"),
    "other role": set_array(0, role="scales"),
    "entry is null": lambda data: signed(data, lambda h: h["arrays"].__setitem__(0, None)),
    "other checksum": set_array(0, crc32="00000000"),
    "first array damaged": lambda data: flipped(data, first_array(data)),
    "hole in the first array": lambda data: _zeroed(data, first_array(data), 2048),
    "small last array damaged": lambda data: flipped(data, len(data) - 64),
}


def _nested(data: bytes) -> bytes:
    length = disk._PREFIX.unpack(data[: disk._PREFIX.size])[2]
    text = (b"[" * 100_000)[:length].ljust(length)
    prefix = disk._PREFIX.pack(disk.MAGIC, disk.VERSION, length, hashlib.sha256(text).digest())
    return prefix + text + data[disk._PREFIX.size + length :]


def _zeroed(data: bytes, start: int, count: int) -> bytes:
    return data[:start] + bytes(count) + data[start + count :]


@pytest.fixture(scope="module", params=PRECISIONS)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, bytes, Any]:
    """A precision, a folder with the disk weights of TINY, their bytes, and what it computes."""
    place = tmp_path_factory.mktemp("made")
    wanted = outputs(TINY, request.param, place)
    (file,) = weights_in(place)
    return request.param, place, file.read_bytes(), wanted


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_or_lying_file_is_made_anew(made: tuple[str, Path, bytes, Any], damage: str) -> None:
    precision, place, good, wanted = made
    (file,) = weights_in(place)
    bad = DAMAGES[damage](good)
    assert bad != good
    file.unlink()
    file.write_bytes(bad)
    np.testing.assert_array_equal(outputs(TINY, precision, place), wanted)
    assert file.read_bytes() == good and others_in(place) == [opening.LOCK_NAME]


def test_an_index_that_leads_out_of_the_table_is_not_mapped(tmp_path: Path) -> None:
    model = HERE / "static_shared"
    wanted = outputs(model, "fp32", tmp_path)
    (file,) = weights_in(tmp_path)
    good = file.read_bytes()
    header = json.loads(good[disk._PREFIX.size : first_array(good)].rstrip(b"\0"))
    number = next(i for i, entry in enumerate(header["arrays"]) if entry["dtype"] == "<i4")
    entry = disk.Entry(**{key: value for key, value in header["arrays"][number].items() if key != "crc32"})
    at = first_array(good) + entry.offset
    bad = good[:at] + (1 << 30).to_bytes(4, "little") + good[at + 4 :]
    checksum = disk._checksum(memoryview(bad)[at : at + entry.bytes])
    file.unlink()
    file.write_bytes(set_array(number, crc32=f"{checksum:08x}")(bad))
    np.testing.assert_array_equal(outputs(model, "fp32", tmp_path), wanted)
    assert file.read_bytes() == good


def test_changed_weights_are_laid_out_again(tmp_path: Path) -> None:
    model, place = tmp_path / "model", tmp_path / "place"
    shutil.copytree(TINY, model)
    before = outputs(model, "fp32", place)
    file = model / "model.safetensors"
    data = bytearray(file.read_bytes())
    data[-1] ^= 0x80  # the sign of the last number: neither size nor header change
    file.write_bytes(data)
    after = outputs(model, "fp32", place)
    assert not np.array_equal(before, after)
    np.testing.assert_array_equal(after, outputs(model, "fp32", None))
    assert len(weights_in(place)) == 1


def test_another_config_of_the_same_weights_lays_them_out_again(tmp_path: Path) -> None:
    model, place = tmp_path / "model", tmp_path / "place"
    shutil.copytree(TINY, model)
    config = json.loads((model / "config.json").read_text())
    outputs(model, "fp32", place)
    (file,) = weights_in(place)
    large = file.stat().st_size
    (model / "config.json").write_text(json.dumps({**config, "num_hidden_layers": config["num_hidden_layers"] - 1}))
    np.testing.assert_array_equal(outputs(model, "fp32", place), outputs(model, "fp32", None))
    assert weights_in(place) == [file] and file.stat().st_size < large


# ---- places that cannot be written to ---------------------------------------------------------------------------


def in_memory_after_all(place: Path, caplog: pytest.LogCaptureFixture) -> str:
    """Load where disk weights fail: the same numbers, one sentence in the log, nothing left; the sentence."""
    wanted = outputs(TINY, "int8", None)
    with caplog.at_level(logging.WARNING):
        np.testing.assert_array_equal(outputs(TINY, "int8", place), wanted)
    (record,) = caplog.records
    assert "in memory instead" in record.getMessage() and str(place) in record.getMessage()
    return record.getMessage()


def test_a_full_disk_is_a_sentence_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=opening.SPARE_BYTES))
    assert "No space left" in in_memory_after_all(tmp_path, caplog)
    assert others_in(tmp_path) == [opening.LOCK_NAME] and not weights_in(tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="the limit is one of Unix")
def test_a_file_that_cannot_be_written_to_its_end_leaves_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        assert "too large" in in_memory_after_all(tmp_path, caplog)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert others_in(tmp_path) == [opening.LOCK_NAME] and not weights_in(tmp_path)


def test_a_disk_that_fails_at_the_end_leaves_the_file_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    outputs(TINY, "int8", tmp_path)
    (file,) = weights_in(tmp_path)
    file.write_bytes(b"old")

    def fail(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    assert "Input/output error" in in_memory_after_all(tmp_path, caplog)
    assert others_in(tmp_path) == [opening.LOCK_NAME] and file.read_bytes() == b"old"


def test_a_folder_that_cannot_be_made_is_a_sentence_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_bytes(b"")
    in_memory_after_all(tmp_path / "file" / "place", caplog)


def test_weights_that_cannot_be_rounded_are_refused_and_leave_nothing(tmp_path: Path) -> None:
    model, place = tmp_path / "model", tmp_path / "place"
    shutil.copytree(TINY, model)
    tensors = {n: v.copy() for n, v in safetensors.numpy.load_file(model / "model.safetensors").items()}
    for value, words in ((1e30, "cannot be packed"), (np.inf, "not finite")):
        tensors["encoder.layer.1.output.dense.weight"][3, 3] = value
        safetensors.numpy.save_file(tensors, model / "model.safetensors")
        with pytest.raises(ModelError, match=words):
            Encoder.load(model, precision="int8", workers=1, disk_weights=place)
    assert others_in(place) == [opening.LOCK_NAME] and not weights_in(place)


# ---- more processes than one ------------------------------------------------------------------------------------

LOAD = "import sys; from engine import Encoder; e = Encoder.load(sys.argv[1], precision='fp32', workers=1, "
LOAD += "disk_weights=__import__('pathlib').Path(sys.argv[2])); "
KILLED = "import os; from engine.weights.sources import Source; count = []\n"
KILLED += (
    "def stop(self):\n    count.append(1)\n    if len(count) == 9: os.kill(os.getpid(), 9)\nSource.release = stop\n"
)
VECTOR = "print(e.encode(['The cat sat.']).tobytes().hex())"
HOLD = "e.encode(['The cat sat.'] * 4); print('ready', flush=True); sys.stdin.readline()"


def start(code: str, model: Path, place: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, str(model), str(place)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
def test_what_a_killed_process_leaves_is_removed_by_the_next(tmp_path: Path) -> None:
    with start(KILLED + LOAD, TINY, tmp_path) as process:
        assert process.wait() == -signal.SIGKILL
    (left,) = [name for name in others_in(tmp_path) if name != opening.LOCK_NAME]
    assert left.endswith(disk.PARTIAL_SUFFIX) and not weights_in(tmp_path)
    np.testing.assert_array_equal(outputs(TINY, "fp32", tmp_path), outputs(TINY, "fp32", None))
    assert others_in(tmp_path) == [opening.LOCK_NAME] and len(weights_in(tmp_path)) == 1


def test_processes_that_start_at_once_agree(tmp_path: Path) -> None:
    with Encoder.load(TINY, precision="fp32", workers=1) as encoder:
        wanted = encoder.encode(["The cat sat."]).tobytes().hex()
    processes = [start(LOAD + VECTOR, TINY, tmp_path) for _ in range(3)]
    assert {process.communicate()[0].strip() for process in processes} == {wanted}
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert others_in(tmp_path) == [opening.LOCK_NAME] and len(weights_in(tmp_path)) == 1


def memory_of(pid: int, file: Path) -> dict[str, int]:
    """Kilobytes of a mapped file in a process, as /proc/PID/smaps counts them."""
    found: dict[str, int] = {}
    inside = False
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        key, *values = line.split()
        if not key.endswith(":"):
            inside = line.endswith(str(file))
        elif inside and values[-1] == "kB":
            found[key[:-1]] = found.get(key[:-1], 0) + int(values[0])
    return found


@pytest.fixture
def two_processes(tmp_path: Path) -> Iterator[tuple[Path, list[subprocess.Popen[str]]]]:
    """Two processes that hold the disk weights of the same model."""
    model = real_models.minilm()
    processes = []
    try:
        for _ in range(2):
            processes.append(start(LOAD + HOLD, model, tmp_path))
            assert processes[-1].stdout is not None and processes[-1].stdout.readline() == "ready\n"
        yield weights_in(tmp_path)[0], processes
    finally:
        for process in processes:
            process.communicate("\n")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts shared pages")
def test_two_processes_share_the_pages(two_processes: tuple[Path, list[subprocess.Popen[str]]]) -> None:
    file, processes = two_processes
    for process in processes:
        found = memory_of(process.pid, file)
        assert found["Rss"] * 1024 >= 0.3 * file.stat().st_size  # every layer's weights; few rows of the table
        assert found["Pss"] <= 0.6 * found["Rss"] and found["Private_Dirty"] == found["Shared_Dirty"] == 0
        assert found["Anonymous"] == 0


def test_disk_weights_are_listed_and_removed(tmp_path: Path) -> None:
    outputs(TINY, "fp32", tmp_path)
    outputs(TINY, "int8", tmp_path)
    (tmp_path / "stray.weights").write_bytes(b"x")
    (tmp_path / f".old{disk.PARTIAL_SUFFIX}").write_bytes(b"x")
    found = disk.files(tmp_path)
    assert [(file.model, file.precision) for file in found] == [("", ""), ("tiny_bert", "fp32"), ("tiny_bert", "int8")]
    assert found[1].source == str(TINY / "model.safetensors")
    assert opening.clear(tmp_path) == sum(file.bytes for file in found)
    assert not weights_in(tmp_path) and others_in(tmp_path) == [opening.LOCK_NAME]
    assert opening.clear(tmp_path / "nowhere") == 0
