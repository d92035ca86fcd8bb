"""What a poll's evidence says of a job: rows and files in, the record out."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.unit.engine.records import record
from towline.engine.watching.attempts import with_new_attempts, with_told_ends
from towline.engine.watching.verdict import GRACE_SECONDS, Evidence, conclude, evidence_of, failed_by_report, waits_on
from towline.launch.records import BY_CANCEL
from towline.models.job import Attempt, JobRecord, JobState
from towline.slurm.parse import AccountingRow, ExitCode, JobHistory, QueueRow, SlurmId
from towline.slurm.poll import AttemptFiles, PollAnswer, Query
from towline.slurm.states import job_state

NOW = 1000.0


def known(state: JobState = JobState.RUNNING, **attempt: Any) -> JobRecord:
    return record(state=state, created=NOW - 10, attempts=(Attempt(slurm_id="7", **attempt),))


def queue(word: str, **fields: Any) -> QueueRow:
    return QueueRow("7", word, job_state(word), submitted=1, started=2, ended=3, nodes="node1", **fields)


def accounted(word: str, code: str = "0:0") -> JobHistory:
    left, right = code.split(":")
    return JobHistory(AccountingRow("7", word, job_state(word), ExitCode(int(left), int(right)), 1, 2, 3, "node1"))


def files(**end: str) -> AttemptFiles:
    return AttemptFiles(present=True, slurm=SlurmId("7"), claim="7", start={"slurm_id": "7"}, end=end or None)


RAN = files(code="7", verdict="failed", rank="2", reason="exit")
DONE = files(code="0", verdict="done")
GOING = files()


@pytest.mark.parametrize(
    ("evidence", "state", "code", "source"),
    [
        (Evidence(GOING, queue("RUNNING")), JobState.RUNNING, None, ""),
        (Evidence(GOING, queue("COMPLETING")), JobState.RUNNING, None, ""),
        (Evidence(DONE, queue("COMPLETING")), JobState.RUNNING, None, ""),
        (Evidence(DONE, queue("COMPLETED")), JobState.SUCCEEDED, 0, "job"),
        (Evidence(DONE, None, accounted("COMPLETED")), JobState.SUCCEEDED, 0, "job"),
        (Evidence(DONE, None, accounted("TIMEOUT")), JobState.SUCCEEDED, 0, "job"),
        (Evidence(DONE, queue("NODE_FAIL")), JobState.SUCCEEDED, 0, "job"),
        (Evidence(DONE, queue("PREEMPTED")), JobState.SUCCEEDED, 0, "job"),
        (Evidence(DONE, None, accounted("OUT_OF_MEMORY", "0:125")), JobState.SUCCEEDED, 0, "job"),
        (Evidence(DONE, queue("CANCELLED")), JobState.CANCELLED, 0, "job"),
        (Evidence(DONE, queue("FAILED")), JobState.FAILED, 0, "job"),
        (Evidence(RAN, queue("TIMEOUT")), JobState.FAILED, 7, "job"),
        (Evidence(RAN, queue("FAILED")), JobState.FAILED, 7, "job"),
        (Evidence(RAN, None, accounted("FAILED", "7:0")), JobState.FAILED, 7, "job"),
        (Evidence(RAN, queue("COMPLETED")), JobState.FAILED, 7, "job"),
        (Evidence(GOING, None, accounted("FAILED", "9:0")), JobState.FAILED, 9, "slurm"),
        (Evidence(GOING, None, accounted("FAILED", "0:53")), JobState.FAILED, None, ""),
        (Evidence(GOING, None, accounted("FAILED", "0:9")), JobState.FAILED, 137, "slurm"),
        (Evidence(GOING, None, accounted("FAILED", "0:0")), JobState.FAILED, None, ""),
        (Evidence(GOING, None, accounted("COMPLETED")), JobState.SUCCEEDED, 0, "slurm"),
        (Evidence(GOING, None, accounted("TIMEOUT")), JobState.FAILED, None, ""),
        (Evidence(GOING, None, accounted("NODE_FAIL")), JobState.FAILED, None, ""),
        (Evidence(GOING, None, accounted("OUT_OF_MEMORY", "0:125")), JobState.FAILED, None, ""),
        (Evidence(GOING, None, accounted("CANCELLED", "0:15")), JobState.CANCELLED, None, ""),
        (Evidence(GOING, queue("PREEMPTED")), JobState.CANCELLED, None, ""),
        (Evidence(GOING, queue("FOO_BAR")), JobState.UNKNOWN, None, ""),
        (Evidence(GOING, queue("SUSPENDED")), JobState.SUSPENDED, None, ""),
        (Evidence(GOING), JobState.RUNNING, None, ""),
        (Evidence(GOING, absent=True), JobState.RUNNING, None, ""),
        (Evidence(files(code="143", verdict="stopped"), queue("CANCELLED")), JobState.CANCELLED, None, ""),
    ],
)
def test_slurms_row_decides_the_state_and_the_jobs_own_record_the_code(
    evidence: Evidence, state: JobState, code: int | None, source: str
) -> None:
    found = conclude(known(), evidence, NOW)
    assert (found.state, found.exit_code, found.last.exit_source) == (state, code, source)


@pytest.mark.parametrize(
    ("decision", "state"),
    [
        ({"class": "node", "next": "yes", "why": ""}, JobState.CANCELLED),
        ({"class": "node", "next": "no", "why": BY_CANCEL}, JobState.CANCELLED),
        ({"class": "user", "next": "no", "why": "the command itself failed"}, JobState.FAILED),
    ],
)
def test_a_job_that_only_the_cancel_kept_from_going_on_is_cancelled(decision: dict[str, str], state: JobState) -> None:
    """Slurm could not be told to end it, and it met a fault by itself before it could."""
    left = dataclasses.replace(RAN, cancelled=True, decision=decision)
    assert conclude(known(), Evidence(left, queue("FAILED")), NOW).state is state


def test_a_job_that_was_done_when_its_walltime_was_over_says_so() -> None:
    """slurmctld was away when the script ended, so that Slurm counts it until the moment it heard of that."""
    found = conclude(known(), Evidence(DONE, None, accounted("TIMEOUT")), NOW)
    assert found.note == "its walltime was over, but the command was done by then"


def test_a_failed_query_changes_nothing() -> None:
    before = known(JobState.PENDING, reason="Priority", slurm_state="PENDING")
    assert conclude(before, Evidence(AttemptFiles()), NOW) == dataclasses.replace(
        before, note=conclude(before, Evidence(AttemptFiles()), NOW).note
    )


@pytest.mark.parametrize("reason", ["no-container", "launch"])
def test_a_command_that_never_ran_has_no_code_of_its_own(reason: str) -> None:
    end = files(code="122", verdict="failed", reason=reason)
    found = conclude(known(), Evidence(end, None, accounted("FAILED", "122:0")), NOW)
    assert (found.state, found.exit_code) == (JobState.FAILED, None)
    assert "container" in found.note


def test_a_job_that_completes_keeps_the_nodes_it_ran_on() -> None:
    job = conclude(known(nodes="node[1-2]"), Evidence(GOING, queue("COMPLETING")), NOW)
    assert (job.state, job.last.nodes) == (JobState.RUNNING, "node[1-2]")


def test_the_first_failed_rank_is_named() -> None:
    assert conclude(known(), Evidence(RAN, queue("FAILED")), NOW).last.failed_rank == 2


def test_a_record_that_another_slurm_job_wrote_is_not_this_ones() -> None:
    foreign = dataclasses.replace(RAN, claim="6")
    found = conclude(known(), Evidence(foreign, None, accounted("FAILED", "1:0")), NOW)
    assert (found.exit_code, found.last.exit_source) == (1, "slurm")


@pytest.mark.parametrize(
    ("end", "state", "code"),
    [(None, JobState.CANCELLED, None), ("7", JobState.FAILED, 7), ("0", JobState.SUCCEEDED, 0)],
)
def test_what_slurm_has_forgotten_is_inferred_after_a_grace_period(
    end: str | None, state: JobState, code: int | None
) -> None:
    verdict = "done" if end == "0" else "failed"
    evidence = Evidence(files(code=end, verdict=verdict) if end else GOING, absent=True)
    young = dataclasses.replace(known(), created=NOW - GRACE_SECONDS + 1)
    assert conclude(young, evidence, NOW).state is JobState.RUNNING
    old = dataclasses.replace(known(), created=NOW - GRACE_SECONDS - 1)
    found = conclude(old, evidence, NOW)
    assert (found.state, found.exit_code) == (state, code)
    assert found.note


def test_a_cancelled_job_that_slurm_has_forgotten_is_cancelled_without_a_guess() -> None:
    old = dataclasses.replace(known(), created=NOW - GRACE_SECONDS - 1)
    found = conclude(old, Evidence(AttemptFiles(present=True, cancelled=True), absent=True), NOW)
    assert (found.state, found.note) == (JobState.CANCELLED, "")


@pytest.mark.parametrize(("left", "absent"), [(RAN, True), (GOING, False), (files(code="1", verdict="stopped"), False)])
def test_accounting_that_missed_the_end_of_a_job_does_not_keep_it_running(left: AttemptFiles, absent: bool) -> None:
    answer = PollAnswer(
        complete=True,
        queue={},
        queries=(Query("squeue", "", ("7",), 0), Query("sacct", "", ("7",), 0)),
        accounting={("", "7"): accounted("RUNNING")},
        attempts={("a00000001", 1, None): left},
    )
    assert evidence_of(answer, known()).absent is absent


def test_the_record_of_a_forgotten_job_tells_its_nodes_times_and_cause() -> None:
    left = dataclasses.replace(
        files(code="7", verdict="failed", reason="exit", time="90"),
        start={"slurm_id": "7", "nodes": "node1", "time": "60"},
        decision={"class": "user", "next": "no"},
    )
    old = dataclasses.replace(known(), created=NOW - GRACE_SECONDS - 1)
    found = conclude(old, Evidence(left, absent=True), NOW).last
    assert (found.nodes, found.started, found.ended, found.cause) == ("node1", 60, 90, "user")


def test_a_submission_whose_answer_was_lost_is_found_by_what_it_left() -> None:
    lost = record(created=NOW)
    assert conclude(lost, Evidence(AttemptFiles(present=True)), NOW).state is JobState.SUBMITTING
    answered = AttemptFiles(present=True, slurm=SlurmId("7", "gpu"))
    found = conclude(lost, Evidence(answered), NOW)
    assert (found.state, found.last.slurm_id, found.last.slurm_cluster) == (JobState.PENDING, "7", "gpu")
    claimed = AttemptFiles(present=True, claim="7")
    assert conclude(lost, Evidence(claimed, queue("RUNNING")), NOW).state is JobState.RUNNING


def test_an_ended_job_stays_as_it_is() -> None:
    ended = known(JobState.FAILED)
    assert conclude(ended, Evidence(DONE, queue("COMPLETED")), NOW) == ended


def test_a_pending_job_says_why_and_has_no_start_yet() -> None:
    found = conclude(known(JobState.PENDING), Evidence(GOING, queue("PENDING", reason="Resources")), NOW)
    assert found.note
    assert (found.last.reason, found.last.started, found.last.nodes) == ("Resources", None, "")


@pytest.mark.parametrize(("nodes", "started"), [("", None), ("node1", 80.0)])
def test_a_job_that_was_cancelled_while_it_waited_has_no_start(nodes: str, started: float | None) -> None:
    row = dataclasses.replace(queue("CANCELLED"), nodes=nodes, started=80.0, ended=80.0)
    newest = dataclasses.replace(accounted("CANCELLED").newest, nodes=nodes, started=80.0, ended=80.0)
    for evidence in (Evidence(GOING, row), Evidence(GOING, None, JobHistory(newest))):
        ended = conclude(known(JobState.PENDING), evidence, now=90)
        assert (ended.state, ended.last.started, ended.last.ended) == (JobState.CANCELLED, started, 80.0)


def test_a_requeue_adds_an_attempt_and_the_one_before_keeps_its_end() -> None:
    earlier = AccountingRow("7", "NODE_FAIL", JobState.FAILED)
    history = JobHistory(AccountingRow("7", "RUNNING", JobState.RUNNING), (earlier,))
    grown = with_new_attempts(known(), Evidence(dataclasses.replace(GOING, newest=2), None, history), NOW)
    assert [(each.number, each.slurm_id, each.slurm_state) for each in grown.attempts] == [
        (1, "7", "NODE_FAIL"),
        (2, "7", ""),
    ]
    twice = with_new_attempts(known(), Evidence(dataclasses.replace(GOING, newest=3)), NOW)
    assert [(each.number, each.slurm_state) for each in twice.attempts] == [(1, "REQUEUED"), (2, "REQUEUED"), (3, "")]
    assert with_new_attempts(known(), Evidence(dataclasses.replace(GOING, newest=1)), NOW) == known()


def test_an_attempt_keeps_its_time_of_submission_when_slurm_has_requeued_it() -> None:
    """Slurm tells the time of the requeue before the next attempt has left any file."""
    requeued = QueueRow("7", "PENDING", JobState.PENDING, submitted=90)
    assert conclude(known(submitted=1), Evidence(GOING, requeued), NOW).last.submitted == 1
    history = JobHistory(AccountingRow("7", "PENDING", JobState.PENDING, submitted=90))
    assert conclude(known(submitted=1), Evidence(GOING, None, history), NOW).last.submitted == 1
    waiting = dataclasses.replace(GOING, start=None)
    assert conclude(known(submitted=1), Evidence(waiting, requeued), NOW).last.submitted == 90


def test_why_slurm_put_a_job_back_is_told_once_accounting_says_it() -> None:
    """A job that has gone on is alive in the queue, and accounting is asked only at its end."""
    grown = with_new_attempts(known(nodes="node1"), Evidence(dataclasses.replace(GOING, newest=3)), NOW)
    rows = (AccountingRow("7", "NODE_FAIL", JobState.FAILED), AccountingRow("7", "PREEMPTED", JobState.CANCELLED))
    history = JobHistory(AccountingRow("7", "COMPLETED", JobState.SUCCEEDED), rows)
    told = with_told_ends(grown, history)
    assert [(each.slurm_state, each.cause) for each in told.attempts] == [
        ("NODE_FAIL", "node"),
        ("PREEMPTED", "preempted"),
        ("", ""),
    ]
    assert told.attempts[0].nodes == "node1"
    assert with_told_ends(grown, dataclasses.replace(history, earlier=rows[1:])).attempts[0].slurm_state == "REQUEUED"
    assert with_told_ends(told, dataclasses.replace(history, earlier=(rows[1], rows[0]))) is told
    assert with_told_ends(grown, None) is with_told_ends(grown, dataclasses.replace(history, earlier=())) is grown


def test_an_attempt_that_was_put_back_has_the_times_of_its_own_run() -> None:
    """A poll may see the next attempt run before that has left a file: what Slurm tells then is not about this one."""
    begun = dataclasses.replace(GOING, newest=2, start={"time": "10", "nodes": "node1"})
    seen = known(started=80, nodes="node2")
    put_back = with_new_attempts(seen, Evidence(begun), NOW).attempts[0]
    assert (put_back.started, put_back.ended, put_back.nodes) == (10, None, "node1")
    row = AccountingRow("7", "NODE_FAIL", JobState.FAILED, started=9, ended=40, nodes="node1")
    told = JobHistory(AccountingRow("7", "RUNNING", JobState.RUNNING), (row,))
    for grown in (
        with_new_attempts(seen, Evidence(begun, None, told), NOW),
        with_told_ends(with_new_attempts(seen, Evidence(begun), NOW), told),
    ):
        first = grown.attempts[0]
        assert (first.slurm_state, first.started, first.ended, first.nodes) == ("NODE_FAIL", 10, 40, "node1")
    saved = dataclasses.replace(begun, end={"code": "143", "verdict": "stopped", "time": "12"})
    assert with_new_attempts(seen, Evidence(saved), NOW).attempts[0].ended == 12


def test_a_task_that_was_started_again_keeps_its_own_id() -> None:
    """Its files tell the array's."""
    task = dataclasses.replace(known(), task=3, attempts=(Attempt(slurm_id="7_3", task=3),))
    later = AttemptFiles(present=True, newest=2, claim="7")
    evidence = Evidence(dataclasses.replace(GOING, claim="7", newest=2), later=(later,))
    grown = with_new_attempts(task, evidence, NOW)
    assert [(each.number, each.slurm_id, each.slurm_state) for each in grown.attempts] == [
        (1, "7_3", "REQUEUED"),
        (2, "7_3", ""),
    ]


