from __future__ import annotations

from indexer.store.writer import Writer


def paths(writer: Writer, now_s: float = 1000.0) -> list[bytes]:
    return [item.path for item in writer.peek(100, now_s=now_s)]


def test_higher_priorities_come_first_and_equals_in_order(writer: Writer, root: int) -> None:
    writer.enqueue(root, [b"a", b"b"])
    writer.enqueue(root, [b"c"], priority=5)
    assert paths(writer) == [b"c", b"a", b"b"]


def test_an_event_during_the_work_keeps_the_path_queued(writer: Writer, root: int) -> None:
    writer.enqueue(root, [b"a"])
    taken = writer.take(1)
    writer.enqueue(root, [b"a"])
    writer.done(taken)
    assert paths(writer) == [b"a"]
    writer.done(writer.take(1))
    assert paths(writer) == []


def test_a_number_is_never_given_twice(writer: Writer, root: int) -> None:
    writer.enqueue(root, [b"a"])
    first = writer.take(1)
    writer.done(first)
    writer.enqueue(root, [b"a"])
    writer.done(first)
    assert paths(writer) == [b"a"]


def test_queueing_again_keeps_the_higher_priority(writer: Writer, root: int) -> None:
    writer.enqueue(root, [b"a"], priority=3)
    writer.enqueue(root, [b"a"], priority=1)
    assert writer.peek(1)[0].priority == 3


def test_attempts_are_counted_before_the_work_and_outlive_the_process(writer: Writer, root: int) -> None:
    writer.enqueue(root, [b"a"])
    assert writer.take(1)[0].attempts == 1
    with Writer.open(writer.path.parent) as after_a_crash:
        assert after_a_crash.take(1)[0].attempts == 2


def test_postponed_items_wait_for_their_time(writer: Writer, root: int) -> None:
    writer.enqueue(root, [b"a"])
    writer.postpone(writer.take(1)[0], 2000.0)
    assert paths(writer, 1999.0) == []
    assert writer.next_due_s() == 2000.0
    assert paths(writer, 2000.0) == [b"a"]


def test_paused_and_offline_roots_give_nothing_and_lose_nothing(writer: Writer, root: int) -> None:
    writer.enqueue(root, [b"a"])
    writer.set_root_paused(root, True)
    assert paths(writer) == []
    writer.set_root_paused(root, False)
    writer.set_root_status(root, "offline", "The drive is not connected.")
    assert paths(writer) == []
    assert writer.queue_length() == 1
    writer.set_root_status(root, "online")
    assert paths(writer) == [b"a"]


def test_failures_count_on_and_go_when_cleared(writer: Writer, root: int) -> None:
    writer.record_failure(root, b"a.pdf", "encrypted", "It needs a password.", retry_at_s=50.0, size=1, mtime_ns=2)
    again = writer.record_failure(root, b"a.pdf", "killed", "It took too long.", quarantined=True)
    assert (again.attempts, again.kind, again.quarantined) == (2, "killed", True)
    assert writer.failure(root, b"a.pdf") == again
    writer.clear_failure(root, b"a.pdf")
    assert writer.failures() == []


def test_only_failures_whose_time_has_come_are_due(writer: Writer, root: int) -> None:
    writer.record_failure(root, b"soon", "locked", "In use.", retry_at_s=10.0)
    writer.record_failure(root, b"later", "locked", "In use.", retry_at_s=99.0)
    writer.record_failure(root, b"never", "broken", "Damaged.")
    assert [failure.path for failure in writer.failures_due(10, now_s=20.0)] == [b"soon"]
