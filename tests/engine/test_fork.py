"""A forked child encodes: it has none of its parent's threads, and nothing of what they held."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.goldens.reading import HERE

ROOT = Path(__file__).parents[2]
PARENT = """
import os, signal, sys, threading, warnings
import numpy as np
from engine import Encoder, Models

warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of any fork beside threads
FOLDER, TEXTS, LONGEST_S = sys.argv[1], ["Hello wide world"] * 30, 120


def fork(work):
    \"\"\"The child's exit code, or minus the number of the signal that ended it.\"\"\"
    child = os.fork()
    if not child:
        signal.alarm(LONGEST_S)  # ends the child where it waits for ever
        os._exit(0 if work() else 3)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def encodes():
    return np.array_equal(encoder.encode(TEXTS), wanted)


encoder = Encoder.load(FOLDER, workers=3)
wanted = encoder.encode(TEXTS)
"""


def run(script: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PARENT + script, str(HERE / "tiny_bert")],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout.split()


pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def test_a_child_encodes_after_its_parent_has_used_its_workers_and_so_does_a_child_of_the_child() -> None:
    script = """
print(fork(encodes), fork(lambda: encodes() and fork(encodes) == 0), encodes())
"""
    assert run(script) == ["0", "0", "True"]


def test_a_child_encodes_that_was_forked_while_another_thread_did() -> None:
    script = """
done = threading.Event()

def busy():
    while not done.is_set():
        encoder.encode(TEXTS)

thread = threading.Thread(target=busy)
thread.start()
print(*(fork(encodes) for _ in range(20)))
done.set()
thread.join()
"""
    assert run(script) == ["0"] * 20


def test_a_child_gets_a_model_that_another_thread_was_loading_when_it_was_forked() -> None:
    script = """
models, begun, go_on, load = Models(workers=2), threading.Event(), threading.Event(), Encoder.load

def slow(*args, **kwargs):
    begun.set()
    go_on.wait()
    return load(*args, **kwargs)

def gets():
    Encoder.load = load
    encoder = models.get(FOLDER)
    return np.array_equal(encoder.encode(TEXTS), wanted) and models.loaded() == [encoder]

Encoder.load = slow
thread = threading.Thread(target=models.get, args=[FOLDER])
thread.start()
begun.wait()
print(fork(gets))
go_on.set()
thread.join()
print(len(models.loaded()))
models.close()
"""
    assert run(script) == ["0", "1"]
