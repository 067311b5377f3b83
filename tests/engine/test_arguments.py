"""What is given to the public classes and cannot be is a sentence that names it; the rest is taken as it is meant."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from app.settings import MOST_WORKERS as MOST_OF_SETTINGS
from engine import CrossEncoder, Encoder, EngineError, Models
from engine.options import MOST_WORKERS
from tests.goldens.reading import HERE

TINY, RERANKER, LATE = HERE / "tiny_bert", HERE / "reranker_bert", HERE / "late_pylate"

NO_NUMBERS = (2.5, 2.0, True, "3", [3], float("nan"))
LOADERS: tuple[Callable[..., Any], ...] = (
    lambda **options: Encoder.load(TINY, **options),
    lambda **options: CrossEncoder.load(RERANKER, **options),
    lambda **options: Models(**options),
)


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder.load(TINY, workers=1)


@pytest.mark.parametrize("load", LOADERS)
def test_workers_are_a_whole_number_within_reason(load: Callable[..., Any]) -> None:
    for value in NO_NUMBERS:
        with pytest.raises(EngineError, match=r"^workers is .*, which is not a whole number"):
            load(workers=value)
    for value in (0, -1, MOST_WORKERS + 1, 2**32, 10**30):
        with pytest.raises(EngineError, match=rf"^A worker count of {value} is not possible; it must be from 1 to 256"):
            load(workers=value)
    load(workers=np.int64(2)).close()


def test_the_settings_allow_as_many_workers_as_the_engine() -> None:
    assert MOST_OF_SETTINGS == MOST_WORKERS


@pytest.mark.parametrize("load", LOADERS)
def test_precisions_and_folders_of_another_kind_are_sentences(load: Callable[..., Any]) -> None:
    for value in (None, 8, ["int8"], b"int8", "INT8"):
        with pytest.raises(EngineError, match=r"^Precision .* is not one of auto, fp32"):
            load(precision=value)
    for value in (3, b"/tmp", True):
        with pytest.raises(EngineError, match=r"^disk_weights is .*, which is not a folder's path"):
            load(disk_weights=value)


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_widths_and_lengths_are_whole_numbers(encoder: Encoder, value: Any) -> None:
    with pytest.raises(EngineError, match=r"^dim is .*, which is not a whole number"):
        Encoder.load(TINY, dim=value, force_dim=True)
    with pytest.raises(EngineError, match=r"^max_tokens is .*, which is not a whole number"):
        Encoder.load(TINY, max_tokens=value)
    with pytest.raises(EngineError, match=r"^dim is .*, which is not a whole number"):
        encoder.at_dim(value)
    with pytest.raises(EngineError, match=r"^overlap is .*, which is not a whole number"):
        encoder.encode_long(["x"], overlap=value)
    with Models(workers=1) as models, pytest.raises(EngineError, match=r"^dim is .*, which is not a whole number"):
        models.get(TINY, dim=value)


def test_numbers_of_numpy_are_numbers() -> None:
    with Encoder.load(TINY, workers=1, dim=np.int32(32), force_dim=True, max_tokens=np.int64(9)) as encoder:
        assert encoder.encode(["x"]).shape == (1, 32) and encoder.dim == 32
        assert encoder.encode_long(["x " * 20], overlap=np.uint8(1))[0].windows.shape[1] == 32


def test_too_few_tokens_say_how_many_are_needed() -> None:
    with pytest.raises(EngineError, match=r"adds 2 special tokens to a text, so 2 in all leave none .* at least 3 are"):
        Encoder.load(TINY, max_tokens=2)
    with Encoder.load(TINY, max_tokens=3, workers=1) as encoder:
        assert encoder.encode(["several words"]).shape == (1, 64)


@pytest.mark.parametrize("load", [Encoder.load, CrossEncoder.load])
def test_a_model_is_a_name_or_a_path(load: Callable[..., Any]) -> None:
    for value in (None, 3, b"tiny"):
        with pytest.raises(EngineError, match=r"^The model is given as .*, which is neither a name nor"):
            load(value)


def test_folders_may_be_given_as_texts(tmp_path: Path) -> None:
    with Encoder.load(TINY, precision="fp32", workers=1, disk_weights=str(tmp_path)) as encoder:
        assert encoder.encode(["x"]).shape == (1, 64)
    assert len(list(tmp_path.glob("tiny_bert-*"))) == 1
    with Models(models_dir=str(HERE), disk_weights=str(tmp_path), workers=1) as models:
        assert models.get("tiny_bert").encode(["x"]).shape == (1, 64)


@pytest.mark.parametrize("value", [-1, float("nan"), "5", True])
def test_a_time_to_be_idle_is_a_number_of_seconds(value: Any) -> None:
    with pytest.raises(EngineError, match=r"^idle_seconds is .*, which is not a number of seconds"):
        Models(idle_seconds=value)


@pytest.mark.parametrize("value", [float("inf"), 1e300])
def test_a_time_to_be_idle_may_be_as_long_as_it_likes(value: float) -> None:
    with Models(idle_seconds=value, workers=1) as models:
        assert models.get(TINY) is models.get(TINY)


@pytest.mark.parametrize("method", ["encode", "encode_tokens", "encode_all", "encode_long", "token_ids"])
def test_texts_are_a_list_of_texts(encoder: Encoder, method: str) -> None:
    call = getattr(encoder, method)
    with pytest.raises(EngineError, match=r"^texts is one text, not a list of texts: put it into a list"):
        call("hello")
    with pytest.raises(EngineError, match=r"^texts holds at index 1 something of the type float, not a text"):
        call(["hello", float("nan")])
    for value in (None, 3, iter(["x"]), {"x"}):
        with pytest.raises(EngineError, match=r"^texts is of the type .*, not a list of texts"):
            call(value)
    for good in (("one", "two"), np.array(["one", "two"])):
        call(good)
    with pytest.raises(EngineError, match=r"^role is 'passage'; it can be 'query' or 'document', or None"):
        call(["x"], role="passage")
    with pytest.raises(EngineError, match=r"^prompt is of the type int, not a text"):
        call(["x"], prompt=3)


def test_a_text_and_a_query_are_texts(encoder: Encoder) -> None:
    with pytest.raises(EngineError, match=r"^text is of the type list, not a text"):
        encoder.token_spans(cast(Any, ["x"]))
    with CrossEncoder.load(RERANKER, workers=1) as reranker:
        with pytest.raises(EngineError, match=r"^query is of the type list, not a text"):
            reranker.score(cast(Any, ["x"]), ["y"])
        with pytest.raises(EngineError, match=r"^passages is one text"):
            reranker.score("x", "y")
        with pytest.raises(EngineError, match=r"^passages holds at index 0"):
            reranker.score("x", cast(Any, [b"y"]))


def test_late_interaction_asks_for_a_role_that_there_is() -> None:
    with Encoder.load(LATE, workers=1) as late:
        with pytest.raises(EngineError, match=r"^role is 'passage'"):
            late.encode_tokens(["x"], role=cast(Any, "passage"))
        with pytest.raises(EngineError, match=r"give one of the roles"):
            late.encode_tokens(["x"])
        with pytest.raises(EngineError, match=r"^texts is one text"):
            late.encode_tokens("x", role="query")
