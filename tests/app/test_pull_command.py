"""`inkling models pull` in a process of its own against a hub on this machine: what arrives, and what goes wrong."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from app import cli
from engine import CrossEncoder, Encoder
from engine.record import Record
from tests.engine import fake_hub
from tests.engine.fake_hub import COMMIT, Hub
from tests.goldens.reading import HERE
from tests.made_models import make_unfit_for_int8

TINY = HERE / "tiny_bert"
WEIGHTS = (TINY / "model.safetensors").read_bytes()
ID = "someone/tiny"
UNTOUCHED = ("HF_HUB_OFFLINE", "HF_TOKEN", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
# The program without the pauses between two tries.
IMPATIENT = (
    "import sys, engine.hub; engine.hub.WAITS_S = (0.0,) * 4; from app.cli import run; sys.exit(run(sys.argv[1:]))"
)
WITHOUT_CLIENT = (
    "import sys; sys.modules['huggingface_hub'] = None; from app.cli import run; sys.exit(run(sys.argv[1:]))"
)


@pytest.fixture
def hub() -> Iterator[Hub]:
    with fake_hub.serving() as hub:
        hub.add(ID, TINY)
        yield hub


class Machine:
    """A data folder, and the program on it as a child process."""

    def __init__(self, folder: Path, hub: Hub):
        self.data, self.hub = folder / "data", hub
        gone = {name for name in os.environ if name.upper() in UNTOUCHED}
        self.environment = {name: value for name, value in os.environ.items() if name not in gone}
        self.environment |= {"HF_ENDPOINT": hub.url, "HF_HOME": str(folder / "hf"), "HF_HUB_DOWNLOAD_TIMEOUT": "5"}

    @property
    def models(self) -> Path:
        return self.data / "models"

    def installed(self) -> list[str]:
        """The models that are here. What was fetched in part is none."""
        return sorted(path.name for path in self.models.glob("[!.]*"))

    def command(self, *arguments: str, code: str = IMPATIENT) -> list[str]:
        return [sys.executable, "-c", code, "models", *arguments, "--data-dir", str(self.data)]

    def run(self, *arguments: str, code: str = IMPATIENT, **environment: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            self.command(*arguments, code=code),
            env={**self.environment, **environment}, capture_output=True, text=True, encoding="utf-8", timeout=600,
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def pull(self, *arguments: str, **environment: str) -> dict[str, Any]:
        """A pull that must succeed; what it printed."""
        done = self.run("pull", *arguments, "--json", **environment)
        assert done.returncode == 0, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def fail(self, *arguments: str, code: str = IMPATIENT, **environment: str) -> str:
        """A pull that must fail with one sentence, and leave no model."""
        before = self.installed()
        done = self.run("pull", *arguments, code=code, **environment)
        assert done.returncode == 1 and done.stdout == "" and done.stderr.count("\n") == 1, done.stderr
        assert self.installed() == before
        return done.stderr.removeprefix("inkling: ")

    def parts(self) -> list[str]:
        """The files that are kept for the next try."""
        return [file.name for file in self.models.glob(".pull/**/*") if file.is_file() and file.suffix != ".lock"]


@pytest.fixture
def machine(tmp_path: Path, hub: Hub) -> Machine:
    return Machine(tmp_path, hub)


def test_a_model_is_fetched_installed_and_known_by_where_it_came_from(machine: Machine, hub: Hub) -> None:
    answer = machine.pull(ID)
    assert answer["name"] == "tiny" and answer["revision"] == COMMIT and answer["fetched"] is True
    assert answer["int8"]["worst"] > 0.999
    record = Record.read(machine.models / "tiny")
    assert (record.source, record.revision) == (ID, COMMIT)
    with Encoder.load(machine.models / "tiny", workers=1) as here, Encoder.load(TINY, workers=1) as published:
        np.testing.assert_array_equal(here.encode(["green tea"]), published.encode(["green tea"]))
    assert machine.parts() == []
    # Nothing but the one model was asked for, nothing of it twice, and nobody was told anything about this machine.
    assert all(request.path.startswith((f"/api/models/{ID}", f"/{ID}/resolve/{COMMIT}/")) for request in hub.requests)
    asked = [request.path for request in hub.requests if not request.storage]
    assert len(asked) == len(set(asked))
    assert not (machine.data.parent / "hf").exists()


def test_a_model_that_is_here_is_not_asked_for_again(machine: Machine, hub: Hub) -> None:
    machine.pull(ID)
    hub.requests.clear()
    for name in (ID, f"hf:{ID}", f"{ID}@{COMMIT}", f"{ID}@{COMMIT[:8]}"):
        answer = machine.pull(name, "--offline")
        assert answer["fetched"] is False and answer["path"] == str(machine.models / "tiny")
    sentence = machine.fail(f"{ID}@{'f' * 40}", "--offline")
    assert "There is a model tiny here already" in sentence and "inkling models remove tiny" in sentence
    assert hub.requests == []
    arguments = ["--data-dir", str(machine.data), "models", "show"]
    assert cli.run([*arguments, f"hf:{ID}"]) == 0 and cli.run([*arguments, ID]) == 0
    assert cli.run([*arguments, "hf:someone/other"]) == 1


@pytest.mark.parametrize(
    "name", ["gemma3", "static", "static_shared", "late_stanford", "late_pylate", "late_native", "xlm_roberta"]
)
def test_every_published_layout_arrives_whole(machine: Machine, hub: Hub, name: str) -> None:
    hub.add(f"someone/{name}", HERE / name)
    path = Path(machine.pull(f"someone/{name}", "--no-measure")["path"])
    texts = ["green tea", "the lease ends in may"]
    with Encoder.load(path, workers=1) as here, Encoder.load(HERE / name, workers=1) as published:
        for one, other in zip(
            here.encode_tokens(texts, role="document"), published.encode_tokens(texts, role="document"), strict=True
        ):
            np.testing.assert_array_equal(one.vectors, other.vectors)


def test_a_reranker_arrives_and_may_be_packed(machine: Machine, hub: Hub) -> None:
    hub.add("someone/reranker_bert", HERE / "reranker_bert")
    answer = machine.pull("someone/reranker_bert", "--pack")
    assert answer["int8"]["kind"] == "scores"
    passages = ["green tea", "the lease ends in may"]
    with (
        CrossEncoder.load(answer["path"], workers=1) as here,
        CrossEncoder.load(HERE / "reranker_bert", workers=1) as published,
    ):
        np.testing.assert_array_equal(here.score("tea", passages), published.score("tea", passages))


def test_shards_arrive(machine: Machine, hub: Hub, tmp_path: Path) -> None:
    repo = hub.add(ID, TINY, leave_out=("model.safetensors",))
    tensors = safetensors.numpy.load_file(TINY / "model.safetensors")
    names = sorted(tensors)
    placed = {}
    for i, part in enumerate((names[:20], names[20:])):
        file = f"model-0000{i + 1}-of-00002.safetensors"
        repo.files[file] = safetensors.numpy.save({name: tensors[name] for name in part})
        placed |= dict.fromkeys(part, file)
    repo.files["model.safetensors.index.json"] = json.dumps({"weight_map": placed}).encode()
    with Encoder.load(machine.pull(ID)["path"], workers=1) as here, Encoder.load(TINY, workers=1) as published:
        np.testing.assert_array_equal(here.encode(["green tea"]), published.encode(["green tea"]))
    repo.files["model.safetensors.index.json"] = json.dumps({"weight_map": {"a": "../../a.safetensors"}}).encode()
    hub.repos["someone/escaping"] = repo
    assert "names '../../a.safetensors'" in machine.fail("someone/escaping")


def test_neither_code_nor_pickles_nor_other_formats_are_fetched(machine: Machine, hub: Hub) -> None:
    strange = ("modeling_tiny.py", "pytorch_model.bin", "onnx/model.onnx", "tf_model.h5", ".gitattributes", "setup.py")
    hub.repos[ID].files |= dict.fromkeys(strange, b"print('run me')")
    path = Path(machine.pull(ID)["path"])
    assert not [name for name in strange if hub.asked(name) or (path / name).exists()]


def test_what_cannot_be_computed_is_refused_before_its_weights_are_fetched(machine: Machine, hub: Hub) -> None:
    repo = hub.repos[ID]
    config = json.loads(repo.files["config.json"])
    pooling = json.loads(repo.files["1_Pooling/config.json"])
    odd_module = [*json.loads(repo.files["modules.json"]), {"idx": 9, "name": "9", "path": "9", "type": "own.Code"}]
    for name, content, words in (
        ("config.json", {**config, "model_type": "llama"}, "key 'model_type' is 'llama'"),
        ("config.json", {**config, "vocab_size": 7}, "vocab_size"),
        ("1_Pooling/config.json", {**pooling, "pooling_mode_odd_tokens": True}, "pooling_mode_odd_tokens"),
        ("modules.json", odd_module, "code of the model's own"),
    ):
        kept = repo.files[name]
        repo.files[name] = json.dumps(content).encode()
        assert words in machine.fail(ID)
        assert machine.parts() == [] and not hub.asked(".safetensors")
        repo.files[name] = kept


def test_a_model_of_pickles_alone_is_refused(machine: Machine, hub: Hub) -> None:
    hub.add(ID, TINY, leave_out=("model.safetensors",)).files["pytorch_model.bin"] = b"cos\nsystem\n"
    assert "but pytorch_model.bin, which is a Python pickle" in machine.fail(ID)
    hub.repos[ID].files = {"README.md": b"# Nothing"}
    assert "has no config.json" in machine.fail(ID)


def test_a_connection_that_is_cut_is_taken_up_where_it_broke(machine: Machine, hub: Hub) -> None:
    hub.troubles["model.safetensors"] = [None, fake_hub.cut(WEIGHTS, 100_000), None, fake_hub.cut(WEIGHTS, 200_000)]
    machine.pull(ID)
    ranges = [request.range for request in hub.asked("model.safetensors") if request.storage]
    assert ranges == [None, "bytes=100000-", "bytes=200000-"]


def test_a_pull_that_was_broken_off_goes_on_in_the_next_one(machine: Machine, hub: Hub) -> None:
    hub.troubles["model.safetensors"] = [None, fake_hub.cut(WEIGHTS, 150_000), *[fake_hub.status(503)] * 5]
    assert "(503)" in machine.fail(ID)
    assert "model.safetensors.part" in machine.parts()
    hub.requests.clear()
    hub.troubles.clear()
    machine.pull(ID)
    # Settings that are here are not fetched again, and of the weights only what is missing.
    asked = [(request.path.rpartition("/")[2], request.range) for request in hub.requests]
    assert asked == [("tiny", None), ("model.safetensors", "bytes=150000-"), ("model.safetensors", "bytes=150000-")]
    assert machine.parts() == []


def test_ctrl_c_leaves_no_model_and_the_next_pull_goes_on(machine: Machine, hub: Hub) -> None:
    hub.troubles["model.safetensors"] = [None, fake_hub.hold(WEIGHTS, 1 << 18)]
    with subprocess.Popen(machine.command("pull", ID), env=machine.environment, stderr=subprocess.PIPE) as child:
        assert hub.held.wait(60)
        wait_until(lambda: any(file.stat().st_size for file in machine.models.glob(".pull/**/*.part")))
        second = machine.fail(ID)
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == 130
        assert child.stderr is not None and child.stderr.read() == b""
    assert "Another `inkling models pull`" in second
    assert machine.installed() == []
    hub.requests.clear()
    machine.pull(ID)
    assert [request.range for request in hub.requests if request.storage] == [f"bytes={1 << 18}-"]


def wait_until(true: Callable[[], bool]) -> None:
    """Until the child has written what the hub has sent; the test's own time limit ends it."""
    import threading

    ticks = threading.Event()
    while not true():
        ticks.wait(0.01)


