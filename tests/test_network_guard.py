"""The guard itself: what leaves the machine is refused and noted, what stays on it is not."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests import network_guard
from tests.network_guard import NetworkForbiddenError

ELSEWHERE = "192.0.2.1"  # reserved for documentation: nobody answers there
CONNECT = f"import socket; socket.socket().connect(('{ELSEWHERE}', 80))"


@pytest.mark.tries_network
@pytest.mark.parametrize("host", [ELSEWHERE, "2001:db8::1"])
def test_connecting_elsewhere_is_refused(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.settimeout(0.2)
        with pytest.raises(NetworkForbiddenError, match=host):
            probe.connect((host, 80))
        with pytest.raises(NetworkForbiddenError, match=host):
            probe.connect_ex((host, 80))


@pytest.mark.tries_network
def test_a_datagram_elsewhere_is_refused() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, pytest.raises(NetworkForbiddenError):
        probe.sendto(b"hello", (ELSEWHERE, 53))


@pytest.mark.tries_network
def test_looking_up_a_name_is_refused() -> None:
    with pytest.raises(NetworkForbiddenError):
        socket.getaddrinfo("example.org", 443)
    with pytest.raises(NetworkForbiddenError):
        socket.gethostbyname("example.org")


def test_loopback_and_unix_sockets_pass(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        client.sendall(b"x")
    if hasattr(socket, "AF_UNIX"):
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(tmp_path / "s"))
            server.listen()
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(tmp_path / "s"))


@pytest.mark.tries_network
@pytest.mark.parametrize("options", [[], ["-P"]])
def test_a_python_child_is_guarded_and_its_attempt_noted(options: list[str], request: pytest.FixtureRequest) -> None:
    from tests.conftest import LOG_KEY

    log = request.config.stash[LOG_KEY]
    before = log.stat().st_size
    hidden = f"try:\n    {CONNECT}\nexcept BaseException:\n    pass"
    assert subprocess.run([sys.executable, *options, "-c", hidden]).returncode == 0
    assert ELSEWHERE in log.read_text(encoding="utf-8")[before:]


def test_a_hidden_attempt_fails_the_test_all_the_same(pytester: pytest.Pytester) -> None:
    package = pytester.mkpydir("tests")
    for name in ("conftest.py", "network_guard.py", "child_guard/sitecustomize.py"):
        copy = package / name
        copy.parent.mkdir(exist_ok=True)
        copy.write_text((Path(__file__).parent / name).read_text(encoding="utf-8"), encoding="utf-8")
    pytester.makeini("[pytest]\nmarkers =\n    tries_network: x\n")
    (package / "test_hidden.py").write_text(
        "import subprocess, sys\n\ndef test_hidden():\n"
        f"    subprocess.run([sys.executable, '-c', {CONNECT!r}], stderr=subprocess.DEVNULL)\n",
        encoding="utf-8",
    )
    result = pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*tried to reach the network*"])


def test_pip_alone_gets_the_environment_from_before() -> None:
    environment = network_guard.installer_environment()
    assert network_guard.LOG_VARIABLE not in environment
    assert str(network_guard.CHILD_FOLDER) not in environment.get("PYTHONPATH", "")
