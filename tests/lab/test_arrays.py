"""Arrays on the real Slurm: one job, with tasks that have logs, codes and results of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.terminal import Terminal
from towline import Cluster
from towline.lab import Lab
from towline.models.errors import TasksFailed


@pytest.fixture
def towline(lab: Lab, tmp_path: Path) -> Terminal:
    return Terminal(tmp_path / "state")


def test_every_task_has_a_log_a_code_and_results(towline: Terminal, lab: Lab, tmp_path: Path) -> None:
    script = (
        'echo "task $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT"; '
        'echo "$SLURM_ARRAY_TASK_ID" >"$TOWLINE_RESULTS_DIR/n"; '
        '[ "$SLURM_ARRAY_TASK_ID" != 4 ] || exit 7'
    )
    done = towline("run", "--json", "--name", "sweep", "--array", "0-4:2,9%2", "--", "sh", "-c", script)
    assert done.code == 7, done
    job = done.lines[-1]["job"]
    assert (job["state"], job["exit_code"]) == ("failed", 7)
    assert len(job["slurm_ids"]) == 1
    tasks = job["tasks"]
    assert (tasks["succeeded"], tasks["failed"], tasks["pending"]) == ("0,2,9", "4", "")
    assert [(each["task"], each["exit_code"], each["exit_source"]) for each in tasks["failures"]] == [(4, 7, "job")]
    for number in (0, 9):
        assert towline("logs", f"sweep_{number}").out == f"task {number} of 4\n"
    assert towline("logs", "sweep").out.count("==>") == 4
    assert towline("wait", "sweep[4]").code == 7
    assert towline("wait", f"{job['slurm_ids'][0]}_2").code == 0
    text = towline("status", "sweep").out
    assert "3 succeeded" in text
    assert "task 4" in text
    towline("results", "sweep", "--pull", str(tmp_path / "all"))
    assert sorted(path.name for path in (tmp_path / "all").iterdir()) == ["0", "2", "4", "9"]
    towline("results", "sweep_9", "--pull", str(tmp_path / "one"))
    assert (tmp_path / "one" / "n").read_text() == "9\n"


def test_tasks_are_cancelled_and_started_again_one_by_one(towline: Terminal, lab: Lab) -> None:
    """A requeue takes Slurm a while, so the other array has its turn meanwhile."""
    script = '[ "$TOWLINE_ATTEMPT" = 2 ] || { echo first; sleep 300; }; echo second; exit 5'
    again = towline.submit("--array", "3", "--", "sh", "-c", script)
    process = towline.start("logs", "-f", f"{again}_3")
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "first\n"
        slurm_id = towline.job(again)["slurm_ids"][0]
        lab.run_on("login1", ["scontrol", "requeue", f"{slurm_id}_3"], user="alice", check=True)
        cancel_some(towline)
        out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (0, "second\n"), err
    assert towline("wait", again).code == 5
    directory = towline.job(again)["directory"]
    assert (
        lab.run_on("login1", ["head", "-n", "1", f"{directory}/attempts/1/main-3.out"], user="alice").stdout
        == "first\n"
    )


def cancel_some(towline: Terminal) -> None:
    job = towline.submit("--array", "0-9%3", "--", "sleep", "300")
    found = towline.until(job, lambda each: each["tasks"]["running"] == "0-2")
    assert (found["state"], found["tasks"]["pending"]) == ("running", "3-9")
    assert towline("cancel", f"{job}_7", f"{job}_1").code == 0
    found = towline.until(job, lambda each: each["tasks"]["running"] == "0,2-3")
    assert (found["tasks"]["cancelled"], found["tasks"]["pending"]) == ("1,7", "4-6,8-9")
    assert towline.job(f"{job}_7")["state"] == "cancelled"
    assert towline.job(f"{job}_2")["attempts"][-1]["nodes"].startswith("node")
    assert towline("cancel", job).code == 0
    found = towline.job(job)
    assert (found["state"], found["tasks"]["cancelled"]) == ("cancelled", "0-9")


def test_numbers_beyond_the_sites_limit_are_refused(towline: Terminal) -> None:
    done = towline("run", "--array", "0-1001", "--", "true")
    assert done.code == 65, done
    assert "below 1001" in done.err


def halved(item: dict[str, int]) -> float:
    import os

    if item["x"] < 0:
        raise ValueError(os.environ["SLURM_ARRAY_TASK_ID"])
    return item["x"] / 2


def test_a_function_is_mapped_over_items_and_the_results_come_in_order(
    lab: Lab, towline: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOWLINE_STATE_DIR", str(towline.state))
    with Cluster.open("lab") as cluster:
        job = cluster.map(halved, [{"x": 3}, {"x": -1}, {"x": 8}, {"x": -2}], limit=2)
        echo = cluster.map(["echo", "-n"], [["a  b", "'"], "$HOME"])
        with pytest.raises(TasksFailed, match="2 of 4"):
            job.gather(timeout=300)
        assert job.gather(partial=True) == [1.5, None, 4.0, None]
        assert echo.gather(timeout=300) == ["a  b '", "$HOME"]
    assert "ValueError: 1" in towline("logs", f"{job.id}_1").err
    lines = towline("why", job.id).out.splitlines()
    assert [line for line in lines if "tasks" in line] == [
        "  2 tasks (1,3): the command's own error: The program ended with an exception of its own."
    ]
    assert any(line.startswith("    task 1, ") and line.endswith(": ValueError: 1") for line in lines), lines
    causes = towline("why", "--json", job.id).json["jobs"][0]["causes"]
    assert [(each["tasks"], each["diagnosis"]["kind"]) for each in causes] == [("1,3", "user")]
