"""Jobs after other jobs, on the real Slurm."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.terminal import Terminal
from towline import Cluster, JobSpec, JobState
from towline.lab import Lab
from towline.models.errors import NotFound, PlanRefused


@pytest.fixture
def towline(lab: Lab, tmp_path: Path) -> Terminal:
    return Terminal(tmp_path / "state")


@pytest.fixture
def cluster(towline: Terminal, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """The same state directory as the commands'."""
    monkeypatch.setenv("TOWLINE_STATE_DIR", str(towline.state))
    with Cluster.open("lab") as opened:
        yield opened


def test_jobs_start_in_the_order_that_they_depend_on(towline: Terminal, lab: Lab) -> None:
    """The first waits for a job that is cancelled, so that nothing starts before all are submitted."""
    line = ["sbatch", "--parsable", "--output=/dev/null", "--wrap=sleep 300"]
    foreign = lab.run_on("login1", line, user="alice", check=True).stdout.strip()
    first = towline.submit("--name", "first", "--afternotok", foreign, "--", "sh", "-c", "date +%s%N")
    second = towline.submit("--name", "second", "--afterok", "first", "--", "sh", "-c", "date +%s%N")
    third = towline.submit("--name", "first", "--singleton", "--afterany", second, "--", "true")
    waiting = towline.until(third, lambda each: each["note"] != "")
    assert (waiting["state"], waiting["attempts"][-1]["reason"]) == ("pending", "Dependency")
    lab.run_on("login1", ["scancel", foreign], user="alice", check=True)
    assert towline("wait", third).code == 0
    assert int(towline("logs", first).out) < int(towline("logs", second).out)


def test_what_cannot_be_any_more_is_refused_or_ended_with_the_reason(cluster: Cluster) -> None:
    good, bad = cluster.submit(spec()), cluster.submit(spec(command=("sh", "-c", "exit 3"), name="bad"))
    gate = cluster.submit(spec(command=("sleep", "300")))
    waiting = cluster.submit(spec(depends_on=gate))
    array = cluster.submit(spec(array="0-1", depends_on=gate, name="array"))
    pair = cluster.submit(spec(array="0-1", depends_on={"kind": "aftercorr", "job": array}))
    gate.cancel()
    for job in (waiting, array, pair):
        record = job.wait(timeout=120)
        assert (record.state, "depends on" in record.note) == (JobState.CANCELLED, True), record
    assert (good.wait(timeout=120).state, bad.wait(timeout=120).state) == (JobState.SUCCEEDED, JobState.FAILED)
    slurm_id = good.record.last.slurm_id
    for satisfied in (good, f"afterany:{slurm_id}", "afternotok:bad", "singleton", f"after:{array.id}_1"):
        plan = cluster.plan(spec(depends_on=satisfied))
        assert (plan.failures, "--dependency" in plan.script) == ((), False), satisfied
    for wrong, error, said in (
        ("bad", PlanRefused, "failed"),
        (f"afternotok:{good.id}", PlanRefused, "succeeded"),
        ("after:nosuch", NotFound, "nosuch"),
        ("987654", NotFound, "987654"),
    ):
        with pytest.raises(error) as refused:
            cluster.submit(spec(depends_on=wrong))
        assert said in str(refused.value)


def spec(**fields: object) -> JobSpec:
    return JobSpec.build(**{"command": ("true",), **fields})
