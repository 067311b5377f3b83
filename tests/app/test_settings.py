"""Settings: defaults, bounds with a sentence, and a file that is replaced in one step."""

import os
import sys
import tomllib
from contextlib import ExitStack
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app import settings
from app.settings import Settings, SettingsError
from engine.options import PRECISIONS
from tests.app.permissions import forbidden


def test_no_file_means_the_defaults(tmp_path: Path) -> None:
    assert settings.load(tmp_path / "settings.toml") == Settings()


def test_what_is_saved_is_loaded_again(tmp_path: Path) -> None:
    path = tmp_path / "new" / "settings.toml"
    chosen = replace(Settings(), theme="dark", index_workers=3, model='a "b"\\c\n\x7fü')
    settings.save(path, chosen)
    assert settings.load(path) == chosen


@given(st.text().filter(lambda text: text.isascii() or text.encode("utf-8", "replace").decode() == text))
def test_any_text_survives_the_file(text: str) -> None:
    assert tomllib.loads("model = " + settings._toml(text))["model"] == text


def test_unknown_keys_of_a_newer_version_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    newer = 'future = [1, 2]\ntheme = "light"\n[saved.one]\nquery = "x y"\nday = 2024-05-01\n'
    path.write_text(newer, encoding="utf-8")
    settings.save(path, settings.change(settings.load(path), "theme", "dark"))
    values = tomllib.loads(path.read_text(encoding="utf-8"))
    assert (values["future"], values["theme"], values["saved"]["one"]["query"]) == ([1, 2], "dark", "x y")
    assert str(values["saved"]["one"]["day"]) == "2024-05-01"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("index_workers = -1", ["index_workers = -1", "0 to 256 cores"]),
        ('index_workers = "two"', ["index_workers", "a number"]),
        ("index_workers = true", ["index_workers", "a number"]),
        ('theme = "pink"', ["theme", "system, light, dark"]),
        ("model = 7", ["model = 7", "a text"]),
        ('model = " "', ["model", "not empty"]),
    ],
)
def test_a_value_that_does_not_fit_is_named_with_its_bounds(line: str, words: list[str], tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(line, encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        settings.load(path)
    assert all(word in str(caught.value) for word in [str(path), *words])


def test_a_broken_file_is_a_sentence_and_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text("theme = ", encoding="utf-8")
    with pytest.raises(SettingsError, match="correct it or delete it"):
        settings.save(path, Settings())
    assert path.read_text(encoding="utf-8") == "theme = "


@pytest.mark.parametrize("kind", ["a folder", "below a file", "nested without end", "forbidden"])
def test_a_file_that_cannot_be_read_is_a_sentence(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    with ExitStack() as stack:
        if kind == "a folder":
            path.mkdir()
        elif kind == "below a file":
            path.touch()
            path /= "settings.toml"
        elif kind == "nested without end":
            path.write_text("theme = " + "[" * 100_000, encoding="utf-8")
        elif sys.platform != "win32":
            stack.enter_context(forbidden(tmp_path))
        else:
            path.mkdir()
        with pytest.raises(SettingsError, match=r"settings\.toml"):
            settings.load(path)


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "settings.toml"
    settings.save(path, Settings())
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        settings.save(path, replace(Settings(), theme="dark"))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_an_unknown_key_cannot_be_changed() -> None:
    with pytest.raises(SettingsError, match="no setting named colour"):
        settings.change(Settings(), "colour", "red")


def test_every_setting_has_a_help_and_a_default_within_its_bounds() -> None:
    for each in fields(Settings):
        assert each.metadata["help"]
        assert settings.change(Settings(), each.name, getattr(Settings(), each.name)) == Settings()


def test_no_precision_is_offered_that_the_engine_refuses() -> None:
    (precision,) = [each for each in fields(Settings) if each.name == "precision"]
    assert set(precision.metadata["choices"]) == set(PRECISIONS)


def test_the_indexer_hears_what_was_chosen(tmp_path: Path) -> None:
    chosen = replace(Settings(), index_workers=5, precision="fp32", vector_chunks_per_file=9)
    options = settings.indexer_options(chosen, tmp_path, watch=False)
    assert (options.workers, options.precision, options.vector_chunks_per_file, options.watch) == (5, "fp32", 9, False)
    assert settings.indexer_options(Settings(), tmp_path).workers >= 1
