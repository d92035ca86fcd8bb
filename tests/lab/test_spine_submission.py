"""Submissions that Slurm does not take now, and those whose client, output or disk fails: one job or none."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.faulty import fault
from tests.lab.terminal import COMMAND, Terminal
from towline.lab import Lab

LATER = ("--begin", "+1h", "--time", "10m", "--partition", "cpu", "--name", "labtest-submission", "--", "true")
"""A job that stays in the queue."""


@pytest.fixture
def towline(lab: Lab, tmp_path: Path) -> Iterator[Terminal]:
    yield Terminal(tmp_path / "state")
    in_queue(lab, "squeue -h -u alice -o '%A %j' | sed -n 's/ labtest-submission.*//p' | xargs -r scancel")


def in_queue(lab: Lab, line: str = "squeue -h -u alice -o %j | grep ^labtest-submission") -> list[str]:
    return lab.run_on("login1", ["sh", "-c", line], user="alice").stdout.split()


def until_told(process: subprocess.Popen[str], words: str) -> None:
    """Read stderr up to a line with these words."""
    assert process.stderr
    seen: list[str] = []
    for line in process.stderr:
        seen.append(line)
        if words in line:
            return
    raise AssertionError(f"never told: {''.join(seen)}")


def test_a_full_queue_holds_the_job_until_there_is_room(towline: Terminal, lab: Lab) -> None:
    first = towline.submit(*LATER)
    with fault(lab, "queue-limit", "1"), towline.start("run", "--detach", "--patience", "2m", *LATER) as process:
        until_told(process, "is not submitted yet: Slurm does not take the job now: ")
        held = [job for job in towline("ps", "--json").json["jobs"] if job["id"] != first]
        assert [(job["state"], job["note"].partition(":")[0]) for job in held] == [("submitting", "held")]
        assert towline("cancel", first).code == 0
        out, _ = process.communicate(timeout=120)
        assert process.returncode == 0
    assert len(in_queue(lab)) == 1
    assert towline.job(out.strip())["state"] == "pending"


def test_ctrl_c_while_a_job_is_held_leaves_none_and_says_so(towline: Terminal, lab: Lab) -> None:
    with fault(lab, "queue-limit", "0"), towline.start("run", *LATER) as process:
        until_told(process, "is not submitted yet")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "nothing was submitted" in err
    assert [job["state"] for job in towline("ps", "--all", "--json").json["jobs"]] == ["refused"]
    assert in_queue(lab) == []


def test_a_full_queue_refuses_those_without_patience(towline: Terminal, lab: Lab) -> None:
    with fault(lab, "queue-limit", "0"):
        done = towline("run", "--detach", "--json", "--patience", "0", *LATER)
    assert done.code == 75
    assert done.json["error"]["code"] == "slurm-away"
    assert "QOSMaxSubmitJobPerUserLimit" in done.err


def test_an_array_that_never_fits_into_the_queue_is_refused_not_held(towline: Terminal, lab: Lab) -> None:
    with fault(lab, "queue-limit", "2"):
        done = towline("run", "--detach", "--array", "0-2%1", *LATER)
    assert done.code == 65
    assert "3 tasks are asked for and QOS normal" in done.err
    assert in_queue(lab) == []


def test_a_controller_that_is_away_is_waited_for(towline: Terminal, lab: Lab) -> None:
    towline("run", "--dry-run", *LATER)  # facts about the site, which could not be had then
    with fault(lab, "slurmctld-down"):
        process = towline.start("run", "--detach", *LATER)
        until_told(process, "Unable to contact slurm controller")
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    assert len(in_queue(lab)) == 1
    assert towline.job(out.strip())["state"] == "pending"


def test_a_quota_that_is_used_up_leaves_nothing_and_is_told(towline: Terminal, lab: Lab) -> None:
    with fault(lab, "quota"):
        done = towline("run", "--detach", *LATER)
    assert done.code == 73
    assert "quota" in done.err
    assert [job["state"] for job in towline("ps", "--all", "--json").json["jobs"]] == ["refused"]
    assert in_queue(lab) == []


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_a_job_whose_id_could_not_be_printed_is_in_the_store(
    towline: Terminal, lab: Lab, words: tuple[str, ...]
) -> None:
    with Path("/dev/full").open("w") as full:
        argv = [*COMMAND, "run", "--detach", *words, *LATER]
        done = subprocess.run(argv, env=towline.env(), stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 74
    (job,) = towline("ps", "--json").json["jobs"]
    assert (job["state"], len(in_queue(lab))) == ("pending", 1)
    assert f"job {job['id']} goes on" in done.stderr


def test_an_interrupted_json_run_says_what_it_knows(towline: Terminal, lab: Lab) -> None:
    with towline.start("run", "--json", *LATER) as process:
        assert process.stdout
        submitted = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    last = json.loads(out.splitlines()[-1])
    assert (last["event"], last["exit"]) == ("detached", {"code": 130, "whose": "towline"})
    assert last["job"]["id"] == submitted["job"]["id"]
    assert len(in_queue(lab)) == 1


def test_a_state_directory_that_cannot_be_written_is_enough_to_look(
    towline: Terminal, lab: Lab, tmp_path: Path
) -> None:
    towline.state.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=700", "state", towline.state], check=True)
    try:
        job = towline.submit(*LATER)
        subprocess.run(["mount", "-o", "remount,ro", towline.state], check=True)
        for words in (("ps",), ("status", job)):
            done = towline(*words)
            assert (done.code, "cannot be written" in done.err, job in done.out) == (0, True, True), done
        done = towline("run", "--detach", *LATER)
        assert (done.code, "nothing was submitted" in done.err) == (78, True)
        assert len(in_queue(lab)) == 1
    finally:
        subprocess.run(["umount", towline.state], check=True)
