"""Slurm's states and reasons for waiting, produced for real, as Towline shows them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.faulty import fault
from towline import Cluster, Job, JobRecord, JobSpec, JobState
from towline.lab import Lab

PATIENCE = 120.0
CPU = ("cpu",)


@pytest.fixture
def cluster(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    monkeypatch.setenv("TOWLINE_STATE_DIR", str(tmp_path / "state"))
    with Cluster.open("lab") as opened:
        yield opened
        for record in opened.jobs():
            opened.find([record.id])[0].cancel()


def submit(cluster: Cluster, text: str = "sleep 300", partition: tuple[str, ...] = CPU, **fields: object) -> Job:
    return cluster.submit(JobSpec.build(shell=text, partition=partition, **fields))


def until(job: Job, state: JobState, word: str = "", reason: str = "") -> JobRecord:
    end = time.monotonic() + PATIENCE
    while True:
        record = job.status()
        if record.state is state and word in (record.last.slurm_state, "") and reason in record.last.reason:
            return record
        assert time.monotonic() < end, record
        time.sleep(0.3)


def control(lab: Lab, *words: str) -> None:
    """What the site's administrator does."""
    lab.run_on("ctl", ["scontrol", *words], check=True)


def test_each_state_that_slurm_can_be_brought_to_is_understood(cluster: Cluster, lab: Lab) -> None:
    good, bad = submit(cluster, "true"), submit(cluster, "exit 3")
    stopped, suspended, special, killed, failing = (submit(cluster) for _ in range(5))
    requeued, low = submit(cluster), submit(cluster, partition=("low",), restart="never", resources={"nodes": 1})
    for job in (stopped, suspended, special, killed, requeued, failing, low):
        until(job, JobState.RUNNING, "RUNNING")
    control(lab, "suspend", suspended.record.last.slurm_id)
    until(suspended, JobState.SUSPENDED, "SUSPENDED")
    control(lab, "resume", suspended.record.last.slurm_id)
    lab.run_on("login1", ["scancel", "--signal=STOP", stopped.record.last.slurm_id], user="alice", check=True)
    until(stopped, JobState.SUSPENDED, "STOPPED")
    control(lab, "requeue", "State=SpecialExit", special.record.last.slurm_id)
    until(special, JobState.PENDING, "SPECIAL_EXIT")
    control(lab, "requeuehold", requeued.record.last.slurm_id)
    held = until(requeued, JobState.PENDING, reason="held")
    assert "held" in held.note
    lab.run_on("login1", ["scancel", killed.record.last.slurm_id], user="alice", check=True)
    until(killed, JobState.CANCELLED, "CANCELLED")
    urgent = submit(cluster, "true", ("urgent",), resources={"nodes": 4, "exclusive": True})
    until(low, JobState.CANCELLED, "PREEMPTED")
    assert until(good, JobState.SUCCEEDED, "COMPLETED").exit_code == 0
    assert until(bad, JobState.FAILED, "FAILED").exit_code == 3
    urgent.cancel()


def test_a_job_that_slurm_forgets_at_once_keeps_its_end(cluster: Cluster, lab: Lab) -> None:
    with fault(lab, "accounting-off"), fault(lab, "min-job-age", "2"):
        job = submit(cluster, "exit 4")
        record = job.wait(PATIENCE)
        assert (record.state, record.exit_code, record.last.exit_source) == (JobState.FAILED, 4, "job")


def test_a_job_that_can_never_start_says_so_with_the_way_out(cluster: Cluster, lab: Lab) -> None:
    first = submit(cluster, "exit 1")
    held, after = submit(cluster), submit(cluster, depends_on=["afterok:" + first.id])
    control(lab, "hold", held.record.last.slurm_id)
    record = until(held, JobState.PENDING, reason="JobHeldAdmin")
    waiting = held.summary().waiting
    assert waiting is not None
    assert (waiting.reason, waiting.blocked, bool(waiting.way_out)) == ("JobHeldAdmin", True, True)
    assert waiting.way_out in record.note
    waits = [event.details for event in cluster.events([held]) if event.kind.value == "waiting"]
    assert waits[-1]["blocked"] is True
    assert until(after, JobState.CANCELLED).note  # Slurm ends what could never start, as it was told to


def test_a_job_that_waits_is_told_what_is_in_front_of_it(cluster: Cluster, lab: Lab) -> None:
    wide = {"nodes": 4, "exclusive": True, "time": "2h"}
    first = submit(cluster, partition=("batch",), resources=wide)
    until(first, JobState.RUNNING)
    second = submit(cluster, partition=("batch",), resources=wide)
    until(second, JobState.PENDING, reason="Resources")
    waiting = second.summary().waiting
    assert waiting is not None
    assert not waiting.blocked
    assert "0 of 4 nodes of batch that fit the job are free; it asks for 4 nodes" in waiting.facts
    assert any("1 job there runs on 4 nodes" in fact for fact in waiting.facts)
    control(
        lab, "create", "reservation", "reservationname=mt", "starttime=now+90minutes", "duration=60", "nodes=ALL",
        "flags=maint,ignore_jobs", "users=root",
    )  # fmt: skip
    try:
        told = second.summary().waiting
        assert told is not None
        assert any("maintenance" in fact for fact in told.facts)
        assert any("walltime below" in way for way in told.sooner)
    finally:
        control(lab, "delete", "reservationname=mt")
