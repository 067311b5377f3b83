"""The packed file: the same numbers as quantising on load, the same bytes every time, the bytes that ship."""

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import psutil
import pytest
import safetensors.numpy

from engine.catalog import BUNDLED_MODELS, Catalog, model_path
from engine.errors import ModelError
from engine.fidelity import measure
from engine.folder import ModelFolder
from engine.record import Record
from engine.weights import packed
from engine.weights.convert import convert
from engine.weights.importing import Import, import_model, verify
from engine.weights.loaded import Loaded
from engine.weights.safetensors import Weights
from engine.weights.stored import StoredPrecision
from tests import real_models

GOLDENS = Path(__file__).parents[2] / "goldens"
TINY, ODD = GOLDENS / "tiny_bert", GOLDENS / "odd_bert"
BUNDLED = BUNDLED_MODELS / "all-MiniLM-L6-v2"


def load(path: Path, precision: StoredPrecision) -> dict[str, Loaded]:
    folder = ModelFolder.open(path)
    return packed.load(folder.parameters(), folder.weights(), precision, folder.backbone.family.prefixes)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(f.relative_to(folder)): f.read_bytes() for f in sorted(folder.rglob("*")) if f.is_file()}


def assert_same(one: dict[str, Loaded], other: dict[str, Loaded]) -> None:
    assert list(one) == list(other)
    for name in one:
        assert type(one[name]) is type(other[name]), name
        for field in dataclasses.fields(one[name]):
            np.testing.assert_array_equal(getattr(one[name], field.name), getattr(other[name], field.name), name)


@pytest.mark.parametrize("source", [TINY, ODD], ids=lambda path: path.name)
def test_the_packed_file_holds_what_quantising_on_load_gives(tmp_path: Path, source: Path) -> None:
    convert(source, tmp_path / "out")
    assert_same(load(tmp_path / "out", "int8"), load(source, "int8"))


@pytest.mark.parametrize("source", [TINY, ODD], ids=lambda path: path.name)
def test_converting_twice_gives_the_same_bytes(tmp_path: Path, source: Path) -> None:
    convert(source, tmp_path / "one")
    convert(source, tmp_path / "two")
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_a_packed_folder_says_by_itself_all_that_the_published_one_said(tmp_path: Path) -> None:
    convert(ODD, tmp_path / "renamed")
    found, before = ModelFolder.open(tmp_path / "renamed"), ModelFolder.open(ODD)
    for field in ("model_type", "hidden", "pooling", "normalize", "max_tokens", "prompts", "config"):
        assert getattr(found, field) == getattr(before, field)
    metadata = Weights.open(tmp_path / "renamed").metadata
    assert metadata["format"] == "inkling-int8" and metadata["version"] == "1" and metadata["source"] == "odd_bert"
    assert metadata["source_sha256"] == Weights.open(ODD).fingerprint


def wide_static(folder: Path) -> Path:
    """A static model with 400 numbers a row."""
    shutil.copytree(GOLDENS / "static", folder)
    rows = safetensors.numpy.load_file(folder / "model.safetensors")["embeddings"].shape[0]
    values = np.random.default_rng(3).standard_normal((rows, 400)).astype(np.float32)
    safetensors.numpy.save_file({"embeddings": values}, folder / "model.safetensors")
    return folder


def test_wide_tables_are_packed_as_version_2(tmp_path: Path) -> None:
    source = wide_static(tmp_path / "wide")
    convert(source, tmp_path / "out")
    assert Weights.open(tmp_path / "out").metadata["version"] == "2"
    assert "one for each 64 numbers" in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    found = load(tmp_path / "out", "int8")
    assert_same(found, load(source, "int8"))
    assert found["table"].scales.shape[1] == 7


def test_wide_tables_of_version_1_are_still_read(tmp_path: Path) -> None:
    convert(wide_static(tmp_path / "wide"), tmp_path / "out")
    file = tmp_path / "out" / "model.safetensors"
    tensors = safetensors.numpy.load_file(file)
    tensors["table.scale"] = tensors["table.scale"][:, 0].copy()
    packed.write(file, tensors, {**Weights.open(tmp_path / "out").metadata, "version": "1"})
    table = load(tmp_path / "out", "int8")["table"]
    np.testing.assert_array_equal(
        table.rows(np.arange(9)), tensors["table.q8"][:9] * tensors["table.scale"][:9, None].astype(np.float32)
    )


