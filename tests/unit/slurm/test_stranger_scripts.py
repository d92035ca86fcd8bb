"""Slurm's ids come again: nothing is done to another job that has a job's id."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.slurm.stubs import Slurm
from towline.launch.inside import files_inside
from towline.slurm.calls import Call, pause_call, release_call
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
