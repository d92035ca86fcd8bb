"""What a tree made by a job may bring home."""

from __future__ import annotations

import posixpath
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline.models.tree import FileState, Tree, TreeFile
from towline.storage.results import (
    ResultFile,
    admit,
    parse_tree,
    result_files,
    safe_link,
    safe_member_path,
    select,
    without_unfinished,
)

SECOND = 10**9
PARTS = st.lists(st.sampled_from(["..", ".", "a", "b", "", "x y", "\n"]), max_size=8).map("/".join)


def file(path: str) -> Tree:
    return Tree(files=(TreeFile(path, FileState(1, 1)),))


@pytest.mark.parametrize(
    ("tree", "path", "admitted"),
    [
        (file("a/b"), "a/b", True),
        (file("a b\n"), "a b\n", True),
        (Tree(folders=("a",)), "a", True),
        (Tree(links=(("a/l", "../b"),)), "a/l", True),
        (Tree(links=(("a/l", "c/d"),)), "a/l", True),
        (file("/etc/passwd"), "/etc/passwd", False),
        (file("../x"), "../x", False),
        (file("a/../b"), "a/../b", False),
        (file(".towline-pull/x"), ".towline-pull/x", False),
        (Tree(folders=(".towline-pull",)), ".towline-pull", False),
        (Tree(links=((".towline-pull", "a"),)), ".towline-pull", False),
        (Tree(folders=("../x",)), "../x", False),
        (Tree(links=(("l", "/etc"),)), "l", False),
        (Tree(links=(("l", "../x"),)), "l", False),
        (Tree(links=(("a/l", "b/../../.."),)), "a/l", False),
        (Tree(links=(("a/l", ""),)), "a/l", False),
        (Tree(links=(("../l", "a"),)), "../l", False),
        (Tree(others=("pipe",)), "pipe", False),
    ],
)
def test_only_what_stays_below_the_destination_is_admitted(tree: Tree, path: str, admitted: bool) -> None:
    assert admit(tree, ".towline-pull") == ((tree, ()) if admitted else (Tree(), (path,)))


@given(PARTS)
def test_an_admitted_name_never_leaves_the_destination(name: str) -> None:
    path = safe_member_path(name)
    if path is not None:
        assert posixpath.normpath(posixpath.join("/dest", path)).startswith("/dest")


@given(PARTS, PARTS)
def test_an_admitted_link_never_leaves_the_destination(name: str, target: str) -> None:
    path = safe_member_path(name)
    if path is not None and safe_link(path, target):
        where = posixpath.join("/dest", posixpath.dirname(path), target)
        assert posixpath.normpath(where).startswith("/dest")


def test_names_may_hold_anything_but_nul() -> None:
    stdout = b"\0f 3 17.5000000000 644 1.2 a b\n|c\0\0" + b"u 0 1.0 0 - " + "ä".encode() + b"\xff\0\0"
    tree = parse_tree(stdout)
    assert tree == Tree(
        files=(TreeFile("a b\n|c", FileState(3, 17_500_000_000), 0o644, "1.2"),),
        unreadable=(TreeFile("ä\udcff", FileState(0, 10**9), 0, "-"),),
    )
    assert result_files(tree) == (ResultFile("a b\n|c", 3, 17.5), ResultFile("ä\udcff", 0, 1.0, readable=False))


def test_a_listing_tells_all_kinds_and_where_rsync_is() -> None:
    entries = {"d 9 1.0 755 1.1 ": "", "d 9 1.0 755 1.2 d": "", "l 4 1.0 777 1.3 l": "d/x", "p 0 1.0 600 1.4 p": ""}
    stdout = "/usr/bin/rsync\0" + "".join(f"{head}\0{target}\0" for head, target in entries.items())
    tree = parse_tree(stdout.encode())
    assert tree == Tree(folders=("d",), links=(("l", "d/x"),), others=("p",), rsync="/usr/bin/rsync")


@pytest.mark.parametrize("stdout", [b"", b"\0f 3 17.5 644 1.2 a\0", b"\0f 3 17.5 644 1.2 a\0\0f 3"])
def test_a_listing_that_was_cut_is_none(stdout: bytes) -> None:
    with pytest.raises(ValueError, match="ends within"):
        parse_tree(stdout)


@pytest.mark.parametrize(
    ("patterns", "chosen"),
    [
        ((), {"a.pt", "run/b.pt", "run/log.txt", "run/deep/c.txt"}),
        (("*.pt",), {"a.pt", "run/b.pt"}),
        (("/*.pt",), {"a.pt"}),
        (("run/",), {"run/b.pt", "run/log.txt", "run/deep/c.txt"}),
        (("run/*.txt",), {"run/log.txt"}),
        (("run/**/*.txt", "a.*"), {"run/log.txt", "run/deep/c.txt", "a.pt"}),
        (("none",), set[str]()),
    ],
)
def test_patterns_choose_files(patterns: tuple[str, ...], chosen: set[str]) -> None:
    paths = ("a.pt", "run/b.pt", "run/log.txt", "run/deep/c.txt")
    tree = Tree(tuple(TreeFile(path, FileState(1, 1)) for path in paths))
    assert {file.path for file in select(tree, patterns).files} == chosen


@pytest.mark.parametrize(
    ("path", "age", "whole"),
    [
        ("a.pt", 11, True),
        ("a.pt", 9, False),
        ("a.pt", -1, False),
        ("a.pt", -3600, True),  # a time that was set on purpose
        ("tmp-checkpoint-5/a.pt", 1000, False),
        ("a.pt.incomplete", 1000, False),
        ("run/events.out.tfevents.17.node1", 0, True),
        ("train.log", 0, True),
    ],
)
def test_what_a_running_job_still_writes_stays(path: str, age: int, whole: bool) -> None:
    one = TreeFile(path, FileState(1, (1_000_000 - age) * SECOND))
    running = Tree(files=(one,), now=1_000_000 * SECOND)
    assert without_unfinished(running) == ((running, ()) if whole else (replace(running, files=()), (path,)))
    ended = Tree(files=(one,))
    assert without_unfinished(ended) == (ended, ())
