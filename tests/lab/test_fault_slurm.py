"""Faults of Slurm's daemons and forbidding policies, as a user meets them."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.lab.faulty import TICKET, as_alice, await_field, fault, job_field, submit, try_as_alice
from towline.lab import Lab, LabError
from towline.lab.process import until


@pytest.fixture(autouse=True)
def no_jobs_left(lab: Lab) -> Iterator[None]:
    yield
    as_alice(lab, f"scancel --name={TICKET}")


def test_without_slurmctld_commands_fail_and_jobs_go_on(lab: Lab) -> None:
    pipe = "/lustre/alice/go-on"
    as_alice(lab, f"rm -f {pipe}; mkfifo {pipe}")
    job = submit(lab, "", f"cat {pipe}; exit 3")
    await_field(lab, job, "JobState", "RUNNING")
    with fault(lab, "slurmctld-down"):
        refused = try_as_alice(lab, "sbatch --wrap true")
        assert refused.returncode == 1
        assert "Unable to contact slurm controller" in refused.stderr
        assert any(part.problem for part in lab.status().parts if part.name == "controller")
    as_alice(lab, f"echo >{pipe}; rm {pipe}")
    await_field(lab, job, "ExitCode", "3:0")


def test_without_slurmdbd_jobs_run_and_their_records_come_later(lab: Lab) -> None:
    with fault(lab, "slurmdbd-down"):
        job = submit(lab, "")
        await_field(lab, job, "JobState", "COMPLETED")
        done = try_as_alice(lab, f"sacct -j {job}")
        assert done.returncode == 1
        assert "Connection refused" in done.stderr
    until(lambda: as_alice(lab, f"sacct -n -P -X -j {job} -o state") == "COMPLETED", 30, "the record")


def test_a_slow_slurmctld_answers_late(lab: Lab) -> None:
    with fault(lab, "slurmctld-slow", "1500"):
        began = time.monotonic()
        assert as_alice(lab, "squeue -h -n nothing -o %i") == ""
        assert time.monotonic() - began >= 1.5
        assert lab.status().is_up
    assert as_alice(lab, "srun hostname").startswith("node")


def test_a_slurmctld_that_is_too_slow_is_given_up(lab: Lab) -> None:
    with fault(lab, "slurmctld-slow", "30000"):
        done = try_as_alice(lab, "squeue")
        assert done.returncode == 1
        assert "Socket timed out on send/recv operation" in done.stderr


def test_without_accounting_jobs_run_and_nobody_remembers(lab: Lab) -> None:
    with fault(lab, "accounting-off"):
        job = submit(lab, "")
        await_field(lab, job, "JobState", "COMPLETED")
        done = try_as_alice(lab, f"sacct -j {job}")
        assert done.returncode == 1
        assert "Slurm accounting storage is disabled" in done.stderr
    job = submit(lab, "--qos=limited")
    until(lambda: as_alice(lab, f"sacct -n -P -X -j {job} -o state,qos") == "COMPLETED|limited", 30, "the record")


def test_a_full_queue_refuses_more(lab: Lab) -> None:
    with fault(lab, "queue-limit", "2"):
        for _ in range(2):
            submit(lab, "--hold")
        refused = try_as_alice(lab, "sbatch --hold --wrap true")
        assert refused.returncode == 1
        assert "Job violates accounting/QOS policy" in refused.stderr
    submit(lab, "--hold")


def test_a_limit_without_accounting_is_refused(lab: Lab) -> None:
    with fault(lab, "slurmdbd-down"), pytest.raises(LabError, match="kept in accounting"):
        lab.fault_on("queue-limit", "2")


def test_jobs_are_not_requeued_where_the_site_does_not_want_it(lab: Lab) -> None:
    with fault(lab, "no-requeue"):
        job = submit(lab, "", "sleep 60")
        assert job_field(lab, job, "Requeue") == "0"
        await_field(lab, job, "JobState", "RUNNING")
        refused = try_as_alice(lab, f"scontrol requeue {job}")
        assert "Requested operation is presently disabled" in refused.stdout + refused.stderr
        assert job_field(lab, submit(lab, "--requeue --hold"), "Requeue") == "1"
    assert job_field(lab, submit(lab, "--hold"), "Requeue") == "1"


def test_a_node_may_be_kept_from_submitting(lab: Lab) -> None:
    with fault(lab, "no-submit-from-nodes"):
        refused = try_as_alice(lab, "srun -w node2 sbatch --wrap true")
        assert refused.returncode == 1
        assert "Access/permission denied" in refused.stderr
        await_field(lab, submit(lab, "-n2", "srun true"), "JobState", "COMPLETED")
    submit(lab, "--hold", host="node2")


def test_scontrol_can_be_taken_from_the_nodes(lab: Lab) -> None:
    ask = "srun -w node2 sh -c 'scontrol ping'"
    with fault(lab, "no-scontrol-on-nodes"):
        refused = try_as_alice(lab, ask)
        assert refused.returncode in (126, 127)
        assert "Permission denied" in refused.stderr
        assert "UP" in as_alice(lab, "scontrol ping")
        with fault(lab, "node-crash", "node2"):
            pass
        assert "Permission denied" in try_as_alice(lab, ask).stderr, "a fault of the site outlasts a node's boot"
    assert "UP" in as_alice(lab, ask)