def test_what_has_arrived_of_a_pull_that_nobody_wants_any_more_can_be_deleted(machine: Machine, hub: Hub) -> None:
    hub.troubles["model.safetensors"] = [fake_hub.status(503)] * 5
    machine.fail(ID)
    assert machine.parts()
    done = machine.run("remove", ID, "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["bytes"] > 0
    assert machine.parts() == [] and machine.run("remove", ID).returncode == 1


def test_a_server_that_begins_anew_is_followed(machine: Machine, hub: Hub) -> None:
    whole = fake_hub.send(WEIGHTS, ranges=False)
    hub.troubles["model.safetensors"] = [None, fake_hub.cut(WEIGHTS, 100_000), None, whole]
    machine.pull(ID)
    assert (machine.models / "tiny" / "model.safetensors").read_bytes() == WEIGHTS


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_a_file_with_another_hash_is_thrown_away(machine: Machine, hub: Hub, name: str) -> None:
    content = hub.repos[ID].files[name]
    changed = content[:-1] + bytes([content[-1] ^ 1])
    hub.troubles[name] = [None, fake_hub.send(changed)] if name.endswith("tensors") else [fake_hub.send(changed)]
    sentence = machine.fail(ID)
    assert f"{name} of {ID} arrived damaged" in sentence and ("SHA-256" in sentence or "SHA-1" in sentence)
    assert not [part for part in machine.parts() if part.startswith(name)]
    machine.pull(ID)


@pytest.mark.parametrize("size", [1000, len(WEIGHTS), len(WEIGHTS) + 5])
def test_a_part_of_something_else_is_begun_anew(machine: Machine, hub: Hub, size: int) -> None:
    hub.troubles["model.safetensors"] = [None, fake_hub.cut(WEIGHTS, 150_000), *[fake_hub.status(503)] * 5]
    machine.fail(ID)
    hub.troubles.clear()
    (part,) = machine.models.glob(".pull/**/*.part")
    part.write_bytes(b"x" * size)
    machine.pull(ID)
    assert (machine.models / "tiny" / "model.safetensors").read_bytes() == WEIGHTS


def test_more_bytes_than_were_announced_are_refused(machine: Machine, hub: Hub) -> None:
    hub.troubles["model.safetensors"] = [None, fake_hub.send(WEIGHTS + b"more")]
    assert f"sends more of model.safetensors than the {len(WEIGHTS):,} bytes" in machine.fail(ID)


def test_fewer_bytes_than_were_announced_are_asked_for_again_and_then_refused(machine: Machine, hub: Hub) -> None:
    hub.troubles["model.safetensors"] = [None, fake_hub.send(WEIGHTS[:1000]), *[None, fake_hub.status(416)] * 5]
    assert "(416)" in machine.fail(ID)


def test_a_model_that_is_not_there_is_a_sentence(machine: Machine, hub: Hub) -> None:
    assert "has no model someone/else (401): check the name" in machine.fail("someone/else")
    assert "may not read it" in machine.fail("someone/else", HF_TOKEN="hf_wrong")


def test_a_private_model_needs_a_token_that_goes_to_the_hub_alone(machine: Machine, hub: Hub) -> None:
    hub.add(ID, TINY, token="hf_secret")
    assert "needs HF_TOKEN" in machine.fail(ID)
    hub.requests.clear()
    machine.pull(ID, HF_TOKEN="hf_secret")
    assert {request.token for request in hub.requests if not request.storage} == {"Bearer hf_secret"}
    assert [request.token for request in hub.requests if request.storage] == [None]


def test_the_token_file_counts_as_the_variable_does(machine: Machine, hub: Hub) -> None:
    hub.add(ID, TINY, token="hf_secret")
    token = machine.data.parent / "token"
    token.write_text("hf_secret\n")
    machine.pull(ID, HF_TOKEN_PATH=str(token))
    hub.add("someone/second", TINY, token="hf_secret")
    assert "letters that are in no token" in machine.fail("someone/second", HF_TOKEN="hf_ünreadable")


def test_a_gated_model_says_where_to_accept_its_terms(machine: Machine, hub: Hub) -> None:
    hub.add(ID, TINY, token="hf_secret", gated=True)
    sentence = machine.fail(ID)
    assert f"{hub.url}/{ID}" in sentence and "HF_TOKEN" in sentence
    machine.pull(ID, HF_TOKEN="hf_secret")


def test_a_revision_is_a_branch_a_tag_or_a_commit(machine: Machine, hub: Hub) -> None:
    hub.repos[ID].revisions["v1"] = "a" * 40
    assert "has no revision 'v2'" in machine.fail(f"{ID}@v2")
    assert machine.pull(f"hf:{ID}@v1")["revision"] == "a" * 40
    assert hub.asked("config.json")[0].path == f"/{ID}/resolve/{'a' * 40}/config.json"
    assert "here already, from someone/tiny at aaaa" in machine.fail(f"{ID}@main")


def test_a_server_in_trouble_is_asked_again(machine: Machine, hub: Hub) -> None:
    hub.troubles[ID] = [fake_hub.status(503), fake_hub.status(500)]
    hub.troubles["tokenizer.json"] = [fake_hub.status(502), fake_hub.status(429, Retry_After="0")]
    machine.pull(ID)
    hub.troubles[ID] = [fake_hub.status(504)] * 5
    machine.run("remove", "tiny", "--yes")
    assert "answers with an error (504)" in machine.fail(ID)
    hub.troubles[ID] = [fake_hub.status(429)] * 5
    assert "asked too often (429)" in machine.fail(ID)


def test_a_server_that_falls_silent_is_waited_for_so_long_and_no_longer(machine: Machine, hub: Hub) -> None:
    hub.troubles["model.safetensors"] = [None, *[fake_hub.hold(WEIGHTS, 1000), None] * 5]
    assert "sent nothing for 1 seconds" in machine.fail(ID, HF_HUB_DOWNLOAD_TIMEOUT="1")
    machine.pull(ID)


def test_no_server_at_all_is_a_sentence(machine: Machine) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{closed.getsockname()[1]}"
    assert "cannot be reached" in machine.fail(ID, HF_ENDPOINT=nobody)
    assert "cannot be reached" in machine.fail(ID, HTTP_PROXY=nobody, HF_ENDPOINT="http://hub.invalid")
    assert "HF_ENDPOINT is 'nonsense'" in machine.fail(ID, HF_ENDPOINT="nonsense")


def test_a_page_in_the_place_of_a_hub_is_a_sentence(machine: Machine, hub: Hub) -> None:
    for page in (b"<html>Log in to the hotel's network</html>", b"[]", b'{"sha": 7}', b'{"id": "x", "sha": "y"}'):
        hub.troubles[ID] = [fake_hub.send(page)]
        assert "no listing of someone/tiny as a hub does" in machine.fail(ID)


def test_a_mirror_behind_a_proxy_is_reached_through_it(machine: Machine, hub: Hub) -> None:
    hub.storage_url = "http://storage.invalid"
    # The storage is a host of its own to the client; the proxy brings its requests to the same server.
    repo = hub.repos[ID]
    hub.troubles["model.safetensors"] = [None, fake_hub.send(repo.files["model.safetensors"])]
    machine.pull(ID, HF_ENDPOINT="http://mirror.invalid", HTTP_PROXY=hub.url)
    assert hub.asked("model.safetensors")


def test_a_proxy_that_cannot_be_spoken_to_is_named(machine: Machine, hub: Hub) -> None:
    assert "a proxy of SOCKS" in machine.fail(ID, ALL_PROXY="socks5://127.0.0.1:9")
    assert hub.requests == []


@pytest.mark.parametrize("way", ["option", "variable", "setting"])
def test_offline_nothing_is_asked(machine: Machine, hub: Hub, way: str) -> None:
    if way == "setting":
        machine.data.mkdir()
        (machine.data / "settings.toml").write_text("offline = true\n")
    arguments = ("--offline",) if way == "option" else ()
    sentence = machine.fail(ID, *arguments, **({"HF_HUB_OFFLINE": "1"} if way == "variable" else {}))
    assert "HF_HUB_OFFLINE is set" in sentence if way == "variable" else "Inkling is offline" in sentence
    assert hub.requests == []


def test_a_package_without_a_client_says_what_to_do_instead(machine: Machine) -> None:
    assert "built without a way to the network" in machine.fail(ID, code=WITHOUT_CLIENT)


def test_what_has_arrived_is_kept_where_the_disk_or_a_choice_stands_in_the_way(machine: Machine, hub: Hub) -> None:
    repo = hub.repos[ID]
    tensors = safetensors.numpy.load(repo.files["model.safetensors"])
    make_unfit_for_int8(tensors)
    repo.files["model.safetensors"] = safetensors.numpy.save(tensors)
    assert "without --pack" in machine.fail(ID, "--pack")
    hub.requests.clear()
    assert machine.pull(ID)["int8"]["worst"] < 0.99
    assert [request.path.rpartition("/")[2] for request in hub.requests] == ["tiny"]


def test_a_disk_that_is_too_small_is_found_out_before_the_weights(machine: Machine, hub: Hub) -> None:
    hub.repos[ID].recorded["model.safetensors"] = {"size": 10**16}
    assert "needs 10,000,000.1 GB" in machine.fail(ID)
    assert not hub.asked("model.safetensors")


def test_a_listing_without_hashes_is_refused(machine: Machine, hub: Hub) -> None:
    hub.repos[ID].recorded["config.json"] = {"blobId": None}
    assert "no hash to be checked by" in machine.fail(ID)


def test_a_known_model_must_have_the_known_weights(machine: Machine, hub: Hub) -> None:
    revision = "9a3225965996d404b775526de6dbfe85d3368642"
    hub.add("sentence-transformers/all-mpnet-base-v2", HERE / "mpnet", revisions={"main": revision})
    assert "does not have the weights that all-mpnet-base-v2 is known by" in machine.fail("all-mpnet-base-v2")
    assert hub.requests[0].path.endswith(f"/revision/{revision}") and not hub.asked("model.safetensors")


def test_a_known_name_is_not_lent_to_others(machine: Machine, hub: Hub) -> None:
    hub.add("someone/bge-small-en-v1.5", TINY)
    assert machine.pull("someone/bge-small-en-v1.5")["name"] == "someone--bge-small-en-v1.5"
    with Encoder.load(machine.models / "someone--bge-small-en-v1.5", workers=1) as encoder:
        assert "Represent" not in encoder._folder.prompts["query"]


def test_the_bundled_model_is_fetched_only_where_the_hubs_is_meant(machine: Machine, hub: Hub) -> None:
    answer = machine.pull("all-MiniLM-L6-v2")
    assert answer["fetched"] is False and "resources" in answer["path"]
    assert hub.requests == []
    machine.fail("hf:sentence-transformers/all-MiniLM-L6-v2")
    assert hub.requests[0].path.startswith("/api/models/sentence-transformers/all-MiniLM-L6-v2")


@pytest.mark.parametrize(
    "name",
    ["./tiny", "../tiny", "/srv/models/tiny", "~/tiny", "models\\tiny", "C:/tiny", "a/b/c", "tiny/", "here/tiny",
     "here", "alone", "hf:a/b/c", "hf:../tiny", "someone/tiny@", "some one/tiny"],
)  # fmt: skip
def test_a_mistyped_path_asks_nothing_of_the_network(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path)
    # In this process any use of the client would fail the test: it is not even loaded.
    monkeypatch.setitem(sys.modules, "engine.hub", None)
    assert cli.run(["--data-dir", str(tmp_path / "data"), "models", "pull", name]) == 1
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and "built without" not in err


def test_no_other_command_loads_a_network_client(tmp_path: Path) -> None:
    code = (
        "import sys; from app.cli import SUBCOMMANDS, run; [command.load() for command in SUBCOMMANDS.values()]\n"
        f"assert run(['--data-dir', {str(tmp_path)!r}, 'embed', 'tea', '--model', 'all-MiniLM-L6-v2']) == 0\n"
        f"assert run(['--data-dir', {str(tmp_path)!r}, 'embed', 'tea', '--model', 'someone/tiny']) == 1\n"
        f"assert run(['--data-dir', {str(tmp_path)!r}, 'embed', 'tea', '--model', 'hf:someone/tiny']) == 1\n"
        "clients = {'huggingface_hub', 'httpx2', 'httpx', 'requests', 'urllib3', 'engine.hub', 'engine.pulling'}\n"
        "print(sorted(clients & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr.splitlines()[-1] == "[]", done.stderr
    assert "`inkling models pull hf:someone/tiny` fetches it" in done.stderr