def test_an_attempt_that_the_job_submitted_has_its_own_slurm_job() -> None:
    decision = {"class": "node", "next": "yes", "nodes": "n3", "evidence": "Xid 79"}
    files = dataclasses.replace(RAN, newest=2, decision=decision, start={"nodes": "n3", "time": "5"})
    later = AttemptFiles(present=True, newest=2, slurm=SlurmId("9"))
    grown = with_new_attempts(known(), Evidence(files, queue("FAILED"), later=(later,)), NOW)
    first, second = grown.attempts
    assert (first.slurm_id, first.slurm_state, first.exit_code) == ("7", "FAILED", 7)
    assert (first.cause, first.evidence, first.bad_nodes) == ("node", "Xid 79", "n3")
    assert (second.number, second.slurm_id, second.slurm_state) == (2, "9", "")


def test_a_duplicate_that_left_is_followed_to_the_job_that_has_the_attempt() -> None:
    foreign = dataclasses.replace(RAN, claim="6", end=None)
    found = conclude(known(), Evidence(foreign, None, accounted("FAILED", "120:0")), NOW)
    assert (found.state, found.last.slurm_id) == (JobState.PENDING, "6")


def test_a_report_of_failure_fails_a_job_that_slurm_calls_completed() -> None:
    text = '{"status": "RUNNING", "epoch": 3}\n{"status": "FAILURE", "message": "CUDA went away"}\n'
    reported = dataclasses.replace(DONE, report=text, reported=True)
    done = conclude(known(), Evidence(reported, queue("COMPLETED")), NOW)
    assert (done.state, done.progress and done.progress.epoch) == (JobState.SUCCEEDED, 3)
    failed = failed_by_report(done, reported)
    assert (failed.state, failed.exit_code) == (JobState.FAILED, None)
    assert "CUDA went away" in failed.note
    stale = dataclasses.replace(reported, reported=False)
    assert failed_by_report(done, stale) is done
    went_well = dataclasses.replace(reported, report='{"status": "SUCCESS"}')
    done = conclude(known(), Evidence(went_well, queue("COMPLETED")), NOW)
    assert failed_by_report(done, went_well) is done


