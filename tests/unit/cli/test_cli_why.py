"""What `towline why`, `run` and `status` say of an end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.unit.cli.fake_cluster import FakeCluster, FakeJob, ended, record
from towline.engine.events import StateChanged
from towline.models.diagnosis import Diagnosis
from towline.models.job import Attempt, JobState, Tasks

XID = Diagnosis(
    kind="node",
    rule="xid-hardware",
    means="A GPU reported a fault.",
    advice="Run it again without that node.",
    evidence="NVRM: Xid (PCI:0000:3b:00): 79",
    file="main.err",
    offset=18,
    rank=3,
    node="gpu2",
    retry="yes",
    blames=True,
)


def test_the_cause_with_its_evidence_and_what_to_do(towline: Callable[..., Any], cluster: FakeCluster) -> None:
    cluster.known = [FakeJob(ended(1, diagnosis=XID))]
    done = towline("why", "41")
    assert done.status == 0
    assert done.stdout.splitlines() == [
        "job k3v9x2m4q failed with exit code 1 after 12s",
        "  a node's fault: A GPU reported a fault.",
        "  rank 3 on gpu2, main.err at byte 18: NVRM: Xid (PCI:0000:3b:00): 79",
        "  Run it again without that node. (another attempt may succeed, without gpu2)",
    ]
    (found,) = towline("why", "--json", "41").document["jobs"]
    assert (found["job"]["id"], found["diagnosis"]["node"]) == ("k3v9x2m4q", "gpu2")


def test_a_job_that_succeeded_after_a_fault_tells_what_it_was_started_again_for(
    towline: Callable[..., Any], cluster: FakeCluster
) -> None:
    done = ended(0)
    attempts = (replace(done.last, exit_code=1, diagnosis=XID), replace(done.last, number=2))
    cluster.known = [FakeJob(replace(done, attempts=attempts))]
    assert towline("why", "41").stdout.splitlines() == [
        "job k3v9x2m4q succeeded after 12s in attempt 2",
        "  its attempt before this one ended so:",
        "  a node's fault: A GPU reported a fault.",
        "  rank 3 on gpu2, main.err at byte 18: NVRM: Xid (PCI:0000:3b:00): 79",
    ]


def test_run_ends_with_the_cause(towline: Callable[..., Any], cluster: FakeCluster) -> None:
    cluster.job = FakeJob(record(), (StateChanged(ended(1, diagnosis=XID)),))
    done = towline("run", "--", "x")
    assert done.status == 1
    assert "NVRM: Xid (PCI:0000:3b:00): 79" in done.stderr


def test_a_failure_that_nothing_explains_and_a_job_that_waits(
    towline: Callable[..., Any], cluster: FakeCluster
) -> None:
    cluster.known = [FakeJob(ended(7))]
    assert "nothing in its log says why" in towline("why", "41").stdout
    cluster.known = [FakeJob(record(JobState.PENDING, note="Jobs with a higher priority are in front of it."))]
    assert towline("why", "41").stdout == (
        "job k3v9x2m4q is waiting: Jobs with a higher priority are in front of it.\n"
    )
    (found,) = towline("why", "--json", "41").document["jobs"]
    assert found["diagnosis"] is None


KEY = Diagnosis(
    kind="user",
    rule="python-exception",
    means="It ended with an exception.",
    advice="Read it.",
    evidence="KeyError: 'c7'",
    file="main-7.err",
)


def failed(task: int, diagnosis: Diagnosis | None) -> Attempt:
    return Attempt(slurm_id=f"41_{task}", exit_code=1, exit_source="job", task=task, diagnosis=diagnosis)


def test_the_causes_of_an_array_are_each_said_once(towline: Callable[..., Any], cluster: FakeCluster) -> None:
    other = replace(KEY, evidence="KeyError: 'c12'", file="main-12.err")
    shape = replace(KEY, evidence="ValueError: shapes (3, 4) and (5,)", file="main-2.err")
    failures = (failed(12, other), failed(7, KEY), failed(2, shape), failed(3, XID), failed(5, None))
    tasks = Tasks("0-12", succeeded="0-1,4,6", failed="2-3,5,7-12", failures=failures)
    job = FakeJob(replace(ended(1), tasks=tasks, note="9 of 13 failed"))
    cluster.known = [job]
    lines = towline("why", "41").stdout.splitlines()
    assert lines == [
        "job k3v9x2m4q failed with exit code 1 after 12s: 9 of 13 failed",
        "  2 tasks (7,12): the command's own error: It ended with an exception.",
        "    task 7, main-7.err: KeyError: 'c7'",
        "    Read it. (another attempt would end the same way)",
        "  task 2: the command's own error: It ended with an exception.",
        "    main-2.err: ValueError: shapes (3, 4) and (5,)",
        "    Read it. (another attempt would end the same way)",
        "  task 3: a node's fault: A GPU reported a fault.",
        "    rank 3 on gpu2, main.err at byte 18: NVRM: Xid (PCI:0000:3b:00): 79",
        "    Run it again without that node. (another attempt may succeed, without gpu2)",
        "  5 tasks (5,8-11): not known why; `towline why k3v9x2m4q_5` searches the log",
    ]
    (found,) = towline("why", "--json", "41").document["jobs"]
    assert [each["tasks"] for each in found["causes"]] == ["7,12", "2", "3", "5,8-11"]
    assert found["causes"][2]["diagnosis"]["rule"] == "xid-hardware"
    assert found["causes"][3]["diagnosis"] is None


def test_run_of_an_array_counts_tasks_and_ends_with_the_causes(
    towline: Callable[..., Any], cluster: FakeCluster
) -> None:
    going = Tasks("0-3", pending="3", running="2", succeeded="0", failed="1", failures=(failed(1, KEY),))
    over = Tasks("0-3", succeeded="0,2", failed="1,3", failures=(failed(1, KEY), failed(3, KEY)))
    events = (
        StateChanged(replace(record(JobState.RUNNING), tasks=going)),
        StateChanged(replace(ended(1), tasks=over)),
    )
    cluster.job = FakeJob(replace(record(), tasks=Tasks.of("0-3")), events)
    done = towline("run", "--array", "0-3", "--", "x")
    assert done.status == 1
    assert "is running: 1 pending, 1 running, 1 succeeded, 1 failed (1)" in done.stderr
    assert "2 tasks (1,3): the command's own error" in done.stderr
