"""What is left out, by name, by the ignore files, and because it is ours."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from indexer.watch.ignore import IgnoreRules


def rules(root: Path, *own: Path) -> IgnoreRules:
    return IgnoreRules(os.fsencode(root), [os.fsencode(folder) for folder in own])


@pytest.mark.parametrize(
    "name", [".git", "node_modules", "__pycache__", ".cache", "$RECYCLE.BIN", "System Volume Information"]
)
def test_folders_that_nobody_searches_are_left_out(tmp_path: Path, name: str) -> None:
    assert rules(tmp_path).ignores(os.fsencode(tmp_path / name), is_directory=True)
    assert not rules(tmp_path).ignores(os.fsencode(tmp_path / name), is_directory=False)


def test_hidden_folders_are_left_out_unless_a_rule_brings_them_back(tmp_path: Path) -> None:
    (tmp_path / ".inklingignore").write_text("!.config/\n")
    made = rules(tmp_path)
    assert made.ignores(os.fsencode(tmp_path / ".mozilla"), is_directory=True)
    assert not made.ignores(os.fsencode(tmp_path / ".config"), is_directory=True)
    assert not made.ignores(os.fsencode(tmp_path / ".notes.md"), is_directory=False)


@pytest.mark.parametrize("name", ["~$letter.docx", ".~lock.a.odt#", "._a.txt", "a.txt~", ".a.swp", "b.part"])
def test_files_of_programs_at_work_are_left_out(tmp_path: Path, name: str) -> None:
    assert rules(tmp_path).ignores(os.fsencode(tmp_path / name), is_directory=False)


def test_our_own_folders_are_left_out_also_by_another_way(tmp_path: Path) -> None:
    own = tmp_path / "real" / "data"
    own.mkdir(parents=True)
    (tmp_path / "alias").symlink_to(tmp_path / "real")
    assert rules(tmp_path / "real", own).ignores(os.fsencode(own), is_directory=True)
    alias = tmp_path / "alias"
    assert rules(alias, own).ignores(os.fsencode(alias / "data"), is_directory=True)


def test_ignore_files_count_for_all_below_and_the_deepest_decides(tmp_path: Path) -> None:
    (tmp_path / "sub" / "deep").mkdir(parents=True)
    (tmp_path / ".inklingignore").write_text("*.log\nold/\n/top.txt\n")
    (tmp_path / "sub" / ".inklingignore").write_text("!keep.log\n")
    made = rules(tmp_path)

    def ignored(name: str, *, is_directory: bool = False) -> bool:
        return made.ignores(os.fsencode(tmp_path / name), is_directory=is_directory)

    assert ignored("a.log") and ignored("sub/a.log") and not ignored("sub/keep.log")
    assert ignored("old", is_directory=True) and not ignored("old")
    assert ignored("top.txt") and not ignored("sub/top.txt")
    assert made.ignores_deep(os.fsencode(tmp_path / "old" / "x" / "y.txt"), is_directory=False)
    assert not made.ignores_deep(os.fsencode(tmp_path / "sub" / "y.txt"), is_directory=False)


def test_gitignore_counts_only_where_git_would_read_it(tmp_path: Path) -> None:
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "repo" / "inner").mkdir()
    for folder in (tmp_path, tmp_path / "repo" / "inner"):
        (folder / ".gitignore").write_text("*.txt\n")
    made = rules(tmp_path)
    assert not made.ignores(os.fsencode(tmp_path / "a.txt"), is_directory=False)
    assert made.ignores(os.fsencode(tmp_path / "repo" / "inner" / "a.txt"), is_directory=False)


def test_rules_are_read_again_when_told(tmp_path: Path) -> None:
    file, made = os.fsencode(tmp_path / "a.txt"), rules(tmp_path)
    assert not made.ignores(file, is_directory=False)
    (tmp_path / ".inklingignore").write_text("a.txt\n")
    assert not made.ignores(file, is_directory=False)
    made.forget(os.fsencode(tmp_path))
    assert made.ignores(file, is_directory=False)


def test_a_name_that_is_not_utf8_can_be_ignored_too(tmp_path: Path) -> None:
    (tmp_path / ".inklingignore").write_bytes(b"caf\xe9.txt\n")
    assert rules(tmp_path).ignores(os.fsencode(tmp_path) + b"/caf\xe9.txt", is_directory=False)
