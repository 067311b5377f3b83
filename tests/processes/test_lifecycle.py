"""The processes start, stop, refuse each other, and never outlive their parents."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from safetensors.numpy import load_file, save_file

from app.index_process import child_command, child_environment
from indexer.protocol import AddRoot, Notice, RootChanged, RootRemoved, StateChanged, encode_line
from indexer.store.reader import Reader
from tests.indexer.files import sentences, write_mixed
from tests.processes.harness import (
    RunningIndexer,
    embedded,
    files_on_disk,
    index_once,
    indexed_paths,
    picture,
    running,
    wait_until,
)

ROOT = Path(__file__).resolve().parent.parent.parent


def start_child(data_dir: Path, model: Path, *extra: str) -> subprocess.Popen[str]:
    """The indexer process without its client."""
    command = [
        *child_command("indexer"),
        "--data-dir",
        str(data_dir),
        "--model",
        str(model),
        "--precision",
        "fp32",
        *extra,
    ]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=child_environment(1), cwd=ROOT
    )


def test_the_command_line_indexes_and_ends(data_dir: Path, root: Path, model: Path) -> None:
    write_mixed(root, 10)
    command = [sys.executable, "-m", "app", "--data-dir", str(data_dir)]
    arguments = ["index", str(root), "--once", "--model", str(model), "--precision", "fp32", "--workers", "1"]
    done = subprocess.run([*command, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    status = json.loads(subprocess.check_output([*command, "status", "--json"], cwd=ROOT, timeout=60))
    assert status["documents"] == 10 and status["pending"] == 0 and status["failed"] == 0
    assert status["chunks"] == status["vectors"] == status["embedded"] > 0
    assert [entry["path"] for entry in status["roots"]] == [str(root)]
    assert json.loads(subprocess.check_output([*command, "failures", "--json"], cwd=ROOT, timeout=60)) == []


def test_the_command_line_forgets_a_folder_that_need_not_be_there(data_dir: Path, tmp_path: Path, model: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        folder.mkdir()
        (folder / f"{folder.name}.txt").write_text(sentences(len(str(folder))))
    index_once(data_dir, model, one, two)
    (one / "one.txt").unlink()
    one.rmdir()
    command = [sys.executable, "-m", "app", "--data-dir", str(data_dir), "index", "--model", str(model)]
    command += ["--precision", "fp32", "--forget", str(one)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "is not indexed" not in done.stderr
    assert _paths(data_dir) == {"two.txt"} and not any(picture(data_dir)[-1]["strays"].values())
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and f"{one} is not indexed" in done.stderr


def test_a_reader_of_the_events_may_go_away(data_dir: Path, root: Path, model: Path) -> None:
    write_mixed(root, 10)
    command = [sys.executable, "-m", "app", "--data-dir", str(data_dir), "index", str(root), "--json"]
    options = ["--model", str(model), "--precision", "fp32"]
    with subprocess.Popen(
        [*command, *options], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None and child.stderr is not None
        assert json.loads(child.stdout.readline())["type"] == "state"
        child.stdout.close()
        assert (child.wait(30), child.stderr.read()) == (0, "")


def test_a_folder_that_is_none_is_an_error_with_a_sentence(data_dir: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "app", "--data-dir", str(data_dir), "index", str(tmp_path / "nowhere")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "nowhere is not a folder" in done.stderr and "Traceback" not in done.stderr


def test_a_model_that_is_none_still_leaves_search_by_words(data_dir: Path, root: Path, tmp_path: Path) -> None:
    write_mixed(root, 5)
    indexer = index_once(data_dir, tmp_path / "no-model", root)
    assert set(indexed_paths(data_dir)) == files_on_disk(root)
    notices = [event.message for event in indexer.events if isinstance(event, Notice)]
    assert len(notices) == 1 and notices[0].startswith("Search by meaning is off: ")


def test_a_model_that_makes_no_numbers_leaves_search_by_words(
    data_dir: Path, root: Path, model: Path, tmp_path: Path
) -> None:
    write_mixed(root, 5)
    damaged = shutil.copytree(model, tmp_path / "damaged")
    tensors = load_file(damaged / "model.safetensors")
    tensors["embeddings.LayerNorm.weight"][:] = 3e38
    save_file(tensors, damaged / "model.safetensors")
    indexer = index_once(data_dir, damaged, root)
    assert set(indexed_paths(data_dir)) == files_on_disk(root) and embedded(data_dir) == 0
    notices = [event.message for event in indexer.events if isinstance(event, Notice)]
    assert len(notices) == 1 and "meaning is off: damaged makes numbers that are not finite" in notices[0]


def test_a_model_that_is_missing_for_a_day_costs_nothing(
    data_dir: Path, root: Path, model: Path, tmp_path: Path
) -> None:
    write_mixed(root, 5)
    index_once(data_dir, model, root)
    before = picture(data_dir)
    (root / "new.txt").write_text(sentences(1234))
    index_once(data_dir, tmp_path / "no-model", root)
    assert [row for row in picture(data_dir)[:-1] if row["path"] != "new.txt"] == before[:-1]
    assert "new.txt" in _paths(data_dir)
    index_once(data_dir, model, root)
    assert embedded(data_dir) == 6


def test_a_second_indexer_of_the_same_folder_is_refused(data_dir: Path, root: Path, model: Path) -> None:
    with running(data_dir, model, root) as first:
        first.wait_idle()
        second = RunningIndexer(data_dir, model)
        second.client.start()
        code, message = second.wait_exit()
        assert code == 1
        assert f"(process {first.client.pid})" in message and "already indexing" in message
        second.client.close()


def test_the_end_of_input_ends_the_process(data_dir: Path, model: Path) -> None:
    with start_child(data_dir, model) as child:
        assert child.stdin is not None
        child.stdin.close()
        assert child.wait(20) == 0


def test_sigterm_ends_the_process_in_order(data_dir: Path, root: Path, model: Path) -> None:
    write_mixed(root, 5)
    with running(data_dir, model, root) as indexer:
        indexer.wait_idle()
        assert indexer.client.pid is not None
        os.kill(indexer.client.pid, signal.SIGTERM)
        assert indexer.wait_exit()[0] == 0
    assert any(isinstance(event, StateChanged) and event.phase == "stopped" for event in indexer.events)


def test_killing_the_indexer_ends_its_extraction_process(data_dir: Path, root: Path, model: Path) -> None:
    write_mixed(root, 5)
    with start_child(data_dir, model) as child:
        assert child.stdin is not None and child.stdout is not None
        child.stdin.write(encode_line(AddRoot(str(root))))
        child.stdin.flush()
        while '"words"' not in child.stdout.readline():
            pass
        wait_until(lambda: bool(psutil.Process(child.pid).children()), 20, "no extraction process")
        workers = psutil.Process(child.pid).children()
        child.kill()
        child.wait()
        assert psutil.wait_procs(workers, timeout=10)[1] == []


@pytest.mark.skipif(sys.platform != "linux", reason="the signal of a closing pipe is Linux's")
def test_an_extraction_process_that_holds_everything_up_dies_with_the_indexer() -> None:
    read_end, write_end = os.pipe()
    code = (
        "import sys; from indexer.extract.worker import _follow_life_line; _follow_life_line(int(sys.argv[1]));"
        "print('ready', flush=True); sum(range(10**12))"  # one C call that no thread can interrupt
    )
    command = [sys.executable, "-c", code, str(read_end)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, pass_fds=[read_end], text=True) as child:
        os.close(read_end)
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        os.close(write_end)
        assert child.wait(10) == -signal.SIGIO


def test_killing_the_parent_ends_the_indexer_and_its_worker(data_dir: Path, root: Path, model: Path) -> None:
    write_mixed(root, 20)
    command = [sys.executable, "-m", "app", "--data-dir", str(data_dir), "index", str(root), "--watch"]
    parent = subprocess.Popen(
        [*command, "--model", str(model), "--precision", "fp32"], cwd=ROOT, env=child_environment(1)
    )
    wait_until(lambda: len(psutil.Process(parent.pid).children(recursive=True)) >= 2, 30, "no children")
    children = psutil.Process(parent.pid).children(recursive=True)
    parent.kill()
    parent.wait()
    assert psutil.wait_procs(children, timeout=20)[1] == []


def test_a_step_that_does_not_end_is_not_waited_for_when_the_parent_is_gone() -> None:
    code = (
        "import time; from types import SimpleNamespace; from app.cli import indexer_child as child;"
        "child.LAST_STEP_S = 0.2;"
        "import threading; threading.Thread(target=child._listen, args=(SimpleNamespace(send=print),)).start();"
        "time.sleep(60)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 0


def test_a_crash_is_followed_by_a_new_start(
    data_dir: Path, root: Path, model: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with running(data_dir, model, root, restarts=2) as indexer:
        indexer.wait_idle()
        assert indexer.client.pid is not None
        seen = len(indexer.events)
        os.kill(indexer.client.pid, signal.SIGKILL)
        (root / "later.txt").write_text(sentences(1))
        indexer.wait_for(lambda: "later.txt" in _paths(data_dir))
        said = [event.reason for event in indexer.events[seen:] if isinstance(event, StateChanged)]
        assert "The indexer stopped unexpectedly and is being started again." in said
    assert "starting it again" in caplog.text


def test_a_process_that_crashes_for_ever_is_given_up(data_dir: Path, caplog: pytest.LogCaptureFixture) -> None:
    from app.index_process import IndexClient
    from indexer.options import IndexerOptions

    ends: list[tuple[int, str]] = []
    command = [sys.executable, "-c", "import sys; sys.exit('broken on purpose')"]
    client = IndexClient(
        IndexerOptions(data_dir),
        lambda event: None,
        lambda code, message: ends.append((code, message)),
        restarts=1,
        command=command,
    )
    client.start()
    wait_until(lambda: bool(ends), 20, "not given up")
    client.close()
    assert ends == [(1, "The indexer ended unexpectedly (code 1): broken on purpose.")]


def test_a_run_that_someone_waits_for_does_not_die_of_the_same_again_and_again(
    data_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    command = [sys.executable, "-c", "import sys; sys.exit('broken on purpose')"]
    indexer = RunningIndexer(data_dir, data_dir, restarts=5, command=command, watch=False)
    indexer.client.start()
    assert indexer.wait_exit(20) == (1, "The indexer ended unexpectedly (code 1): broken on purpose.")
    assert caplog.text.count("starting it again") == len(indexer.events) == 1
    indexer.client.close()


def test_paused_it_does_nothing_and_resumed_it_goes_on(data_dir: Path, root: Path, model: Path) -> None:
    with running(data_dir, model, root) as indexer:
        indexer.wait_idle()
        indexer.client.pause()
        indexer.wait_for(lambda: indexer.events[-1] == StateChanged("paused"))
        seen = len(indexer.events)
        (root / "waits.txt").write_text(sentences(2))
        time.sleep(1.0)  # the absence of an event has no event of its own
        assert indexer.events[seen:] == [] and _paths(data_dir) == set()
        indexer.client.resume()
        indexer.wait_for(lambda: "waits.txt" in _paths(data_dir))


def test_removing_a_root_removes_all_that_only_it_brought(data_dir: Path, tmp_path: Path, model: Path) -> None:
    for name in ("one", "two"):
        write_mixed(tmp_path / name, 10)
    (tmp_path / "one" / "own.txt").write_text(sentences(77))
    with running(data_dir, model, tmp_path / "one", tmp_path / "two") as indexer:
        indexer.wait_idle()
        seen, before = len(indexer.events), embedded(data_dir)
        indexer.client.remove_root(str(tmp_path / "one"))
        indexer.wait_for(lambda: RootRemoved(str(tmp_path / "one")) in indexer.events)
        indexer.wait_idle(seen)
        wait_until(lambda: not any(picture(data_dir)[-1]["strays"].values()), 20, "orphans are left")
        assert {row["root"] for row in picture(data_dir) if "root" in row} == {str(tmp_path / "two")}
        indexer.client.add_root(str(tmp_path / "one"))
        indexer.wait_for(lambda: "own.txt" in _paths(data_dir))
        indexer.wait_idle(seen)
        assert embedded(data_dir) == before + 1  # the others had stayed, being the same as in the second folder


def test_a_removed_folder_is_forgotten_and_not_embedded_first(data_dir: Path, root: Path, model: Path) -> None:
    write_mixed(root, 10)
    index_once(data_dir, model, root)
    before = embedded(data_dir)
    with running(data_dir, model, precision="int8") as indexer:  # other vectors: all its passages wait
        indexer.client.pause()
        indexer.client.remove_root(str(root))
        indexer.wait_for(lambda: RootRemoved(str(root)) in indexer.events)
    with Reader.open(data_dir) as reader:
        assert reader.counts().chunks > 0, "stopped before it could purge"
        assert reader.counts().pending_chunks == 0
    index_once(data_dir, model, precision="int8")
    assert embedded(data_dir) == before
    assert not any(picture(data_dir)[-1]["strays"].values())


def test_a_deleted_index_is_built_anew_with_the_same_folders(data_dir: Path, tmp_path: Path, model: Path) -> None:
    roots = [tmp_path / "one", tmp_path / "two", tmp_path / "three"]
    for root in roots:
        root.mkdir()
        (root / f"{root.name}.txt").write_text(sentences(len(root.name)))
    index_once(data_dir, model, *roots)
    with running(data_dir, model) as indexer:
        indexer.client.remove_root(str(roots[1]))
        indexer.wait_for(lambda: RootRemoved(str(roots[1])) in indexer.events)
    (data_dir / "index.db").unlink()
    index_once(data_dir, model)
    assert _paths(data_dir) == {"one.txt", "three.txt"}


def test_an_index_damaged_at_rest_is_no_success(data_dir: Path, root: Path, model: Path) -> None:
    write_mixed(root, 10)
    index_once(data_dir, model, root)
    index = data_dir / "index.db"
    data = bytearray(index.read_bytes())
    data[len(data) // 3 : len(data) // 2] = b"\xa5" * (len(data) // 2 - len(data) // 3)
    index.write_bytes(data)
    with running(data_dir, model, watch=False) as indexer:
        indexer.client.finish()
        code, message = indexer.wait_exit()
    assert code == 1 and "damaged" in message


def test_an_index_deleted_under_a_running_indexer_ends_it_with_a_sentence(
    data_dir: Path, root: Path, model: Path
) -> None:
    with running(data_dir, model, root) as indexer:
        indexer.wait_idle()
        (data_dir / "index.db").unlink()
        (root / "new.txt").write_text(sentences(1))
        code, message = indexer.wait_exit()
    assert code == 1 and "was deleted" in message and "built anew" in message
    index_once(data_dir, model)
    assert _paths(data_dir) == {"new.txt"}


def test_a_folder_is_the_same_by_whatever_name(data_dir: Path, root: Path, model: Path, tmp_path: Path) -> None:
    write_mixed(root, 3)
    link = tmp_path / "link"
    link.symlink_to(root)
    with running(data_dir, model, root) as indexer:
        indexer.wait_idle()
        indexer.client.add_root(str(link))
        indexer.client.add_root(f"//{root}")
        indexer.client.add_root(str(link / "part0"))
        indexer.wait_for(lambda: any(isinstance(e, Notice) and "already" in e.message for e in indexer.events))
        with Reader.open(data_dir) as reader:
            assert [known.path for known in reader.roots()] == [os.fsencode(root)]
        indexer.client.remove_root(str(link))
        indexer.wait_for(lambda: RootRemoved(str(root)) in indexer.events)


def test_the_data_folder_is_not_indexed_and_it_is_said_why(data_dir: Path, model: Path) -> None:
    with running(data_dir, model, data_dir.parent) as indexer:
        indexer.wait_idle()
        for own in (data_dir, data_dir / "models"):
            own.mkdir(exist_ok=True)
            indexer.client.add_root(str(own))
            sentence = f"{own} holds Inkling's own files, which are not indexed."
            indexer.wait_for(lambda sentence=sentence: Notice(sentence) in indexer.events)


def test_a_folder_within_a_root_is_not_indexed_twice(data_dir: Path, root: Path, model: Path) -> None:
    write_mixed(root, 7)
    inner = root / "part0"
    with running(data_dir, model, inner) as indexer:
        indexer.wait_idle()
        before = embedded(data_dir)
        indexer.client.add_root(str(root))
        indexer.wait_for(lambda: RootChanged(str(root), "watching") in indexer.events)
        indexer.wait_for(lambda: _paths(data_dir) == files_on_disk(root))
        indexer.client.add_root(str(inner))
        indexer.wait_for(lambda: any(isinstance(e, Notice) and "already" in e.message for e in indexer.events))
        indexer.wait_idle()
        assert embedded(data_dir) == 7 and before == 1
        assert len({row["root"] for row in picture(data_dir) if "root" in row}) == 1


def _paths(data_dir: Path) -> set[str]:
    return set(indexed_paths(data_dir))
