"""How int8 is compared with fp32, what is noted of it, and what "auto" makes of the note."""

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from engine import CrossEncoder, Encoder, EngineError, ModelError
from engine.catalog import BUNDLED_MODELS, Catalog
from engine.fidelity import fp32_bytes, measure, probe_texts
from engine.options import NUMERICS
from engine.record import FILE, LEAST_LIKENESS, Fidelity, Record
from engine.weights.convert import convert
from engine.weights.importing import Import, import_model
from tests.goldens.reading import HERE
from tests.made_models import make_unfit_for_int8

GOOD = Fidelity("vectors", 0.9995, 0.9999, 0.98, 0.0, 66, NUMERICS)
BAD = dataclasses.replace(GOOD, worst=LEAST_LIKENESS - 0.001)


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A copy of a small model, to be changed."""
    return Path(shutil.copytree(HERE / "tiny_bert", tmp_path / "tiny_bert"))


def test_the_texts_are_many_different_short_and_long_ones() -> None:
    texts = probe_texts()
    assert len(texts) == len(set(texts)) >= 64
    assert "" in texts and " " in texts and max(len(text.split()) for text in texts) > 150
    alphabets = ("a", "и", "λ", "ق", "ש", "क", "ก", "日", "기", "🙂")
    assert all(any(letter in text for text in texts) for letter in alphabets)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("tiny_bert", "vectors"), ("gemma3", "vectors"), ("static", "vectors"), ("late_stanford", "tokens"),
     ("reranker_bert", "scores")],
)  # fmt: skip
def test_every_kind_of_model_is_measured(name: str, kind: str) -> None:
    steps: list[tuple[int, int]] = []
    found = measure(HERE / name, workers=1, progress=lambda done, total: steps.append((done, total)))
    assert found is not None and (found.kind, found.texts, found.numerics) == (kind, len(probe_texts()), NUMERICS)
    assert 0.999 <= found.worst <= found.mean < 1.0 and 0.95 <= found.top10 <= 1.0
    assert (found.largest_difference > 0) == (kind == "scores")
    assert steps[-1] == (2 * found.texts, 2 * found.texts) and steps == sorted(steps)


def test_the_worst_cosine_is_that_of_the_encoders_own_vectors() -> None:
    found = measure(HERE / "tiny_bert", workers=1)
    rows = []
    for precision in ("fp32", "int8"):
        with Encoder.load(HERE / "tiny_bert", precision=precision, workers=1) as encoder:
            rows.append(encoder.encode(probe_texts(), role="document").astype(np.float64))
    cosines = (rows[0] * rows[1]).sum(1) / np.linalg.norm(rows[0], axis=1) / np.linalg.norm(rows[1], axis=1)
    assert found is not None
    assert found.worst == pytest.approx(cosines.min(), abs=2e-6)
    assert found.mean == pytest.approx(cosines.mean(), abs=2e-6)


def test_packed_weights_have_nothing_to_be_compared_with(tmp_path: Path) -> None:
    convert(HERE / "tiny_bert", tmp_path / "packed")
    assert measure(tmp_path / "packed") is None


def test_weights_that_compute_no_numbers_are_named(tiny: Path) -> None:
    tensors = safetensors.numpy.load_file(tiny / "model.safetensors")
    tensors["embeddings.word_embeddings.weight"][:] = 3e38
    safetensors.numpy.save_file(tensors, tiny / "model.safetensors")
    with np.errstate(all="ignore"), pytest.raises(ModelError, match="not finite"):
        measure(tiny, workers=1)


def test_auto_takes_fp32_where_int8_was_measured_to_be_bad(tiny: Path, tmp_path: Path) -> None:
    tensors = safetensors.numpy.load_file(tiny / "model.safetensors")
    make_unfit_for_int8(tensors)
    safetensors.numpy.save_file(tensors, tiny / "model.safetensors")
    path = import_model(tiny, tmp_path / "models")
    found = Record.read(path).fidelity
    assert found is not None and found.worst < LEAST_LIKENESS
    for precision, computed in (("auto", "fp32"), ("int8", "int8"), ("fp32", "fp32")):
        with Encoder.load(path, precision=precision, workers=1) as encoder:
            assert encoder.precision == computed
    with pytest.raises(EngineError, match=r"Int8 changes tiny_bert too much.*without --pack"):
        import_model(tiny, tmp_path / "others", Import(pack=True))
    assert not list((tmp_path / "others").glob("*"))


@pytest.mark.parametrize(
    ("fidelity", "computed"),
    [(GOOD, "int8"), (BAD, "fp32"), (dataclasses.replace(BAD, numerics=NUMERICS - 1), "int8"), (None, "int8")],
    ids=["good", "bad", "measured by other numbers", "never measured"],
)
def test_auto_goes_by_the_note(tiny: Path, fidelity: Fidelity | None, computed: str) -> None:
    Record("owner/tiny_bert", "0" * 40, fidelity).write(tiny)
    assert Record.read(tiny) == Record("owner/tiny_bert", "0" * 40, fidelity)
    with Encoder.load(tiny, workers=1) as encoder:
        assert encoder.precision == computed


def test_auto_goes_by_the_note_of_a_reranker_too(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(HERE / "reranker_bert", tmp_path / "reranker"))
    Record(fidelity=dataclasses.replace(BAD, kind="scores")).write(folder)
    with CrossEncoder.load(folder, workers=1) as reranker:
        assert reranker.precision == "fp32"


def test_packed_weights_stay_int8_whatever_the_note_says(tiny: Path, tmp_path: Path) -> None:
    convert(tiny, tmp_path / "packed", record=Record(fidelity=BAD))
    with Encoder.load(tmp_path / "packed", workers=1) as encoder:
        assert encoder.precision == "int8"


def test_the_bundled_model_was_measured() -> None:
    known, record = Catalog.load().find("all-MiniLM-L6-v2"), Record.read(BUNDLED_MODELS / "all-MiniLM-L6-v2")
    assert known is not None and (record.source, record.revision) == (known.hub_id, known.revision)
    assert record.fidelity is not None and record.fidelity.worst >= 0.999 and record.fidelity.numerics == NUMERICS


@pytest.mark.parametrize("note", ["[]", "{", '{"source": 1}', '{"int8": {"kind": "colours"}}', '{"int8": true}'])
def test_a_broken_note_is_a_sentence(tiny: Path, note: str) -> None:
    (tiny / FILE).write_text(note)
    with pytest.raises(ModelError, match=FILE):
        Encoder.load(tiny, workers=1)


def test_a_note_with_a_number_missing_is_a_sentence(tiny: Path) -> None:
    Record(fidelity=GOOD).write(tiny)
    values = json.loads((tiny / FILE).read_text())
    values["int8"]["worst"] = "0.9"
    (tiny / FILE).write_text(json.dumps(values))
    with pytest.raises(ModelError, match="delete the file"):
        Record.read(tiny)


def test_the_memory_that_fp32_takes_is_counted() -> None:
    tensors = safetensors.numpy.load_file(HERE / "reranker_bert" / "model.safetensors")
    assert fp32_bytes(HERE / "reranker_bert") == sum(tensor.nbytes for tensor in tensors.values())
