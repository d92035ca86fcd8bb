"""What `towline why`, `run` and `status` say of an end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.unit.cli.fake_cluster import FakeCluster, FakeJob, ended, record
from towline.engine.events import StateChanged
from towline.models.diagnosis import Diagnosis
from towline.models.job import JobState

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
