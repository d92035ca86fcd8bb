"""Slurm's ids come again: nothing is done to another job that has a job's id."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.slurm.stubs import Slurm
from towline.launch.inside import files_inside
from towline.slurm.calls import Budget, Call, WhyTarget, pause_call, queue_call, release_call, why_call
from towline.slurm.inside import Place, gpus_call, inside_call
from towline.slurm.parse import SlurmId
from towline.slurm.submission import ScriptExit

JOB = "/lustre/jobs/k1"
CALLS = {
    "hold": (pause_call(JOB, "pause", SlurmId("41"), waits=True, resumes=False), ScriptExit.STRANGER),
    "put back": (pause_call(JOB, "pause", SlurmId("41"), waits=False, resumes=True), ScriptExit.STRANGER),
    "let go on": (pause_call(JOB, "resume", SlurmId("41"), waits=False, resumes=True), ScriptExit.STRANGER),
    "release": (release_call(SlurmId("41"), JOB), ScriptExit.STRANGER),
    "go inside": (inside_call(JOB, None, "41", Place(), "x", files_inside(["true"])), ScriptExit.NOT_RUNNING),
    "read GPUs": (gpus_call("41", JOB), ScriptExit.NOT_RUNNING),
    "say what it waits for": (queue_call(SlurmId("41"), JOB), ScriptExit.STRANGER),
}


@pytest.mark.parametrize(("call", "code"), CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("works", ["/home/me", "/lustre/jobs/k10"])
def test_another_job_is_left_alone(tmp_path: Path, call: Call, code: ScriptExit, works: str) -> None:
    slurm = Slurm(tmp_path)
    for program in ("scontrol", "srun"):
        (slurm.bin / program).write_text(f'#!/bin/sh\necho "$*" >>"{slurm.state}/{program}.calls"\n')
        (slurm.bin / program).chmod(0o755)
    slurm.add(41, "train-k1-a1", f"RUNNING|1|2|3|1|n|None|{works}")
    assert slurm.run(call, tmp_path / "call").code == code
    assert (slurm.calls("scontrol"), slurm.calls("srun")) == ([], [])


@pytest.mark.parametrize("row", ["", f"RUNNING|1|2|3|1|n|None|{JOB}", "RUNNING|1|2|3|1|n|None|/mnt/jobs/k1"])
def test_the_job_itself_is_released(tmp_path: Path, row: str) -> None:
    slurm = Slurm(tmp_path)
    (slurm.bin / "scontrol").write_text(f'#!/bin/sh\necho "$*" >>"{slurm.state}/scontrol.calls"\n')
    (slurm.bin / "scontrol").chmod(0o755)
    slurm.add(41, "train-k1-a1", row)
    assert slurm.run(release_call(SlurmId("41"), JOB), tmp_path / "call").code == 0
    assert slurm.calls("scontrol") == ["release 41"]


def told_by_why(slurm: Slurm, tmp_path: Path) -> list[str]:
    """What Slurm is said to have told of the job."""
    files = {"facts-1": b"", "rules": b"", "search.sh": b""}
    call = why_call(JOB, [WhyTarget(1, None, SlurmId("41"), ("main.err",))], files, Budget(10, 1000))
    return [line.removeprefix("fact\tslurm ") for line in slurm.run(call, tmp_path / "call").out.splitlines()[1:]]


def test_why_tells_of_the_newest_run_of_the_job_and_of_no_other_job(tmp_path: Path) -> None:
    slurm = Slurm(tmp_path)
    other = "FAILED|9:0|killed: the GPUs were idle|/home/me"
    runs = ["FAILED|1:0|an older one|/lustre/jobs/k2", f"REQUEUED|4:0|preempted for 7|{JOB}", f"FAILED|3:0|a|b c|{JOB}"]
    slurm.add(41, "train-k1-a1", f"FAILED|1|2|3|1|n|None|{JOB}", "\n".join([*runs, other]))
    assert told_by_why(slurm, tmp_path) == ["exit=3:0", "comment=a|b c"]


@pytest.mark.parametrize(("runs", "told"), [([f"FAILED|3:0||{JOB}"], ["exit=3:0"]), ([], ["exit=9:0"])])
def test_a_record_without_a_directory_counts_only_where_it_is_the_only_one(
    tmp_path: Path, runs: list[str], told: list[str]
) -> None:
    slurm = Slurm(tmp_path)
    slurm.add(41, "train-k1-a1", "", "\n".join([*runs, "FAILED|9:0||"]))
    assert told_by_why(slurm, tmp_path) == told


@pytest.mark.parametrize(("works", "told"), [(JOB, ["exit=3:0"]), ("/home/me", [])])
def test_without_accounting_the_controller_is_asked_about_the_job_alone(
    tmp_path: Path, works: str, told: list[str]
) -> None:
    slurm = Slurm(tmp_path)
    slurm.set(sacct_fails="Slurm accounting storage is disabled")
    (slurm.state / "scontrol.41").write_text("   JobState=FAILED ExitCode=3:0\n")
    slurm.add(41, "train-k1-a1", f"FAILED|1|2|3|1|n|None|{works}")
    assert told_by_why(slurm, tmp_path) == told
