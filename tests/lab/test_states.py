"""Slurm's states and reasons for waiting, produced for real, as Towline shows them."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.faulty import as_alice, fault
from towline import Cluster, Job, JobRecord, JobSpec, JobState
from towline.lab import Lab, kernel
from towline.slurm.states import STATES
from towline.tao.words import word_of

PATIENCE = 120.0
CPU = ("cpu",)

SEEN = {
    "PENDING": (JobState.PENDING, "Pending"),
    "CONFIGURING": (JobState.PENDING, "Pending"),
    "SPECIAL_EXIT": (JobState.PENDING, "Pending"),
    "RESV_DEL_HOLD": (JobState.PENDING, "Pending"),
    "RUNNING": (JobState.RUNNING, "Running"),
    "COMPLETING": (JobState.RUNNING, "Running"),
    "SIGNALING": (JobState.RUNNING, "Running"),
    "SUSPENDED": (JobState.SUSPENDED, "Paused"),
    "STOPPED": (JobState.SUSPENDED, "Paused"),
    "COMPLETED": (JobState.SUCCEEDED, "Complete"),
    "FAILED": (JobState.FAILED, "Error"),
    "TIMEOUT": (JobState.FAILED, "Error"),
    "DEADLINE": (JobState.FAILED, "Error"),
    "OUT_OF_MEMORY": (JobState.FAILED, "Error"),
    "NODE_FAIL": (JobState.FAILED, "Error"),
    "CANCELLED": (JobState.CANCELLED, "Canceled"),
    "PREEMPTED": (JobState.CANCELLED, "Canceled"),
}
"""Slurm's words that are produced below, and what Towline and TAO call them."""

IN_ACCOUNTING = {"REQUEUED", "RESIZING"}
"""Words that only rows of accounting have: of a run before the one that counts, and of a part of one."""

NOT_HERE = {
    "BOOT_FAIL": "a boot that never comes is NODE_FAIL or a requeue (test_fault_nodes.py)",
    "STAGE_OUT": "needs a burst buffer",
    "REQUEUE_HOLD": "22.05 shows it as PENDING, with the reason",
    "REQUEUE_FED": "needs a federation",
    "REVOKED": "needs a federation",
    "REQUEUED_CRON": "20.11 only",
    "EXPEDITING": "from 25.11 on",
    "LAUNCH_FAILED": "stands in JSON lists only",
    "RECONFIG_FAIL": "stands in JSON lists only",
    "POWER_UP_NODE": "stands in JSON lists only",
    "UPDATE_DB": "stands in JSON lists only",
}
"""Words that this Slurm cannot be brought to. How they are read stands in tests/unit/slurm/test_states.py, and TAO's
word for each in tests/unit/tao/test_small_parts.py."""


