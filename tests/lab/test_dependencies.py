"""Jobs after other jobs, on the real Slurm."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.terminal import Terminal
from towline.lab import Lab


@pytest.fixture
def towline(lab: Lab, tmp_path: Path) -> Terminal:
    return Terminal(tmp_path / "state")


def test_jobs_start_in_the_order_that_they_depend_on(towline: Terminal) -> None:
    """The first waits for a job that is cancelled, so that nothing starts before all are submitted."""
    gate = towline.submit("--name", "gate", "--", "sleep", "300")
    first = towline.submit("--name", "first", "--afternotok", "gate", "--", "sh", "-c", "date +%s%N")
    second = towline.submit("--name", "second", "--afterok", "first", "--", "sh", "-c", "date +%s%N")
    third = towline.submit("--name", "gate", "--singleton", "--afterany", second, "--", "true")
    waiting = towline.until(third, lambda each: each["note"] != "")
    assert (waiting["state"], waiting["attempts"][-1]["reason"]) == ("pending", "Dependency")
    towline("cancel", gate)
    assert towline("wait", third).code == 0
    assert int(towline("logs", first).out) < int(towline("logs", second).out)


def test_a_job_whose_predecessor_fails_is_cancelled_and_says_why(towline: Terminal) -> None:
    gate = towline.submit("--", "sleep", "300")
    job = towline.submit("--afterok", gate, "--", "true")
    towline("cancel", gate)
    assert towline("wait", job).code == 72
    found = towline.job(job)
    assert found["state"] == "cancelled"
    assert "depends on" in found["note"]


def test_what_has_ended_is_judged_before_anything_is_sent(towline: Terminal, lab: Lab) -> None:
    good, bad = towline.submit("--", "true"), towline.submit("--name", "bad", "--", "false")
    assert towline("wait", good, bad).code == 1
    slurm_id = towline.job(good)["slurm_ids"][0]
    for satisfied in (("--afterok", good), ("--afterany", slurm_id), ("--afternotok", "bad"), ("--singleton",)):
        plan = towline("run", "--dry-run", "--json", *satisfied, "--", "true")
        assert plan.code == 0, plan
        assert "--dependency" not in plan.json["plan"]["files"]["script/batch"]
    for wrong, code, said in (
        (("--afterok", "bad"), 65, "failed"),
        (("--afternotok", good), 65, "succeeded"),
        (("--after", "nosuch"), 66, "nosuch"),
        (("--afterok", "987654"), 66, "987654"),
        (("--afterok", "a b"), 65, "does not name a job"),
    ):
        done = towline("run", *wrong, "--", "true")
        assert done.code == code, done
        assert said in done.err


def test_a_job_that_is_not_towlines_can_come_first(towline: Terminal, lab: Lab) -> None:
    line = ["sbatch", "--parsable", "--output=/dev/null", "--wrap=sleep 300"]
    foreign = lab.run_on("login1", line, user="alice", check=True).stdout.strip()
    job = towline.submit("--afterany", foreign, "--", "true")
    towline.until(job, lambda each: each["attempts"][-1]["reason"] == "Dependency")
    lab.run_on("login1", ["scancel", foreign], user="alice", check=True)
    assert towline("wait", job).code == 0
