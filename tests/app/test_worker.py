import logging
import threading

import pytest

from app.worker import Worker


def no_bugs(error: Exception) -> None:
    raise AssertionError(error)


def test_jobs_are_done_in_turn_and_a_newer_one_replaces_the_one_that_waits() -> None:
    worker = Worker("test", no_bugs)
    gate, done = threading.Event(), []
    worker.post("first", lambda: gate.wait(10) and done.append("first"))
    worker.post("search", lambda: done.append("old"))
    worker.post("other", lambda: done.append("other"))
    worker.post("search", lambda: done.append("new"))
    finished = threading.Event()
    worker.post("end", finished.set)
    gate.set()
    assert finished.wait(10)
    assert done == ["first", "other", "new"]
    assert worker.close()


def test_closing_forgets_what_waits_and_does_the_last_job() -> None:
    worker = Worker("test", no_bugs)
    gate, started, done = threading.Event(), threading.Event(), []
    worker.post("running", lambda: (started.set(), gate.wait(10), done.append("running")))  # type: ignore[func-returns-value]
    assert started.wait(10)
    worker.post("waiting", lambda: done.append("waiting"))
    threading.Timer(0.05, gate.set).start()
    assert worker.close(lambda: done.append("last"))
    worker.post("late", lambda: done.append("late"))
    assert done == ["running", "last"]


def test_a_bug_is_told_and_logged_and_the_next_job_is_done(caplog: pytest.LogCaptureFixture) -> None:
    bugs: list[Exception] = []
    worker = Worker("test", bugs.append)
    done = threading.Event()
    worker.post("bad", lambda: 1 // 0)
    worker.post("good", done.set)
    assert done.wait(10)
    worker.close()
    assert [type(bug) for bug in bugs] == [ZeroDivisionError]
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