@pytest.fixture(scope="module")
def cluster(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("TOWLINE_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        with Cluster.open("lab") as opened:
            yield opened
            for record in opened.jobs():
                opened.find([record.id])[0].cancel(confirm=False)


def submit(cluster: Cluster, text: str = "sleep 300", partition: tuple[str, ...] = CPU, **fields: object) -> Job:
    return cluster.submit(JobSpec.build(shell=text, partition=partition, **fields))


def on(node: str, cluster: Cluster) -> Job:
    """A job on one of the GPU nodes."""
    return submit(cluster, partition=("batch",), nodelist=node, restart="never")


def held(cluster: Cluster, partition: tuple[str, ...] = CPU, **fields: Any) -> Job:
    return submit(cluster, partition=partition, sbatch={"hold": ""}, **fields)


def slurm_id(job: Job) -> str:
    return job.record.last.slurm_id


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


# --- States ---


@pytest.fixture(scope="module")
def seen(cluster: Cluster, lab: Lab) -> dict[str, JobRecord]:
    """Slurm's word → a job when Slurm used it. What takes its time goes on side by side."""
    late = {"TIMEOUT": on("node1", cluster), "NODE_FAIL": on("node4", cluster)}
    low = submit(cluster, partition=("low",), restart="never", nodelist="node2", resources={"exclusive": True})
    for job in (*late.values(), low):
        until(job, JobState.RUNNING)
    control(lab, "update", f"JobId={slurm_id(late['TIMEOUT'])}", "EndTime=now+1")  # only to the minute otherwise
    with fault(lab, "node-crash", "node4"):
        late["OUT_OF_MEMORY"] = _without_memory(cluster, lab)
        urgent = submit(cluster, "true", ("urgent",), nodelist="node2", resources={"exclusive": True})
        found = {
            **_of_ends(cluster, lab),
            **_of_the_queue(cluster, lab),
            **_of_running_jobs(cluster, lab),
            "PREEMPTED": until(low, JobState.CANCELLED),
        }
        urgent.cancel(confirm=False)
        return {**found, **{word: until(job, JobState.FAILED) for word, job in late.items()}}


def _without_memory(cluster: Cluster, lab: Lab) -> Job:
    """In the batch script itself, for a job whose step has no memory left is only FAILED."""
    assert kernel.has_cgroup_v1(), "this machine's lab cannot confine memory; `lab status` says so"
    job = held(cluster, resources={"memory": "60M"})
    script = f"{shlex.quote(job.record.directory)}/script/supervisor"
    as_alice(lab, f"printf '#!/bin/sh\\nhead -c 300M /dev/zero | tail | wc -c\\n' >{script}")
    as_alice(lab, f"scontrol release {slurm_id(job)}")
    return job


def _of_ends(cluster: Cluster, lab: Lab) -> dict[str, JobRecord]:
    good, bad = submit(cluster, "true"), submit(cluster, "exit 3")
    late = submit(cluster, begin="+1h", deadline="+2h", resources={"time": "1m"})
    control(lab, "update", f"JobId={slurm_id(late)}", "Deadline=now+1")
    control(lab, "update", f"JobId={slurm_id(late)}", "StartTime=now")
    return {
        "COMPLETED": until(good, JobState.SUCCEEDED),
        "FAILED": until(bad, JobState.FAILED),
        "DEADLINE": until(late, JobState.FAILED),
    }


def _of_the_queue(cluster: Cluster, lab: Lab) -> dict[str, JobRecord]:
    booting = submit(cluster, partition=("cloud",))
    found = {"CONFIGURING": until(booting, JobState.PENDING, "CONFIGURING")}
    booting.cancel(confirm=False)
    control(
        lab, "create", "reservation", "reservationname=gone", "starttime=now", "duration=1", "nodes=node1",
        "flags=ignore_jobs", "users=alice",
    )  # fmt: skip
    reserved = held(cluster, partition=("batch",), reservation="gone")
    control(lab, "update", "reservationname=gone", "endtime=now+1")
    special = submit(cluster)
    found["PENDING"] = until(held(cluster), JobState.PENDING, "PENDING")
    until(special, JobState.RUNNING)
    control(lab, "requeue", "State=SpecialExit", slurm_id(special))
    found["SPECIAL_EXIT"] = until(special, JobState.PENDING, "SPECIAL_EXIT")
    found["RESV_DEL_HOLD"] = until(reserved, JobState.PENDING, "RESV_DEL_HOLD")
    return found


def _of_running_jobs(cluster: Cluster, lab: Lab) -> dict[str, JobRecord]:
    suspended, stopped, cancelled = submit(cluster), on("node3", cluster), on("node3", cluster)
    found = {"RUNNING": [until(job, JobState.RUNNING) for job in (suspended, stopped, cancelled)][-1]}
    control(lab, "suspend", slurm_id(suspended))
    found["SUSPENDED"] = until(suspended, JobState.SUSPENDED)
    lab.run_on("node3", ["pkill", "-STOP", "-o", "-x", "slurmd"], check=True)  # it answers nobody meanwhile
    try:
        as_alice(lab, f"scancel --signal=STOP {slurm_id(stopped)}; scancel {slurm_id(cancelled)}")
        found["SIGNALING"] = until(stopped, JobState.RUNNING, "SIGNALING")
        found["COMPLETING"] = until(cancelled, JobState.RUNNING, "COMPLETING")
    finally:
        lab.run_on("node3", ["pkill", "-CONT", "-o", "-x", "slurmd"], check=True)
    found["STOPPED"] = until(stopped, JobState.SUSPENDED)
    found["CANCELLED"] = until(cancelled, JobState.CANCELLED)
    return found


@pytest.mark.parametrize("word", SEEN)
def test_a_state_is_understood(word: str, seen: dict[str, JobRecord]) -> None:
    record = seen[word]
    assert (record.state, word_of(record), record.last.slurm_state) == (*SEEN[word], word)


def test_what_was_started_again_or_resized_is_one_job_that_goes_on(cluster: Cluster, lab: Lab) -> None:
    again = submit(cluster, '[ "$TOWLINE_ATTEMPT" = 2 ] || sleep 300')
    small = submit(cluster, partition=("batch",), nodelist="node1,node2", resources={"nodes": 2}, restart="never")
    for job in (again, small):
        until(job, JobState.RUNNING)
    as_alice(lab, f"scontrol requeue {slurm_id(again)}; scontrol update JobId={slurm_id(small)} NumNodes=1")
    asked = f"sacct -DXnPo state -j {slurm_id(small)}"
    assert as_alice(lab, f"until {asked} | grep RESIZING; do sleep 0.2; done") == "RESIZING"
    record = small.status()
    assert (record.state, len(record.attempts)) == (JobState.RUNNING, 1)
    small.cancel(confirm=False)
    attempts = until(again, JobState.SUCCEEDED).attempts
    assert [each.slurm_state for each in attempts] == ["REQUEUED", "COMPLETED"]


def test_every_word_is_produced_or_cannot_be() -> None:
    produced = set(SEEN) | IN_ACCOUNTING
    assert produced | set(NOT_HERE) == set(STATES)
    assert not produced & set(NOT_HERE)


# --- Reasons ---


def test_a_job_that_slurm_forgets_at_once_keeps_its_end(cluster: Cluster, lab: Lab) -> None:
    with fault(lab, "accounting-off"), fault(lab, "min-job-age", "2"):
        job = submit(cluster, "exit 4")
        record = job.wait(PATIENCE)
        assert (record.state, record.exit_code, record.last.exit_source) == (JobState.FAILED, 4, "job")


def test_a_job_that_waits_is_told_what_is_in_front_of_it(cluster: Cluster, lab: Lab) -> None:
    wide = {"nodes": 4, "exclusive": True, "time": "2h"}
    as_alice(lab, "scancel --user=alice")  # jobs that were stopped or suspended above hold nodes
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