@pytest.mark.parametrize(
    ("left", "said"),
    [
        (AttemptFiles(), "directory is gone"),
        (AttemptFiles(present=True, slurm=SlurmId("7")), "before its first step"),
        (GOING, "disk may have been full"),
    ],
)
def test_a_failure_without_a_record_says_why_there_may_be_none(left: AttemptFiles, said: str) -> None:
    assert said in conclude(known(), Evidence(left, None, accounted("FAILED", "1:0")), NOW).note


HELD = QueueRow("7", "PENDING", JobState.PENDING, submitted=1, node_count=1, reason="JobHeldUser")
WAITING = conclude(known(JobState.PENDING), Evidence(AttemptFiles(), HELD), NOW)


def answered(row: QueueRow | None, *, looked_at: bool = False) -> PollAnswer:
    found: dict[tuple[str, int, int | None], AttemptFiles] = {}
    if looked_at:
        found["a00000001", 1, None] = AttemptFiles(present=True)
    return PollAnswer(True, (), {("", "7"): row} if row else {}, {}, found)


def test_a_job_that_waits_as_before_is_not_concluded_again() -> None:
    assert waits_on(WAITING, answered(HELD))
    assert waits_on(WAITING, answered(dataclasses.replace(HELD, started=99)))  # the expected start is not kept
    assert conclude(WAITING, Evidence(AttemptFiles(), HELD), NOW) == WAITING


@pytest.mark.parametrize(
    ("changes", "row", "looked_at"),
    [
        ({}, None, False),
        ({}, HELD, True),
        ({}, dataclasses.replace(HELD, reason="Priority"), False),
        ({}, dataclasses.replace(HELD, submitted=2), False),
        ({}, dataclasses.replace(HELD, word="RUNNING", state=JobState.RUNNING), False),
        ({}, dataclasses.replace(HELD, word="REQUEUED"), False),
        ({"state": JobState.RUNNING}, HELD, False),
        ({"state": JobState.UNKNOWN}, HELD, False),
        ({"note": "something else"}, HELD, False),
        ({"task": 3}, HELD, False),
    ],
)
def test_whatever_is_new_of_a_job_that_waits_is_concluded(
    changes: dict[str, Any], row: QueueRow | None, looked_at: bool
) -> None:
    assert not waits_on(dataclasses.replace(WAITING, **changes), answered(row, looked_at=looked_at))
