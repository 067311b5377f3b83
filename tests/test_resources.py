"""What comes with the program: sample documents in every format, made products equal to their sources, icons."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pypdfium2
import pytest

import resources
from tests.conftest import ROOT

FORMATS = {".txt", ".md", ".html", ".pdf", ".docx"}


@pytest.fixture(scope="module")
def make_samples() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_samples", ROOT / "packaging" / "make_samples.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def samples() -> list[Path]:
    return [file for file in sorted(resources.path("samples").rglob("*")) if file.is_file()]


def test_there_are_a_few_dozen_samples_in_every_format() -> None:
    assert {file.suffix for file in samples()} == FORMATS
    assert 36 <= len(samples()) <= 60
    assert sum(file.stat().st_size for file in samples()) < 600_000


def test_made_samples_are_what_their_sources_make(make_samples: ModuleType) -> None:
    made = dict(make_samples.products())
    assert set(made) == {file for file in samples() if file.suffix in (".pdf", ".docx")}
    for path, data in made.items():
        assert path.read_bytes() == data, f"run packaging/make_samples.py: {path} differs from its source"


def test_every_word_of_a_source_is_in_its_pdf(make_samples: ModuleType) -> None:
    for path in (file for file in samples() if file.suffix == ".pdf"):
        source = make_samples.SOURCES / path.relative_to(make_samples.TARGETS).with_suffix(".pdf.txt")
        words = [word for word in source.read_text(encoding="utf-8").split() if word not in ("#", "##", "---")]
        with pypdfium2.PdfDocument(path) as document:
            text = " ".join(page.get_textpage().get_text_range() for page in document)
        assert text.split() == words


def test_every_text_sample_is_utf8() -> None:
    for file in samples():
        if file.suffix in (".txt", ".md", ".html"):
            assert file.read_text(encoding="utf-8").strip(), file


def test_a_missing_resource_is_a_sentence() -> None:
    with pytest.raises(resources.ResourceError, match="install it again"):
        resources.path("no", "such", "thing")


def test_a_package_built_with_another_model_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert resources.default_model() == "all-MiniLM-L6-v2"
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "default.txt").write_text("another\n", encoding="utf-8")
    monkeypatch.setattr(resources, "folder", lambda: tmp_path)
    assert resources.default_model() == "another"
