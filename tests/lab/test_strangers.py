"""A Slurm id that another job of the same user has by now, as after slurmctld has lost its state."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.faulty import as_alice, fault
from towline import Cluster, Job, JobSpec, JobState
from towline.engine.store import Store
from towline.engine.store.rows import mark_changed
from towline.lab import Lab
from towline.lab.process import until
from towline.models.errors import NotFound, UsageError

PATIENCE = 120.0


@pytest.fixture
def cluster(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    monkeypatch.setenv("TOWLINE_STATE_DIR", str(tmp_path))
    with Cluster.open("lab") as opened:
        yield opened


@pytest.fixture
def by_hand(lab: Lab) -> Iterator[str]:
    """The Slurm id of a running job that Towline knows nothing of."""
    slurm_id = as_alice(
        lab, "sbatch --parsable --partition=cpu --chdir=/tmp --output=/dev/null --wrap 'sleep 300'"
    ).strip()
    _until_running(lab, slurm_id)
    yield slurm_id
    as_alice(lab, f"scancel {slurm_id}")


def _state(lab: Lab, slurm_id: str) -> str:
    return as_alice(lab, f"squeue --noheader --states=all --jobs={slurm_id} --format=%T").strip()


def _until_running(lab: Lab, slurm_id: str) -> None:
    end = time.monotonic() + PATIENCE
    while _state(lab, slurm_id) != "RUNNING":
        assert time.monotonic() < end
        time.sleep(0.3)


def _with_id_of(lab: Lab, cluster: Cluster, state: Path, by_hand: str, *, age: float) -> Job:
    """A job that Slurm has forgotten, and whose id it has given to the one by hand."""
    job = cluster.submit(JobSpec.build(shell="true", partition=("cpu",), sbatch={"hold": ""}))
    record = job.status()
    as_alice(lab, f"scancel {record.last.slurm_id}")
    with Store(state).writing() as db:
        db.execute("UPDATE attempts SET slurm_id = ? WHERE job = ?", (by_hand, record.id))
        db.execute("UPDATE jobs SET created = created - ? WHERE id = ?", (age, record.id))
        mark_changed(db, record.id)
    return cluster.find([record.id])[0]


def test_it_is_not_read_as_the_job_and_cancelling_leaves_it_alone(
    lab: Lab, cluster: Cluster, tmp_path: Path, by_hand: str
) -> None:
    job = _with_id_of(lab, cluster, tmp_path, by_hand, age=0)
    record = job.status()
    assert (record.state, record.last.slurm_state, record.last.nodes) == (JobState.PENDING, "PENDING", ""), record.last
    with pytest.raises((NotFound, UsageError)):
        job.pause()
    job.cancel(confirm=False)
    assert _state(lab, by_hand) == "RUNNING"


def test_the_end_of_a_job_that_slurm_has_forgotten_is_inferred_in_spite_of_it(
    lab: Lab, cluster: Cluster, tmp_path: Path, by_hand: str
) -> None:
    record = _with_id_of(lab, cluster, tmp_path, by_hand, age=1000).status()
    assert record.state is JobState.CANCELLED
    assert "inferred" in record.note
    assert _state(lab, by_hand) == "RUNNING"


def test_jobs_of_all_kinds_are_known_by_their_directories(cluster: Cluster) -> None:
    """An array's tasks and the components of a heterogeneous job work there, too, also as accounting has them."""
    base = {"partition": ("cpu",)}
    jobs = [
        cluster.submit(JobSpec.build(shell="true", **base)),
        cluster.submit(JobSpec.build(shell="true", array="0-2", **base)),
        cluster.submit(
            JobSpec.build(
                **base,
                roles=[
                    {"name": "a", "shell": "true", "partition": "batch"},
                    {"name": "b", "shell": "true", "partition": "cpu"},
                ],
            )
        ),
    ]
    for job in jobs:
        end = time.monotonic() + PATIENCE
        while not (record := job.status()).state.ended:
            assert time.monotonic() < end, record
            time.sleep(0.5)
        assert (record.state, record.note) == (JobState.SUCCEEDED, "")


def _by_hand(lab: Lab) -> str:
    script = "sbatch --parsable --partition=cpu --chdir=/tmp --output=/dev/null --wrap 'sleep 300'"
    return as_alice(lab, script).strip()


def test_after_a_loss_of_slurmctlds_state_no_job_is_taken_for_another(lab: Lab, cluster: Cluster) -> None:
    """The ids go to a job by hand, which the site ends with a note, and to another job of Towline's."""
    base = {"partition": ("cpu",)}
    ended = cluster.submit(JobSpec.build(shell="echo first; exit 3", **base))
    waits = cluster.submit(JobSpec.build(shell="true", sbatch={"hold": ""}, **base))
    until(lambda: ended.status().state.ended, PATIENCE, "its end")
    first, second = ended.record.last.slurm_id, waits.status().last.slurm_id
    with fault(lab, "state-lost", first):
        assert _by_hand(lab) == first
        other = cluster.submit(JobSpec.build(shell="echo other; sleep 300", **base))
        note = "AdminComment=gpu-idle-watch: cancelled, 8 GPUs idle for 30 min"
        lab.run_on("ctl", ["scontrol", "update", f"JobId={first}", note], check=True)
        lab.run_on("ctl", ["scancel", first], check=True)
        noted = f"sacct --noheader --parsable2 --allocations --jobs={first} --format=AdminComment"
        until(lambda: "gpu-idle" in as_alice(lab, noted), PATIENCE, "the record of what the site noted")
        _until_running(lab, second)

        waits.cancel(confirm=False)
        assert _state(lab, second) == "RUNNING"
        jobs = {job.id: job for job in cluster.jobs(everything=True)}
        assert (jobs[waits.id].last.slurm_id, jobs[other.id].last.slurm_id) == (second, second)
        assert (jobs[waits.id].state, jobs[waits.id].last.nodes) == (JobState.CANCELLED, "")
        assert (jobs[other.id].state, jobs[other.id].last.nodes) == (JobState.RUNNING, "cpu1")
        assert cluster.find([second])[0].id == other.id

        why = ended.why()
        assert why is not None
        assert (why.kind, why.retry) == ("user", "no")
        assert b"".join(chunk.data for chunk in ended.logs() if chunk.stream == "out") == b"first\n"
        assert list(waits.logs()) == []
        other.cancel()
