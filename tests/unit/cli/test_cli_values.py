"""Words on the command line that cannot be meant: a sentence, and nothing is asked of the cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Towline = Callable[..., Any]


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    "words",
    [
        ("push", ""),
        ("push", ".", ""),
        ("pull", ""),
        ("pull", "sets", ""),
        ("results", "job", "--pull", ""),
        ("spec", "check", ""),
        ("run", "-f", ""),
        ("plan", "-f", ""),
        ("trust", ""),
        ("registry", "login", ""),
    ],
)
def test_an_empty_name_means_nothing(towline: Towline, words: tuple[str, ...]) -> None:
    done = towline(*words)
    assert (done.status, done.stdout) == (64, "")
    assert "it is empty" in done.stderr


@pytest.mark.usefixtures("cluster")
def test_an_empty_directory_of_code_is_no_directory(towline: Towline) -> None:
    done = towline("run", "--code", "", "--", "true")
    assert done.status == 65
    assert "the directory's name is empty" in done.stderr


def test_a_state_that_no_job_ends_in(towline: Towline) -> None:
    done = towline("gc", "--state", "sucess")
    assert done.status == 64
    assert "succeeded" in done.stderr


@pytest.mark.usefixtures("cluster")
def test_a_table_entry_without_a_name_is_shown_how_to_write(towline: Towline) -> None:
    assert "--label NAME=" in towline("run", "--label", "", "--", "true").stderr


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("--output", "a=/x/1", "--output", "a=/x/2"), 64, "--output is given twice for a: a=/x/1 and a=/x/2"),
        (("--input", "/d=/x/1", "--input", "/d=/x/2"), 64, "--input is given twice for /d"),
        (
            ("--network", "n", "--dataset", "train=/1", "--dataset", "train=/2"),
            64,
            "--dataset is given twice for train",
        ),
        (("--output", "=/x/1"), 65, "outputs: '' must be a path below the results directory; `.` is all of it"),
        (("--output", "a="), 65, "'' names nothing"),
        (("--output", "a=s3://"), 65, "'s3://' names nothing"),
    ],
)
def test_data_is_named_once_and_by_something(towline: Towline, words: tuple[str, ...], status: int, said: str) -> None:
    done = towline("plan", *words, "--", "true")
    assert done.status == status, done.stderr
    assert said in done.stderr
