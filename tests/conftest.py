"""Rules of the whole suite: no network, no warnings, nobody's home folder, one thread per library."""

import inspect
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from tests import network_guard

ROOT = Path(__file__).resolve().parent.parent
OWN_PACKAGES = ("app", "engine", "indexer", "ui", "resources")
HOME_VARIABLES = {
    "HOME": "",
    "USERPROFILE": "",
    "APPDATA": "AppData/Roaming",
    "LOCALAPPDATA": "AppData/Local",
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_CACHE_HOME": ".cache",
    "XDG_STATE_HOME": ".local/state",
}
ONE_THREAD = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def pytest_configure(config: pytest.Config) -> None:
    """Set the environment before any module of the program is imported; children inherit it."""
    network_guard.remember_environment()
    home = Path(tempfile.mkdtemp(prefix="inkling-tests-"))
    config.stash[HOME_KEY] = home
    for variable, below in HOME_VARIABLES.items():
        folder = home / below
        folder.mkdir(parents=True, exist_ok=True)
        os.environ[variable] = str(folder)
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    # The compiler's cache outlives the temporary home: without it every run would build the C start files again.
    os.environ.setdefault("ZIG_GLOBAL_CACHE_DIR", str(ROOT / ".cache" / "zig"))
    for variable in ("INKLING_DATA_DIR", "INKLING_ISA"):
        os.environ.pop(variable, None)
    log = home / "network.log"
    log.touch()
    config.stash[LOG_KEY] = log
    os.environ.update(network_guard.environment(log))
    network_guard.install()
    hypothesis.settings.register_profile("inkling", derandomize=True, deadline=None, database=None)
    hypothesis.settings.load_profile("inkling")


def pytest_unconfigure(config: pytest.Config) -> None:
    home = config.stash.get(HOME_KEY, None)
    if home is not None:
        shutil.rmtree(home, ignore_errors=True)


HOME_KEY = pytest.StashKey[Path]()
LOG_KEY = pytest.StashKey[Path]()


@pytest.fixture(autouse=True)
def stays_on_this_machine(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test during which this process or a child of it tried to reach another machine."""
    log = request.config.stash[LOG_KEY]
    before = log.stat().st_size
    yield
    tried = log.read_text(encoding="utf-8")[before:]
    if request.node.get_closest_marker("tries_network"):
        return
    assert not tried, f"tried to reach the network:\n{tried}"
    assert not network_guard.open_connections()


@pytest.fixture(autouse=True)
def no_unexpected_log(request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail a test in which the program logs a warning or worse, unless the test looks at the log itself."""
    yield
    if "caplog" in inspect.signature(request.function).parameters:
        return
    loud = [
        f"{record.name}: {record.getMessage()}"
        for record in caplog.get_records("call")
        if record.levelno >= logging.WARNING and record.name.partition(".")[0] in OWN_PACKAGES
    ]
    assert not loud, "unexpected warnings in the log (a test that means them takes caplog and checks them)"
