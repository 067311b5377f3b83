"""Names and where they lead."""

import shutil
from pathlib import Path

import pytest

from engine.catalog import BUNDLED_MODELS, DEFAULT_MODEL, Catalog, CatalogModel, local_models, model_path
from engine.errors import ModelError
from engine.layers.pooling import POOLING_MODES
from engine.models import FAMILIES

TINY = Path(__file__).parent.parent / "goldens" / "tiny_bert"


@pytest.mark.parametrize("model", list(Catalog.load()), ids=lambda model: model.name)
def test_every_entry_is_complete(model: CatalogModel) -> None:
    assert model.hub_id.endswith("/" + model.name)
    assert model.dim > 0 and model.max_tokens > 0 and model.licence and model.languages
    assert model.revision is None or len(model.revision) == 40
    assert model.sha256 is None or len(model.sha256) == 64
    assert all(0 < size <= model.dim for size in model.matryoshka)
    if model.model_type in FAMILIES:
        assert model.pooling in POOLING_MODES


def test_a_name_is_found_with_or_without_its_owner() -> None:
    catalog = Catalog.load()
    for name in ("bge-small-en-v1.5", "BAAI/bge-small-en-v1.5", "BGE-Small-EN-v1.5"):
        found = catalog.find(name)
        assert found is not None and found.hub_id == "BAAI/bge-small-en-v1.5"
    assert catalog.find("someone/bge-small-en-v1.5") is None
    assert catalog.find("") is None


def test_the_default_model_is_simply_there() -> None:
    assert model_path(DEFAULT_MODEL) == BUNDLED_MODELS / DEFAULT_MODEL
    assert model_path("sentence-transformers/all-MiniLM-L6-v2") == BUNDLED_MODELS / DEFAULT_MODEL


def test_folders_and_imported_names_lead_to_their_folder(tmp_path: Path) -> None:
    assert model_path(TINY) == TINY and model_path(str(TINY)) == TINY
    shutil.copytree(TINY, tmp_path / "Mine")
    (tmp_path / ".half.partial").mkdir()
    assert model_path("mine", tmp_path) == tmp_path / "Mine"
    assert set(local_models(tmp_path)) == {DEFAULT_MODEL, "Mine"}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("all-minilm-l6-v3", ("Did you mean all-MiniLM-L6-v2?", "Models here: all-MiniLM-L6-v2")),
        ("/no/such/folder", ("'/no/such/folder'", "Models here: all-MiniLM-L6-v2")),
        ("bge-base-en-v1.5", ("known but not on this machine", "inkling models import", "BAAI/bge-base-en-v1.5")),
        ("", ("no known model called ''",)),
        ("~nobody-of-this-name/tiny", ("'~nobody-of-this-name/tiny'",)),
        ("hf:someone/tiny", ("someone/tiny is not on", "`inkling models pull hf:someone/tiny` fetches it")),
        ("hf:no/such/name", ("OWNER/NAME or OWNER/NAME@REVISION",)),
    ],
)
def test_a_name_that_leads_nowhere_says_what_there_is(name: str, words: tuple[str, ...]) -> None:
    with pytest.raises(ModelError) as caught:
        model_path(name)
    for word in words:
        assert word in str(caught.value)


def test_a_folder_that_is_no_model_is_called_so(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="it is no model"):
        model_path(tmp_path)
