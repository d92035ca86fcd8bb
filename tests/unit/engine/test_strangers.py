"""Slurm's ids come again: another job of the same user that has a job's id is never taken for it."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from pathlib import Path
from typing import Any

import pytest

from tests.unit.engine.records import SPEC, record
from towline.config.profile import ClusterProfile
from towline.engine.session import Session
from towline.engine.store import Store
from towline.engine.watching import observation
from towline.models.job import Attempt, JobRecord, JobState
from towline.remote.base import Ending, Operation, Outcome
from towline.remote.memory import InMemory

PROFILE = ClusterProfile(name="lab", hosts=("login",), root="/lustre")
OURS, OTHER = "/lustre/jobs/a00000001", "/home/me/by hand"
ROW = "1700000000|1700000010|1700003600|1|node1|None"
FILES = "@job a00000001 1 - yes no 1 no no\n@file a00000001 1 - submit\n>41\n@file a00000001 1 - start\n>slurm_id=41\n"
ENDED = "@file a00000001 1 - end\n>code=3\n>verdict=user\n"


class Slurm:
    """Answers polls with the queue's row, and questions about the past with accounting's rows."""

    def __init__(self, queue: str, *accounts: str, files: str = FILES, fails: bool = False) -> None:
        self.queue, self.accounts, self.files, self.fails = queue, accounts, files, fails
        self.pasts: list[str] = []

    def answer(self, operation: Operation) -> Outcome:
        _, _, _, queries, jobs, _, past = operation.args
        text = f"@query 0 squeue - 41\n>{self.queue}\n" if queries else ""
        if past:
            self.pasts.append(past)
            rows = "".join(f">{row}\n" for row in self.accounts)
            text += "@query 1 sacct - 41\n!Connection refused\n" if self.fails else f"@query 0 sacct - 41\n{rows}"
        return Outcome(Ending.DONE, 0, f"@now 1700000100\n{text}{self.files if jobs else ''}@end\n".encode())


def looked(tmp_path: Path, slurm: Slurm, **changes: Any) -> JobRecord:
    session = Session(PROFILE, InMemory(slurm.answer), Store(tmp_path))
    attempt = Attempt(slurm_id="41", slurm_state="RUNNING", submitted=1600000000)
    job = record(state=JobState.RUNNING, created=time.time() - 9000, attempts=(attempt,))
    session.store.intend(dataclasses.replace(job, **changes), SPEC)
    known = session.store.job(job.id)
    assert known is not None
    (found,) = asyncio.run(observation.poll(session, [known]))
    return found


def test_the_row_of_another_job_is_not_read_as_ours(tmp_path: Path) -> None:
    accounts = (f"41|COMPLETED|3:0|1|2|3|node7|{OURS}", f"41|RUNNING|0:0|4|5|Unknown|node1|{OTHER}")
    slurm = Slurm(f"41|RUNNING|{ROW}|{OTHER}", *accounts)
    found = looked(tmp_path, slurm)
    assert slurm.pasts == ["- 41"]
    assert (found.state, found.last.nodes, found.last.ended) == (JobState.SUCCEEDED, "node7", 3)


def test_a_record_that_has_no_directory_yet_is_not_read_as_ours(tmp_path: Path) -> None:
    accounts = (f"41|COMPLETED|3:0|1|2|3|node7|{OURS}", "41|CANCELLED|0:0|4|5|6|node1|")
    found = looked(tmp_path, Slurm(f"41|RUNNING|{ROW}|{OTHER}", *accounts))
    assert (found.state, found.last.nodes) == (JobState.SUCCEEDED, "node7")


def test_a_row_of_its_own_directory_is_the_jobs_wherever_the_root_is_mounted(tmp_path: Path) -> None:
    slurm = Slurm(f"41|RUNNING|{ROW}|/mnt/other/name/jobs/a00000001")
    found = looked(tmp_path, slurm)
    assert (slurm.pasts, found.state, found.last.nodes) == ([], JobState.RUNNING, "node1")


def test_a_job_whose_id_was_given_away_ends_as_its_own_record_says(tmp_path: Path) -> None:
    found = looked(tmp_path, Slurm(f"41|PENDING|{ROW}|{OTHER}", files=FILES + ENDED))
    assert (found.state, found.last.exit_code) == (JobState.FAILED, 3)


def test_a_job_that_waited_is_read_from_its_files_once_its_id_is_given_away(tmp_path: Path) -> None:
    waiting = Attempt(slurm_id="41", slurm_state="PENDING", submitted=1600000000, reason="Priority")
    slurm = Slurm(f"41|PENDING|{ROW}|{OTHER}", files=FILES + ENDED)
    found = looked(tmp_path, slurm, state=JobState.PENDING, attempts=(waiting,))
    assert (found.state, found.last.exit_code) == (JobState.FAILED, 3)


def test_nothing_is_concluded_when_accounting_cannot_be_asked(tmp_path: Path) -> None:
    found = looked(tmp_path, Slurm(f"41|COMPLETED|{ROW}|{OTHER}", fails=True))
    assert (found.state, found.last.slurm_state) == (JobState.RUNNING, "RUNNING")


@pytest.mark.parametrize("row_id", ["41_7", "41_[1-9]", "41+0"])
def test_the_rows_of_another_array_or_heterogeneous_job_are_not_read_either(tmp_path: Path, row_id: str) -> None:
    found = looked(tmp_path, Slurm(f"{row_id}|FAILED|{ROW}|{OTHER}", fails=True))
    assert (found.state, found.last.components) == (JobState.RUNNING, ())


@pytest.mark.parametrize("waits_first", [True, False])
def test_two_jobs_that_had_the_same_id_are_both_read_right(tmp_path: Path, *, waits_first: bool) -> None:
    """The older one had it before; the queue has the row of the newer one."""
    slurm = Slurm(f"41|RUNNING|{ROW}|/lustre/jobs/a00000002", f"41|CANCELLED|0:0|1|2|3|None assigned|{OURS}")
    session = Session(PROFILE, InMemory(slurm.answer), Store(tmp_path))
    attempt = Attempt(slurm_id="41", slurm_state="PENDING", submitted=1600000000)
    older, newer = (
        record(id=name, state=JobState.PENDING, created=time.time(), attempts=(attempt,))
        for name in ("a00000001", "a00000002")
    )
    for job in (older, newer):
        session.store.intend(job, SPEC)
    asked = [older, newer] if waits_first else [newer, older]
    found = {job.id: job for job in asyncio.run(observation.poll(session, asked))}
    assert found["a00000002"].state is JobState.RUNNING
    assert (found["a00000001"].state, found["a00000001"].last.nodes) == (JobState.CANCELLED, "")