def test_other_readers_of_safetensors_read_the_file(tmp_path: Path) -> None:
    convert(TINY, tmp_path / "out")
    found = safetensors.numpy.load_file(tmp_path / "out" / "model.safetensors")
    assert found["layers.0.qkv.weight.q8"].shape == (12, 32, 16, 2)
    assert found["layers.0.qkv.weight.scale"].dtype == np.float16
    assert not any("pooler" in name for name in found)


def test_every_tensor_of_whole_lines_lies_on_one(tmp_path: Path) -> None:
    with Weights.open(BUNDLED) as weights:
        for name in weights.names:
            array = weights.array(name)
            assert array.nbytes % 64 or array.ctypes.data % 64 == 0, name


def test_the_bundled_model_is_what_converting_the_published_one_gives(tmp_path: Path) -> None:
    steps: list[tuple[int, int]] = []
    convert(real_models.minilm(), tmp_path / "out", lambda done, total: steps.append((done, total)))
    bundled = contents(BUNDLED)
    assert bundled.pop("inkling.json")
    assert contents(tmp_path / "out") == bundled
    noted, measured = Record.read(BUNDLED).fidelity, measure(real_models.minilm(), workers=1)
    assert noted is not None and measured is not None
    for field in ("worst", "mean", "top10"):  # other kernels round otherwise
        assert getattr(noted, field) == pytest.approx(getattr(measured, field), abs=0.002)
    assert (BUNDLED / "model.safetensors").stat().st_size <= 24_000_000
    assert steps[-1][0] == steps[-1][1] and steps == sorted(steps)


def test_the_bundled_model_is_whole_and_genuine() -> None:
    verdict = verify(BUNDLED)
    known = Catalog.load().find("all-MiniLM-L6-v2")
    assert known is not None and verdict.genuine and verdict.packed and verdict.sha256 == known.packed_sha256
    assert "Apache License" in (BUNDLED / "LICENSE").read_text(encoding="utf-8")
    assert known.sha256 is not None and known.sha256 in (BUNDLED / "README.md").read_text(encoding="utf-8")


def test_int8_weights_cannot_stand_for_fp32() -> None:
    with pytest.raises(ModelError, match="int8 weights only"):
        load(BUNDLED, "fp32")


def test_a_newer_format_is_a_sentence(tmp_path: Path) -> None:
    packed.write(
        tmp_path / "model.safetensors", {"a": np.zeros(2, np.float32)}, {"format": packed.FORMAT, "version": "9"}
    )
    with pytest.raises(ModelError, match=r"'version'.*'9'"):
        packed.is_packed(Weights.open(tmp_path))


def rewrite(folder: Path, **changes: np.ndarray | None) -> None:
    """Replace tensors of a published folder; None takes one away."""
    file = folder / "model.safetensors"
    tensors = {name: value.copy() for name, value in safetensors.numpy.load_file(file).items()}
    tensors.update({name: value for name, value in changes.items() if value is not None})
    safetensors.numpy.save_file({n: v for n, v in tensors.items() if n not in changes or changes[n] is not None}, file)


def test_older_names_and_a_prefix_are_understood(tmp_path: Path) -> None:
    folder = tmp_path / "old"
    shutil.copytree(TINY, folder)
    old = {
        "bert." + name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): value
        for name, value in safetensors.numpy.load_file(TINY / "model.safetensors").items()
    }
    safetensors.numpy.save_file(old, folder / "model.safetensors")
    assert_same(load(folder, "fp32"), load(TINY, "fp32"))


QUERY = "encoder.layer.0.attention.self.query.weight"


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_tensors_that_do_not_fit_the_config_are_named(tmp_path: Path, precision: StoredPrecision) -> None:
    folder = tmp_path / "broken"
    shutil.copytree(TINY, folder)
    rewrite(folder, **{QUERY: np.zeros((60, 64), np.float32)})
    with pytest.raises(ModelError, match=r"query\.weight"):
        load(folder, precision)
    rewrite(folder, **{QUERY: None})
    with pytest.raises(ModelError, match=r"no tensor.*query"):
        load(folder, precision)


