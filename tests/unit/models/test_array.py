"""Task numbers of arrays, as Slurm writes them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline.models.array import check_array, format_tasks, parse_tasks
from towline.models.job import Attempt, JobState, Tasks


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("3", [3]),
        ("0-3", [0, 1, 2, 3]),
        ("0-9:3", [0, 3, 6, 9]),
        ("1,3,5-7%2", [1, 3, 5, 6, 7]),
        ("5,1-2,2", [1, 2, 5]),
        ("", []),
    ],
)
def test_a_text_names_numbers(text: str, numbers: list[int]) -> None:
    assert sorted(parse_tasks(text)) == numbers


@given(st.frozensets(st.integers(0, 300)))
def test_what_is_written_is_read_again(numbers: frozenset[int]) -> None:
    assert parse_tasks(format_tasks(numbers)) == numbers


def test_neighbours_are_written_as_a_range() -> None:
    assert format_tasks([7, 0, 1, 2, 9, 8]) == "0-2,7-9"


@pytest.mark.parametrize(
    "text", ["", "a", "3-1", "-1", "0-4000001", "1%0", "1%", "1%x", "0-9:0", "1;2", "0-2000000", "1\n2-", "\u0663"]
)
def test_what_slurm_would_not_take_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        check_array(text)


def test_blanks_are_taken_out() -> None:
    assert check_array("0-3, 7 %2") == "0-3,7%2"


def test_a_task_that_has_not_failed_after_all_is_no_failure() -> None:
    tasks = Tasks.of("0-2").with_states({0: JobState.FAILED, 1: JobState.RUNNING, 2: JobState.SUCCEEDED})
    tasks = replace(tasks, failures=(Attempt(task=0, exit_code=3),))
    assert Tasks.from_json(tasks.to_json()) == tasks
    again = tasks.with_states({**tasks.states(), 0: JobState.PENDING})
    assert (again.pending, again.failed, again.failures) == ("0", "", ())
