"""Ignore files mean here what they mean to git."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from towline.engine.staging.trees import whole_tree

PATHS = ("a", "b.py", "ab/a", "ab/b.py", "ab/c/a", "ab/c/b.py", "c/ab", "c/-x", "]", "ab/ a", "a b/c")
PIECES = ("a", "b", "c", "*", "?", "**", "/", ".py", "[ab]", "[!a]", "[]-]", "\\", " ", "-", "!", "#")


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("repository")
    for path in PATHS:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("")
    subprocess.run(["git", "-C", root, "init", "-q"], check=True)
    return root


def assert_like_git(root: Path, text: str, place: str = ".gitignore") -> None:
    (root / place).write_text(text)
    try:
        listed = subprocess.run(
            ["git", "-C", root, "ls-files", "-z", "--others", "--exclude-standard"], check=True, capture_output=True
        ).stdout
        assert set(whole_tree(root).paths) == set(listed.decode().split("\0")) - {""}
    finally:
        (root / place).unlink()


@pytest.mark.parametrize(
    "text",
    [
        *("a", "/a", "ab/", "a/", "*.py", "ab/*.py", "**/b.py", "ab/**", "**/c/**", "a**b", "ab/**/a", "/*", "*/"),
        *("*\n!*/\n!*.py", "*.py\n!b.py", "ab\n!ab/a", "ab/*\n!ab/c", "!a", "\\]", "[]]", "[!b].py", "[^b].py"),
        *("[a-c]", "\\#", "#a", "a \\ ", " a", "\\ a", "a\\", "a\r", "[a", "", "/", "//", "c//", "**", "c/[-]x", "?b"),
    ],
)
def test_a_pattern_leaves_out_what_git_leaves_out(repository: Path, text: str) -> None:
    assert_like_git(repository, text)


def test_patterns_of_a_folder_count_below_it(repository: Path) -> None:
    assert_like_git(repository, "/a\n*.py\n!c/b.py\n", "ab/.gitignore")


@settings(max_examples=30, deadline=None)
@given(lines=st.lists(st.lists(st.sampled_from(PIECES), min_size=1, max_size=5).map("".join), min_size=1, max_size=3))
def test_any_ignore_file_means_the_same_as_to_git(repository: Path, lines: list[str]) -> None:
    # git compares what stands before the first wildcard by itself, so that to it `a**/a` is an `a` and then `**/a`;
    # gitignore(5) has such asterisks as ordinary ones, and so has Towline.
    assume(not any(re.search(r"[^/*]\*\*+/", line) for line in lines))
    assert_like_git(repository, "\n".join(lines))
