"""Jobs that are looked at, waited for and cancelled, by whichever process."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.lab.terminal import Terminal
from towline import Cluster, JobSpec, JobState
from towline.lab import Lab
from towline.models.errors import WaitTimedOut


@pytest.fixture
def towline(lab: Lab, tmp_path: Path) -> Terminal:
    return Terminal(tmp_path / "state")


@pytest.fixture
def state(towline: Terminal, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This process shares the state directory of the commands."""
    monkeypatch.setenv("TOWLINE_STATE_DIR", str(towline.state))
    return towline.state


def slurm_state(lab: Lab, slurm_id: str) -> str:
    asked = lab.run_on("login1", ["squeue", "-h", "-t", "all", "-o", "%T", "-j", slurm_id], user="alice")
    return asked.stdout.strip()


def test_a_running_job_is_cancelled_for_good(towline: Terminal, lab: Lab) -> None:
    job = towline.submit("--", "sleep", "300")
    running = towline.until(job, lambda each: each["state"] == "running")
    assert towline("cancel", job).code == 0
    found = towline.job(job)
    assert (found["state"], found["exit_code"]) == ("cancelled", None)
    assert slurm_state(lab, running["slurm_ids"][0]) == "CANCELLED"
    assert towline("cancel", job).code == 0
    assert towline("wait", job).code == 72


def test_a_pending_job_is_cancelled_and_never_starts(towline: Terminal, lab: Lab) -> None:
    first = towline.submit("--nodes", "4", "--exclusive", "--", "sleep", "300")
    towline.until(first, lambda each: each["state"] == "running")
    second = towline.submit("--nodes", "4", "--exclusive", "--", "true")
    assert towline("cancel", second, first).code == 0
    found = towline.job(second)
    assert found["state"] == "cancelled"
    assert found["attempts"][-1]["nodes"] == ""
    assert slurm_state(lab, found["slurm_ids"][0]) == "CANCELLED"


def test_a_job_that_ended_stays_as_it_was_when_it_is_cancelled(towline: Terminal) -> None:
    job = towline.submit("--", "true")
    assert towline("wait", job).code == 0
    assert towline("cancel", job).code == 0
    assert towline.job(job)["state"] == "succeeded"


def test_an_unknown_job_is_not_found_by_any_command(towline: Terminal) -> None:
    for command in ("cancel", "status", "logs", "wait", "results"):
        done = towline(command, "nosuchjob")
        assert done.code == 66, done
        assert "nosuchjob" in done.err


def test_names_and_slurm_ids_mean_the_job_too(towline: Terminal) -> None:
    job = towline.submit("--name", "my.train-1", "--", "sh", "-c", "echo hello; exit 5")
    assert towline("wait", "my.train-1").code == 5
    slurm_id = towline.job(job)["slurm_ids"][0]
    assert towline.job(slurm_id)["id"] == job
    assert towline("logs", slurm_id).out == "hello\n"


def test_wait_gives_up_when_its_time_is_over_and_the_job_goes_on(towline: Terminal) -> None:
    job = towline.submit("--", "sleep", "300")
    assert towline("wait", "--timeout", "1s", job).code == 75
    assert not towline.job(job)["ended"]
    towline("cancel", job)


def test_ps_lists_what_has_not_ended_and_everything_on_demand(towline: Terminal) -> None:
    ended = towline.submit("--", "true")
    assert towline("wait", ended).code == 0
    job = towline.submit("--", "sleep", "300")
    assert job in towline("ps").out
    assert ended not in towline("ps").out
    assert {each["id"] for each in towline("ps", "-a", "--json").json["jobs"]} == {job, ended}
    towline("cancel", job)


def test_the_first_interrupt_detaches_and_the_job_goes_on(towline: Terminal) -> None:
    process = towline.start("run", "--name", "longer", "--", "sh", "-c", "echo begun; sleep 300")
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    job = towline.job("longer")
    assert job["state"] == "running"
    assert f"towline logs -f {job['id']}" in err
    towline("cancel", job["id"])


def test_the_second_interrupt_cancels(towline: Terminal) -> None:
    process = towline.start("run", "--name", "unwanted", "--", "sh", "-c", "echo begun; sleep 300")
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        while "again" not in process.stderr.readline():
            pass
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=90)
    assert process.returncode == 130
    assert towline.job("unwanted")["state"] == "cancelled"


def test_a_job_of_one_process_is_followed_and_cancelled_by_another(towline: Terminal, state: Path) -> None:
    job = towline.submit("--", "sh", "-c", "echo one; echo two >&2; sleep 300")
    with Cluster.open("lab") as cluster:
        (found,) = cluster.find([job])
        assert next(iter(found.logs(follow=True))).data == b"one\n"
        assert found.cancel().state is JobState.CANCELLED
    assert towline.job(job)["state"] == "cancelled"


def test_the_python_api_runs_a_job_from_start_to_end(lab: Lab, state: Path, tmp_path: Path) -> None:
    with Cluster.open("lab") as cluster:
        spec = JobSpec.build(shell='echo hi; echo 7 >"$TOWLINE_RESULTS_DIR/x"; exit 9', resources={"time": "5m"})
        job = cluster.submit(spec)
        with pytest.raises(WaitTimedOut):
            cluster.submit(JobSpec.build(command=["sleep", "60"])).wait(timeout=0.2)
        record = job.wait(timeout=120)
        assert (record.state, record.exit_code, record.last.exit_source) == (JobState.FAILED, 9, "job")
        assert b"".join(chunk.data for chunk in job.logs() if chunk.stream == "out") == b"hi\n"
        job.pull_results(tmp_path / "home")
        assert (tmp_path / "home" / "x").read_text() == "7\n"
        for each in cluster.jobs():
            cluster.find([each.id])[0].cancel()


def test_a_submission_takes_one_round_trip_and_two_when_the_site_is_new(lab: Lab, state: Path) -> None:
    with Cluster.open("lab") as cluster:
        calls: list[int] = []
        for _ in range(2):
            before = cluster.calls
            job = cluster.submit(JobSpec.build(command=["true"]))
            calls.append(cluster.calls - before)
            job.cancel()
    assert calls == [2, 1]


def test_jobs_that_slurm_has_forgotten_keep_their_end(towline: Terminal) -> None:
    job = towline.submit("--", "sh", "-c", "exit 6")
    assert towline("wait", job).code == 6
    assert towline("wait", job).code == 6
    assert towline.job(job)["exit_code"] == 6


def test_a_requeued_job_is_followed_into_its_next_attempt(towline: Terminal, lab: Lab) -> None:
    script = 'echo "attempt $TOWLINE_ATTEMPT"; [ "$TOWLINE_ATTEMPT" != 2 ] || exit 5; sleep 300'
    job = towline.submit("--", "sh", "-c", script)
    process = towline.start("logs", "-f", job)
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "attempt 1\n"
        slurm_id = towline.job(job)["slurm_ids"][0]
        lab.run_on("login1", ["scontrol", "requeue", slurm_id], user="alice", check=True)
        out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (0, "attempt 2\n"), err
    assert towline("wait", job).code == 5
    found = towline.job(job)
    assert [(each["number"], each["slurm_id"]) for each in found["attempts"]] == [(1, slurm_id), (2, slurm_id)]
    assert found["attempts"][0]["slurm_state"] == "REQUEUED"
    assert towline("logs", job).out == "attempt 2\n"
