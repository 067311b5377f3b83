"""`inkling serve` as a process: where it listens, what it says, and how it ends."""

import http.client
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import psutil
import pytest

from app import cli, program
from engine import kernels
from tests.conftest import ROOT
from tests.goldens.reading import HERE

TINY = HERE / "tiny_bert"


@contextmanager
def serving(data: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process and its address."""
    command = [sys.executable, "-m", "app", "--data-dir", str(data), "serve", "--model", str(TINY), "--port", "0"]
    with subprocess.Popen(
        [*command, "--workers", "1", "--json", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
    ) as child:  # fmt: skip
        assert child.stdout is not None
        try:
            yield child, json.loads(child.stdout.readline())["url"]
        finally:
            child.kill()


def health(url: str) -> int:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    connection.request("POST", "/embed", b'{"inputs": "x"}', {"Content-Type": "application/json"})
    status = connection.getresponse().status
    connection.close()
    return status


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise there")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_answers_and_ends_without_a_word(number: signal.Signals, tmp_path: Path) -> None:
    with serving(tmp_path) as (child, url):
        assert health(url) == 200
        child.send_signal(number)
        out, err = child.communicate(timeout=60)
        assert (child.returncode, out, err) == (0, "", "")


def test_it_listens_on_the_loopback_interface_alone_and_connects_to_nobody(tmp_path: Path) -> None:
    with serving(tmp_path) as (child, url):
        assert url.startswith("http://127.0.0.1:") and health(url) == 200
        sockets = psutil.Process(child.pid).net_connections(kind="inet")
        assert {each.laddr.ip for each in sockets} == {"127.0.0.1"}
        assert not [each for each in sockets if each.raddr and each.laddr.port != urlsplit(url).port]


def test_another_address_is_named_with_a_warning(tmp_path: Path) -> None:
    with serving(tmp_path, "--host", "0.0.0.0") as (child, url):
        assert health(url.replace("0.0.0.0", "127.0.0.1")) == 200
        child.kill()
        _, err = child.communicate(timeout=60)
        assert "everyone whose packets reach 0.0.0.0 can use this server" in err


def test_the_packaged_program_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(program, "is_packaged", lambda: True)
    assert cli.run(["--data-dir", str(tmp_path), "serve"]) == 1
    assert "opens no socket of any kind" in capsys.readouterr().err


def test_a_precision_that_the_model_cannot_be_had_in_is_refused_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["--data-dir", str(tmp_path), "serve", "--port", "0", "--precision", "fp32"]) == 1
    assert "all-MiniLM-L6-v2 cannot be had in fp32" in capsys.readouterr().err
    monkeypatch.setattr(kernels, "library", lambda: SimpleNamespace(has_u8=False))
    assert cli.run(["--data-dir", str(tmp_path), "serve", "--port", "0", "--precision", "int8-full"]) == 1
    assert "all-MiniLM-L6-v2 cannot be had in int8-full on this machine, only in int8:" in capsys.readouterr().err


@pytest.mark.parametrize("argument", ["--port=65536", "--port=x", "--idle=-1", "--idle=x", "--host="])
def test_wrong_usage_ends_with_two(argument: str, tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.run(["--data-dir", str(tmp_path), "serve", argument])
    assert caught.value.code == 2
