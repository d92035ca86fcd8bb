"""From rows of tasks to an array's state."""

from __future__ import annotations

import pytest

from tests.unit.engine.records import record
from towline.engine.watching import arrays
from towline.models.job import MOST_FAILURES, Attempt, JobRecord, JobState, Tasks
from towline.slurm.parse import SlurmId
from towline.slurm.poll import AttemptFiles, PollAnswer, parse_poll

SLURM = SlurmId("7")
GOING = AttemptFiles(present=True)
CANCELLED = AttemptFiles(present=True, cancelled=True)


def array(asked: str = "0-9") -> JobRecord:
    return record(state=JobState.PENDING, attempts=(Attempt(slurm_id="7"),), tasks=Tasks.of(asked))


def queue(*rows: str) -> PollAnswer:
    """An answer with these rows of squeue: id, state and maybe a reason."""
    lines = [
        f">{(row + '|None').split('|')[0]}|{row.split('|')[1]}|10|20|30|1|node1|{row.split('|')[-1]}" for row in rows
    ]
    return parse_poll("\n".join(["@query 0 squeue - 7", *lines, "@end"]))


@pytest.mark.parametrize(
    ("rows", "state", "note"),
    [
        (["7_[0-9]|PENDING|Priority"], JobState.PENDING, "0 of 10 tasks have ended"),
        (["7_[4-9%4]|PENDING|JobArrayTaskLimit", "7_[0-3]|RUNNING|None"], JobState.RUNNING, "0 of 10 tasks have ended"),
        (["7_[1-9]|PENDING|Resources", "7_0|COMPLETED|None"], JobState.PENDING, "1 of 10 tasks have ended"),
        (["7_[0-9]|COMPLETED|None"], JobState.SUCCEEDED, ""),
        (["7_[0,2-9]|COMPLETED|None", "7_1|FAILED|None"], JobState.FAILED, "1 of 10 failed (1)"),
        (["7_[0,2-9]|CANCELLED|None", "7_1|FAILED|None"], JobState.FAILED, "1 of 10 failed (1)"),
        (["7_[0,2-9]|COMPLETED|None", "7_1|CANCELLED|None"], JobState.CANCELLED, ""),
        (["7_[0-8]|COMPLETED|None", "7_9|FOO_BAR|None"], JobState.RUNNING, "9 of 10 tasks have ended"),
    ],
)
def test_the_whole_follows_from_its_tasks(rows: list[str], state: JobState, note: str) -> None:
    found = arrays.count(array(), SLURM, queue(*rows), GOING)
    assert found.record.state is state
    assert found.record.note.startswith(note)
    assert not found.missing


def test_a_cancelled_array_is_cancelled_though_a_task_had_failed() -> None:
    found = arrays.count(array(), SLURM, queue("7_[0-8]|CANCELLED|None", "7_9|FAILED|None"), CANCELLED)
    assert found.record.state is JobState.CANCELLED


def test_a_task_without_a_row_stays_as_it_was_and_is_missing_if_it_had_not_ended() -> None:
    before = arrays.count(array(), SLURM, queue("7_[0-3]|COMPLETED|None", "7_[4-9]|RUNNING|None"), GOING).record
    found = arrays.count(before, SLURM, queue("7_[5-9]|RUNNING|None"), GOING)
    assert found.missing == {4}
    assert found.record.tasks is not None
    assert (found.record.tasks.succeeded, found.record.tasks.running) == ("0-3", "4-9")
    gone = arrays.without_missing(found, GOING)
    assert gone.record.tasks is not None
    assert gone.record.tasks.cancelled == "4"


def test_a_task_that_only_accounting_says_goes_on_is_to_be_looked_at() -> None:
    """It missed the end: such records stay for ever (sacctmgr(1), runawayjobs)."""
    rows = [
        f">7_{task}|{word}|0:0|10|20|Unknown|node1" for task, word in ((0, "COMPLETED"), (1, "RUNNING"), (2, "RUNNING"))
    ]
    answer = parse_poll(
        "\n".join(["@query 0 squeue - 7", ">7_2|RUNNING|10|20|30|1|node1|None", "@query 0 sacct - 7", *rows, "@end"])
    )
    found = arrays.count(array("0-2"), SLURM, answer, GOING)
    assert (found.stale, found.missing) == ({1}, frozenset())


def test_rows_of_another_array_do_not_count() -> None:
    found = arrays.count(array("0-1"), SLURM, queue("77_[0-1]|COMPLETED|None", "7_5|FAILED|None"), GOING)
    assert found.missing == {0, 1}


def test_the_first_failed_task_with_a_code_gives_the_arrays_code() -> None:
    failed = arrays.count(array("0-3"), SLURM, queue("7_[0,3]|COMPLETED|None", "7_[1-2]|FAILED|None"), GOING).record
    assert arrays.to_look_at(failed) == (1, 2)
    looks = [
        record(state=JobState.FAILED, task=2, attempts=(Attempt(slurm_id="7_2", task=2, exit_code=9, failed_rank=4),)),
        record(state=JobState.FAILED, task=1, attempts=(Attempt(slurm_id="7_1", task=1),)),
    ]
    found = arrays.with_looks(failed, looks, cancelled=False)
    assert (found.state, found.exit_code, found.last.task, found.last.failed_rank) == (JobState.FAILED, 9, 2, 4)
    assert arrays.to_look_at(found) == ()


def test_of_very_many_failures_only_the_first_are_looked_at() -> None:
    failed = arrays.count(array("0-9999"), SLURM, queue("7_[0-9999]|FAILED|None"), GOING).record
    assert arrays.to_look_at(failed) == tuple(range(MOST_FAILURES))
    assert len(failed.note) < 200


def test_a_task_is_a_job_of_its_own() -> None:
    whole = arrays.count(array("0-3"), SLURM, queue("7_[0-3]|RUNNING|None"), GOING).record
    task = arrays.task_of(whole, 3)
    assert (task.reference, task.last.slurm_id, task.state) == ("a00000001_3", "7_3", JobState.RUNNING)
    assert task.tasks is None
