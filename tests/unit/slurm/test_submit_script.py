"""The submission script: however often and from wherever it is called, an attempt becomes exactly one job."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.slurm.stubs import Ran, Slurm, ended
from towline.slurm.calls import Call, Submission, find_call, submit_call
from towline.slurm.commands import sbatch
from towline.slurm.parse import SlurmId
from towline.slurm.refusals import RefusalKind
from towline.slurm.submission import Came, ScriptExit, SubmitAnswer, parse_submission, submission_error

TOKEN = "train-k3q9p0abc-a1"  # noqa: S105 (a job name)


class Desk:
    """A staged job directory and the means to submit it."""

    def __init__(self, home: Path) -> None:
        self.slurm = Slurm(home)
        self.home = home
        self.job = home / "root" / "jobs" / "k3q9p0abc"
        self.attempt = self.job / "attempts" / "1"
        (self.job / "script").mkdir(parents=True)
        (self.job / "attempts").mkdir()
        (self.job / "slurm-logs").mkdir()
        (self.job / "script" / "batch").write_text(f"#!/bin/sh\n#SBATCH --job-name={TOKEN}\n")
        self.calls = 0

    def call(self, message_timeout: int = 10) -> Call:
        command = sbatch(f"{self.job}/script/batch")
        root = str(self.home / "root")
        return submit_call(
            Submission(root, "k3q9p0abc", 1, TOKEN, command, time.time(), message_timeout, owner="me@here")
        )

    def where(self) -> Path:
        self.calls += 1
        return self.home / f"call{self.calls}"

    def submit(self, message_timeout: int = 10, environment: Mapping[str, str] | None = None) -> SubmitAnswer:
        return read(self.slurm.run(self.call(message_timeout), self.where(), **(environment or {})))

    def find(self, *, withdraw: bool = False) -> SubmitAnswer:
        submission = Submission(str(self.home / "root"), "k3q9p0abc", 1, TOKEN, (), time.time())
        return read(self.slurm.run(find_call(submission, withdraw=withdraw), self.where()))

    def claim_of_the_past(self, seconds: float, *, signed: bool = True) -> None:
        """A claim whose maker died after it, that long ago."""
        self.attempt.mkdir()
        if signed:
            (self.attempt / "submitter").write_text("owner=gone\n")
        then = time.time() - seconds
        for path in (self.attempt / "submitter", self.attempt):
            if path.exists():
                os.utime(path, (then, then))


def read(ran: Ran) -> SubmitAnswer:
    return parse_submission(ran.code, ran.out, ran.err)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_it_submits_writes_the_answer_down_and_links_the_logs(desk: Desk) -> None:
    answer = desk.submit()
    assert (answer.exit, answer.slurm, answer.came) == (ScriptExit.OK, SlurmId("41"), Came.SUBMITTED)
    assert (desk.attempt / "submit").read_text() == "41\n"
    assert (desk.job / "slurm-logs" / f"{TOKEN}-41").resolve() == desk.attempt
    assert "owner=me@here" in (desk.attempt / "submitter").read_text()
    assert submission_error(answer) is None


def test_a_second_call_finds_the_answer_without_asking_slurm(desk: Desk) -> None:
    desk.submit()
    answer = desk.submit()
    assert (answer.slurm, answer.came) == (SlurmId("41"), Came.RECORDED)
    assert desk.slurm.jobs == [41]
    assert len(desk.slurm.calls("sbatch")) == 1
    assert desk.slurm.calls("squeue") == []


def test_files_are_private(desk: Desk) -> None:
    desk.submit()
    assert {path.stat().st_mode & 0o077 for path in [desk.attempt, *desk.attempt.iterdir()]} == {0}


@pytest.mark.parametrize(("mode", "expected"), [("banner", SlurmId("41")), ("cluster", SlurmId("41", "gpu"))])
def test_the_answer_is_found_in_what_a_site_prints(desk: Desk, mode: str, expected: SlurmId) -> None:
    desk.slurm.set(sbatch_mode=mode)
    assert desk.submit().slurm == expected
    assert desk.submit().slurm == expected


FILTER = "".join(f"--> Check {number}: passed\n" for number in range(10))
NOTICES = "sbatch: lua: account set to research\nsbatch: warning: 2 of 3 nodes in maintenance 41\n"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("41\n", SlurmId("41")),
        ("41", SlurmId("41")),
        ("  41\r\n", SlurmId("41")),
        ("41;gpu\n", SlurmId("41", "gpu")),
        ("Submitted batch job 41\n", SlurmId("41")),
        ("Submitted batch job 41 on cluster gpu-2\n", SlurmId("41", "gpu-2")),
        (f"{FILTER}No reservation for this job\n41\n", SlurmId("41")),
        ("Welcome to the Stampede3 Supercomputer\n3 jobs run, 12 wait\n41\n----\n", SlurmId("41")),
        ("41\n41\n", SlurmId("41")),
    ],
)
def test_every_form_of_sbatchs_answer_is_read_and_kept(desk: Desk, said: str, expected: SlurmId) -> None:
    desk.slurm.set(sbatch_mode="say", sbatch_out=said, sbatch_err=NOTICES)
    answer = desk.submit()
    assert (answer.exit, answer.slurm) == (ScriptExit.OK, expected)
    assert "maintenance" in answer.notices
    assert (desk.attempt / "submit").read_text() == f"{expected}\n"
    assert desk.submit().slurm == expected


@pytest.mark.parametrize("said", ["", "41\n42\n", "job 41\n", "41 42\n"])
def test_an_answer_without_one_id_is_looked_up_in_the_queue(desk: Desk, said: str) -> None:
    desk.slurm.set(sbatch_mode="say", sbatch_out=said, sbatch_err="")
    answer = desk.submit()
    assert (answer.slurm, answer.came) == (SlurmId("41"), Came.QUEUE)


def test_variables_that_would_change_the_submission_are_gone_and_slurm_conf_stays(desk: Desk) -> None:
    given = {
        "SBATCH_PARTITION": "evil",
        "SLURM_CPU_BIND": "none",
        "SLURM_JOB_ID": "7",
        "SQUEUE_USERS": "nobody",
        "PMIX_RANK": "0",
        "SLURM_CONF": "/etc/here",
        "SWEET": "a\nSLURM_FAKE=1",
    }
    desk.submit(environment=given)
    seen = (desk.slurm.state / "sbatch.env").read_text().splitlines()
    names = {line.partition("=")[0] for line in seen}
    assert not names & (given.keys() - {"SLURM_CONF", "SWEET"})
    assert "SLURM_CONF=/etc/here" in seen
    assert "SLURM_TIME_FORMAT" not in names


def test_a_lost_answer_is_looked_up(desk: Desk) -> None:
    desk.slurm.set(sbatch_mode="lost")
    answer = desk.submit()
    assert (answer.exit, answer.slurm, answer.came) == (ScriptExit.OK, SlurmId("41"), Came.QUEUE)
    assert desk.slurm.jobs == [41]
    assert desk.submit().came is Came.RECORDED


def test_a_job_that_already_left_the_queue_is_found_in_accounting(desk: Desk) -> None:
    desk.claim_of_the_past(3600)
    desk.slurm.add(7, TOKEN, runs="COMPLETED|0:0|1|1|1|node1")
    desk.slurm.add(6, "somebody-else", runs="COMPLETED|0:0|1|1|1|node1")
    answer = desk.submit()
    assert (answer.slurm, answer.came) == (SlurmId("7"), Came.ACCOUNTING)
    assert desk.slurm.calls("sbatch") == []
    assert "--starttime=uts" in desk.slurm.calls("sacct")[0]


def test_a_clock_that_is_ahead_does_not_hide_the_job(desk: Desk) -> None:
    desk.claim_of_the_past(3600)
    desk.slurm.add(7, TOKEN, runs="COMPLETED|0:0|1|1|1|node1")
    call = desk.call()
    ahead = str(int(time.time()) + 30 * 86400)
    assert read(desk.slurm.run(replace(call, args=(*call.args[:4], ahead, *call.args[5:])), desk.where())).slurm
    since = int(desk.slurm.calls("sacct")[0].partition("--starttime=uts")[2].split()[0])
    assert since < time.time() - 80_000


def test_a_job_that_started_is_known_by_its_own_claim(desk: Desk) -> None:
    desk.claim_of_the_past(3600)
    (desk.attempt / "claim").write_text("99\n")
    answer = desk.submit()
    assert (answer.slurm, answer.came) == (SlurmId("99"), Came.CLAIMED)


def test_no_answer_and_no_job_stays_open_and_is_sent_again_only_when_the_claim_is_old(desk: Desk) -> None:
    desk.slurm.set(sbatch_mode="nothing")
    answer = desk.submit()
    assert answer.exit is ScriptExit.UNCLEAR
    assert answer.refusal is not None
    assert answer.refusal.kind is RefusalKind.AMBIGUOUS
    desk.slurm.set(sbatch_mode="accept")
    assert desk.submit().exit is ScriptExit.IN_FLIGHT
    assert desk.slurm.jobs == []
    then = time.time() - 60
    os.utime(desk.attempt / "submitter", (then, then))
    assert desk.submit().came is Came.SUBMITTED
    assert desk.slurm.jobs == [41]


def test_an_sbatch_that_says_nothing_is_not_believed(desk: Desk) -> None:
    desk.slurm.set(sbatch_mode="silent")
    assert desk.submit().exit is ScriptExit.UNCLEAR


def test_a_refusal_is_passed_on_and_the_next_call_may_try_at_once(desk: Desk) -> None:
    said = "sbatch: error: Batch job submission failed: Invalid qos specification\n"
    desk.slurm.set(sbatch_mode="refuse", sbatch_says=said)
    answer = desk.submit()
    assert answer.exit is ScriptExit.REFUSED
    assert answer.refusal is not None
    assert answer.refusal.code == "qos"
    assert "Invalid qos" in str(submission_error(answer))
    assert len(desk.slurm.calls("sbatch")) == 1
    desk.slurm.set(sbatch_mode="accept")
    assert desk.submit().came is Came.SUBMITTED
    assert desk.slurm.jobs == [41]


def test_the_record_of_a_refused_submission_is_not_taken_for_the_job(desk: Desk) -> None:
    said = "sbatch: error: Batch job submission failed: Requested node configuration is not available\n"
    desk.slurm.set(sbatch_mode="record", sbatch_says=said)
    for _ in range(2):
        assert desk.submit().exit is ScriptExit.REFUSED
    (desk.slurm.state / "job.41" / "row").unlink()  # the queue forgets, accounting does not
    desk.slurm.set(sbatch_mode="accept")
    answer = desk.submit()
    assert (answer.slurm, answer.came) == (SlurmId("43"), Came.SUBMITTED)


def test_a_full_queue_is_refused_until_there_is_room(desk: Desk) -> None:
    said = (
        "sbatch: error: QOSMaxSubmitJobPerUserLimit\n"
        "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, "
        "user's size and/or time limits)\n"
    )
    desk.slurm.set(sbatch_mode="refuse", sbatch_says=said)
    for _ in range(3):
        answer = desk.submit()
        assert answer.refusal is not None
        assert (answer.refusal.kind, answer.refusal.code) == (RefusalKind.TEMPORARY, "queue-full")
    desk.slurm.set(sbatch_mode="accept")
    assert desk.submit().came is Came.SUBMITTED
    assert desk.slurm.jobs == [41]


def test_a_cancelled_job_is_not_submitted(desk: Desk) -> None:
    (desk.job / "cancelled").touch()
    assert desk.submit().exit is ScriptExit.CANCELLED
    assert desk.slurm.jobs == []


def test_a_job_cancelled_while_sbatch_runs_does_not_stay(desk: Desk) -> None:
    desk.slurm.set(sbatch_mode="wait")
    process = desk.slurm.start(desk.call(), desk.where())
    until(desk.slurm.state / "waiting")
    (desk.job / "cancelled").touch()
    (desk.slurm.state / "go").touch()
    answer = read(ended(process))
    assert (answer.exit, answer.slurm) == (ScriptExit.CANCELLED, SlurmId("41"))
    assert desk.slurm.calls("scancel") == ["41"]


def test_a_submitter_killed_while_sbatch_runs_leaves_a_job_that_is_found(desk: Desk) -> None:
    desk.slurm.set(sbatch_mode="wait")
    process = desk.slurm.start(desk.call(), desk.where())
    until(desk.slurm.state / "waiting")
    process.send_signal(signal.SIGKILL)
    assert desk.submit().exit is ScriptExit.IN_FLIGHT
    (desk.slurm.state / "go").touch()
    process.communicate()
    until(desk.slurm.state / "job.41" / "row")
    answer = desk.submit()
    assert (answer.slurm, answer.came) == (SlurmId("41"), Came.QUEUE)
    assert desk.slurm.jobs == [41]


@pytest.mark.parametrize("signed", [True, False])
def test_an_abandoned_claim_is_broken(desk: Desk, *, signed: bool) -> None:
    desk.claim_of_the_past(21, signed=signed)
    assert desk.submit().came is Came.SUBMITTED
    assert desk.slurm.jobs == [41]


@pytest.mark.parametrize("signed", [True, False])
def test_a_young_claim_is_left_alone_however_often_it_is_looked_at(desk: Desk, *, signed: bool) -> None:
    desk.claim_of_the_past(5, signed=signed)
    mark = desk.attempt.stat().st_mtime
    for _ in range(3):
        assert desk.submit().exit is ScriptExit.IN_FLIGHT
    assert desk.attempt.stat().st_mtime == mark
    assert desk.slurm.jobs == []


def test_nothing_is_sent_while_slurm_cannot_be_asked(desk: Desk) -> None:
    desk.claim_of_the_past(3600)
    desk.slurm.set(squeue_fails="slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n")
    answer = desk.submit()
    assert answer.exit is ScriptExit.UNCLEAR
    assert "Unable to contact" in answer.notices
    desk.slurm.clear("squeue_fails")
    desk.slurm.set(sacct_fails="sacct: error: Problem talking to the database: Connection refused\n")
    assert desk.submit().exit is ScriptExit.UNCLEAR
    assert desk.slurm.calls("sbatch") == []
    desk.slurm.set(sacct_fails="Slurm accounting storage is disabled\n")
    assert desk.submit().came is Came.SUBMITTED


def test_finding_submits_nothing_and_tells_all_cases_apart(desk: Desk) -> None:
    find = desk.find
    assert find().exit is ScriptExit.NO_JOB
    desk.claim_of_the_past(5)
    assert find().exit is ScriptExit.IN_FLIGHT
    then = time.time() - 60
    os.utime(desk.attempt / "submitter", (then, then))
    assert find().exit is ScriptExit.NO_JOB
    desk.slurm.set(squeue_fails="slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n")
    assert find().exit is ScriptExit.UNCLEAR
    desk.slurm.clear("squeue_fails")
    desk.slurm.add(7, TOKEN, "RUNNING|1|1|1|1|node1|None")
    assert find().came is Came.QUEUE
    assert find().came is Came.RECORDED
    assert desk.slurm.calls("sbatch") == []


def test_a_withdrawn_submission_makes_no_job_however_late_it_comes(desk: Desk) -> None:
    assert desk.find(withdraw=True).exit is ScriptExit.WITHDRAWN
    assert (desk.job / "cancelled").exists()
    assert desk.submit().exit is ScriptExit.CANCELLED
    (desk.job / "cancelled").unlink()  # a file server that shows it late
    assert desk.submit().exit is ScriptExit.IN_FLIGHT
    assert desk.slurm.jobs == []


def test_a_submission_that_never_arrived_is_withdrawn_before_it_comes(desk: Desk) -> None:
    shutil.rmtree(desk.job)
    assert desk.find().exit is ScriptExit.NO_JOB
    assert not desk.job.exists()
    assert desk.find(withdraw=True).exit is ScriptExit.WITHDRAWN
    assert sorted(path.name for path in desk.job.parent.iterdir()) == [desk.job.name]
    assert desk.submit().exit is ScriptExit.CANCELLED
    assert desk.find(withdraw=True).exit is ScriptExit.WITHDRAWN


def test_what_goes_on_or_is_there_is_not_withdrawn(desk: Desk) -> None:
    desk.claim_of_the_past(5)
    assert desk.find(withdraw=True).exit is ScriptExit.IN_FLIGHT
    then = time.time() - 60
    os.utime(desk.attempt / "submitter", (then, then))
    desk.slurm.add(7, TOKEN, "PENDING|1|1|1|1||Priority")
    assert desk.find(withdraw=True).slurm == SlurmId("7")
    assert not (desk.job / "cancelled").exists()


PENDING = "PENDING|1|1|1|1||Priority"


@pytest.mark.parametrize(
    ("submitted", "claimed", "kept"),
    [("", "", 41), ("42\n", "", 42), ("42\n", "41\n", 41), ("", "42\n", 42)],
)
def test_of_two_jobs_one_keeps_the_attempt(desk: Desk, submitted: str, claimed: str, kept: int) -> None:
    desk.claim_of_the_past(60)
    (desk.attempt / "submitter.2").mkdir()
    for name, content in (("submit", submitted), ("claim", claimed)):
        if content:
            (desk.attempt / name).write_text(content)
    desk.slurm.add(41, TOKEN, PENDING)
    desk.slurm.add(42, TOKEN, PENDING)
    desk.slurm.add(43, "another", PENDING)
    assert desk.find().slurm == SlurmId(str(kept))
    assert desk.slurm.calls("scancel") == [str(83 - kept)]
    assert (desk.attempt / "claim").read_text() == f"{kept}\n"


def test_one_job_of_two_claims_is_left_alone_and_looked_at_until_the_claims_are_old(desk: Desk) -> None:
    desk.claim_of_the_past(60)
    (desk.attempt / "submitter.2").mkdir()
    desk.slurm.add(41, TOKEN, PENDING)
    for age, single in ((0, False), (60, True)):
        then = time.time() - age
        os.utime(desk.attempt / "submitter.2", (then, then))
        assert desk.find().slurm == SlurmId("41")
        assert (desk.attempt / "single").exists() is single
    assert desk.slurm.calls("scancel") == []


def test_the_tasks_of_an_array_are_one_job(desk: Desk) -> None:
    desk.claim_of_the_past(60)
    (desk.attempt / "submitter.2").mkdir()
    desk.slurm.add(41, TOKEN, PENDING)
    (desk.slurm.state / "job.41" / "row").write_text(f"41_1|{PENDING}\n41_[2-9]|{PENDING}\n")
    assert desk.find().slurm == SlurmId("41")
    assert desk.slurm.calls("scancel") == []


def test_racing_submitters_make_one_job(tmp_path: Path) -> None:
    for number in range(10):
        (tmp_path / str(number)).mkdir()
        desk = Desk(tmp_path / str(number))
        processes = [desk.slurm.start(desk.call(), desk.where()) for _ in range(3)]
        answers = [read(ended(process)) for process in processes]
        assert desk.slurm.jobs == [41]
        assert Came.SUBMITTED in [answer.came for answer in answers]
        assert {answer.exit for answer in answers} <= {ScriptExit.OK, ScriptExit.IN_FLIGHT}
        assert desk.submit().slurm == SlurmId("41")
        shutil.rmtree(tmp_path / str(number))


def test_racing_breakers_of_one_claim_make_one_job(tmp_path: Path) -> None:
    for number in range(10):
        (tmp_path / str(number)).mkdir()
        desk = Desk(tmp_path / str(number))
        desk.claim_of_the_past(3600)
        processes = [desk.slurm.start(desk.call(), desk.where()) for _ in range(4)]
        answers = [read(ended(process)) for process in processes]
        assert desk.slurm.jobs == [41]
        assert [answer.came for answer in answers].count(Came.SUBMITTED) == 1
        shutil.rmtree(tmp_path / str(number))


def test_who_lost_the_claim_does_not_submit(desk: Desk) -> None:
    desk.claim_of_the_past(3600)
    (desk.attempt / "submitter.2").mkdir()
    assert desk.submit().exit is ScriptExit.IN_FLIGHT
    assert desk.slurm.jobs == []


def test_an_sbatch_that_hangs_is_ended_before_its_claim_gets_old(desk: Desk) -> None:
    desk.slurm.set(sbatch_mode="wait")
    answer = desk.submit(message_timeout=1)
    assert answer.exit is ScriptExit.UNCLEAR
    assert desk.slurm.jobs == []


def until(path: Path) -> None:
    deadline = time.monotonic() + 30
    while not path.exists():
        if time.monotonic() > deadline:
            raise AssertionError(f"{path} never came")
        os.sched_yield()
