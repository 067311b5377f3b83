"""Every broken or unsupported model folder ends in one sentence that says what is wrong, and in nothing else.

Through the commands: exit code 1, file and key named, no trace, nothing installed, nothing of the folder run, in time
and in little memory. Most run in this process, for starting one takes longer than refusing; some in a process of their
own, those first that would wait for ever or take all memory if they were not refused.
"""

import os
import shutil
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import pytest

from app.__main__ import main
from engine import CrossEncoder, Encoder, ModelError
from tests.app.permissions import forbidden
from tests.engine.breaking import MARKER, config, tokenizer, write
from tests.engine.broken_folders import ALL, BROKEN
from tests.goldens.reading import HERE

LIMIT_S = 2.0
LIMIT_BYTES = 300_000_000
LONGEST_WAIT_S = 300  # for a process that might hang, on a machine that may be busy

# Those whose refusal is a matter of sizes that no memory holds.
ABSURD = (
    "a width of a billion", "a billion layers", "a billion words", "a trillion positions", "buckets without end",
    "a thousand layers that are not there", "a shape whose product overflows", "a header of 2^63 bytes",
    "a config of 100 MB", "a tokenizer of 200 MB", "a normaliser of garbage", "a head of a million columns",
)  # fmt: skip

# Those tried in a process of their own.
ALONE = (
    "a pipe for weights", "a device for weights", "a device for a tokenizer", "a pipe for a config",
    "a pickle named safetensors", "a config that needs code of the folder", "a special token past the table",
    "a normaliser of garbage", "one NaN in a linear layer",
)  # fmt: skip


def commands(folder: Path, data: Path) -> list[list[str]]:
    """What is tried on a folder."""
    start = ["--data-dir", str(data)]
    return [[*start, "embed", "--workers", "1", "--model", str(folder), "x"], [*start, "models", "import", str(folder)]]


def assert_refused(code: int, err: str, words: tuple[str, ...]) -> None:
    """Exit code 1, and one sentence on stderr that says all of these."""
    assert code == 1, err
    assert err.startswith("inkling: ") and err.endswith(".\n") and err.count("\n") == 1, err
    for word in words:
        assert word in err


def assert_untouched(place: Path) -> None:
    """Nothing was installed, not even in part, and no code of the folder was run."""
    assert not (place / MARKER).exists()
    models = place / "data" / "models"
    assert not models.exists() or not list(models.iterdir())


def test_there_are_enough_of_them() -> None:
    assert len(BROKEN) >= 100 and {*ABSURD, *ALONE} <= {*ALL, *(ALONE if sys.platform == "win32" else ())}


@pytest.mark.parametrize("what", ALL)
def test_a_broken_folder_is_refused_in_one_sentence(
    tmp_path: Path, what: str, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = write(ALL[what], tmp_path)
    for command in commands(folder, tmp_path / "data"):
        start = time.process_time()
        code = main(command)
        assert time.process_time() - start < LIMIT_S
        out, err = capfd.readouterr()
        assert_refused(code, err, ALL[what].words)
        assert out == ""
    assert_untouched(tmp_path)


@pytest.mark.parametrize("what", [what for what in ALONE if what in ALL])
def test_a_process_of_its_own_ends_as_well(tmp_path: Path, what: str) -> None:
    folder = write(ALL[what], tmp_path)
    for command in commands(folder, tmp_path / "data"):
        found = subprocess.run(
            [sys.executable, "-m", "app", *command], capture_output=True, text=True, timeout=LONGEST_WAIT_S
        )
        assert_refused(found.returncode, found.stderr, ALL[what].words)
    assert_untouched(tmp_path)


@pytest.mark.parametrize("what", ABSURD)
def test_an_absurd_size_takes_no_memory(tmp_path: Path, what: str) -> None:
    folder = write(ALL[what], tmp_path)
    tracemalloc.start()
    try:
        with pytest.raises(ModelError):
            Encoder.load(folder, workers=1)
        assert tracemalloc.get_traced_memory()[1] < LIMIT_BYTES
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("what", [what for what in ALL if "NaN" in what or "infinity" in what or "no float32" in what])
def test_numbers_that_are_not_finite_are_found_in_either_precision(tmp_path: Path, what: str, precision: str) -> None:
    with pytest.raises(ModelError, match="not finite"):
        Encoder.load(write(ALL[what], tmp_path), precision=precision, workers=1)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps permissions elsewhere")
@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json", "1_Pooling"])
def test_what_may_not_be_read_is_named(tmp_path: Path, name: str, capfd: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(HERE / "tiny_bert", tmp_path / "broken")
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents[:2]:
        parent.chmod(0o755)
    (tmp_path / "data").mkdir(mode=0o777)
    (tmp_path / "data").chmod(0o777)
    with forbidden(tmp_path / "broken" / name):
        for command in commands(tmp_path / "broken", tmp_path / "data"):
            code = main(command)
            assert_refused(code, capfd.readouterr().err, (name, "cannot be read", "Permission denied"))
    assert_untouched(tmp_path)


def test_a_second_part_that_cannot_be_copied_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert main(commands(HERE / "tiny_bert", tmp_path / "data")[1]) == 1
    assert "No space left on device" in capfd.readouterr().err
    assert_untouched(tmp_path)


def test_the_folders_are_fine_before_they_are_broken(tmp_path: Path) -> None:
    for base in sorted({broken.base for broken in ALL.values()}):
        with Encoder.load(HERE / base, workers=1) as encoder:
            assert encoder.encode(["x"]).shape == (1, encoder.dim)


def test_a_reranker_whose_types_are_no_rows_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "reranker"
    shutil.copytree(HERE / "reranker_bert", folder)

    def types(content: dict[str, object]) -> None:
        template = content["post_processor"]
        assert isinstance(template, dict)
        for part in template["pair"]:
            next(iter(part.values()))["type_id"] = 7

    tokenizer(types)(folder)
    with pytest.raises(ModelError, match=r"token types up to 7, but config\.json's 'type_vocab_size' is 2"):
        CrossEncoder.load(folder, workers=1)


def test_a_pair_with_a_special_token_past_the_table_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "reranker"
    shutil.copytree(HERE / "reranker_bert", folder)

    def only_in_pairs(content: dict[str, object]) -> None:
        template = content["post_processor"]
        assert isinstance(template, dict)
        template["special_tokens"]["[FAR]"] = {"id": "[FAR]", "ids": [99999], "tokens": ["[FAR]"]}
        template["pair"].append({"SpecialToken": {"id": "[FAR]", "type_id": 1}})

    tokenizer(only_in_pairs)(folder)
    with pytest.raises(ModelError, match=r"tokenizer\.json has token ids up to 99999"):
        CrossEncoder.load(folder, workers=1)


@pytest.mark.parametrize(
    ("base", "settings", "key"),
    [
        ("reranker_mpnet", {"max_position_embeddings": 10**12}, r"position_embeddings.*\[1000000000000, 32\]"),
        ("reranker_modernbert", {"classifier_activation": "mish"}, "classifier_activation"),
        ("reranker_modernbert", {"classifier_bias": "no"}, "classifier_bias"),
    ],
)
def test_settings_of_a_reranker_are_checked(tmp_path: Path, base: str, settings: dict[str, object], key: str) -> None:
    shutil.copytree(HERE / base, tmp_path / base)
    config(**settings)(tmp_path / base)
    with pytest.raises(ModelError, match=key):
        CrossEncoder.load(tmp_path / base, workers=1)