def test_weights_that_are_no_numbers_are_not_packed(tmp_path: Path) -> None:
    folder = tmp_path / "nan"
    shutil.copytree(TINY, folder)
    rewrite(folder, **{QUERY: np.full((64, 64), np.nan, np.float32)})
    with pytest.raises(ModelError, match="not finite"):
        convert(folder, tmp_path / "out")
    with pytest.raises(ModelError, match="not finite"):
        verify(folder)
    rewrite(folder, **{QUERY: np.full((64, 64), 1e30, np.float32)})
    with pytest.raises(ModelError, match=r"cannot be packed.*too large"):
        convert(folder, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["nan"]


def test_nothing_is_ever_overwritten(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("keep me")
    with pytest.raises(ModelError, match="exists already"):
        convert(TINY, tmp_path / "out")
    assert contents(tmp_path / "out") == {"mine.txt": b"keep me"}


def test_a_packed_folder_is_not_packed_again(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="packed already"):
        convert(BUNDLED, tmp_path / "out")


def test_a_known_name_must_hold_the_known_weights(tmp_path: Path) -> None:
    impostor = tmp_path / "all-mpnet-base-v2"
    shutil.copytree(TINY, impostor)
    with pytest.raises(ModelError, match="not all-mpnet-base-v2 as published"):
        convert(impostor, tmp_path / "out")
    with pytest.raises(ModelError, match="not all-mpnet-base-v2 as published"):
        import_model(impostor, tmp_path / "models")


def test_a_changed_bundled_model_is_found_out(tmp_path: Path) -> None:
    copy = tmp_path / "all-MiniLM-L6-v2"
    shutil.copytree(BUNDLED, copy)
    with (copy / "model.safetensors").open("r+b") as file:
        file.seek(20_000_000)
        file.write(b"\x01")
    with pytest.raises(ModelError, match="damaged or was changed"):
        verify(copy)


def test_an_imported_model_is_a_copy_that_works(tmp_path: Path) -> None:
    steps: list[tuple[int, int]] = []
    path = import_model(TINY, tmp_path / "models", Import(copying=lambda done, total: steps.append((done, total))))
    assert path == tmp_path / "models" / "tiny_bert" and steps[-1][0] == steps[-1][1]
    assert not (path / "reference.npz").exists()
    assert_same(load(path, "fp32"), load(TINY, "fp32"))
    with pytest.raises(ModelError, match="exists already"):
        import_model(TINY, tmp_path / "models")


def test_a_model_in_the_cache_of_the_hubs_tools_is_known_by_its_commit(tmp_path: Path) -> None:
    folder = tmp_path / "models--someone--tiny" / "snapshots" / ("a" * 40)
    shutil.copytree(TINY, folder)
    path = import_model(folder, tmp_path / "models", Import(measure=False))
    assert path.name == "tiny" and Record.read(path) == Record("someone/tiny", "a" * 40)
    assert model_path(f"hf:someone/tiny@{'a' * 40}", tmp_path / "models") == path


def test_a_model_that_fits_no_memory_in_fp32_is_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = psutil.virtual_memory()._replace(available=1000)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    path = import_model(TINY, tmp_path / "models")
    assert Record.read(path).fidelity is None


def test_a_second_model_of_a_bundled_name_gets_a_name_of_its_own(tmp_path: Path) -> None:
    path = import_model(BUNDLED, tmp_path / "models")
    assert path.name == "all-MiniLM-L6-v2-published"


def test_a_sharded_model_is_imported_whole(tmp_path: Path) -> None:
    folder = tmp_path / "sharded"
    shutil.copytree(TINY, folder)
    tensors = safetensors.numpy.load_file(folder / "model.safetensors")
    names = sorted(tensors)
    parts = {"model-00001-of-00002.safetensors": names[:20], "model-00002-of-00002.safetensors": names[20:]}
    for file, inside in parts.items():
        safetensors.numpy.save_file({name: tensors[name] for name in inside}, folder / file)
    weight_map = {name: file for file, inside in parts.items() for name in inside}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    (folder / "model.safetensors").unlink()
    path = import_model(folder, tmp_path / "models")
    assert_same(load(path, "fp32"), load(TINY, "fp32"))
