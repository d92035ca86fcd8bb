"""What containers leave behind on nodes: nothing, however they end."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.login import on_login
from towline.lab import Lab, namespaces, process
from towline.lab.layout import GPU_NODES, Host

BUSYBOX = "/lustre/images/busybox.sqsh"
SLEEPER = "labtest-sleeper"
SECONDS_ASLEEP = 601


def traces(lab: Lab, job: str) -> list[str]:
    """Files, mounts and processes of a job's containers, on each node."""
    found = [f"process {pid}" for pid in process.pids() if process.environment_value(pid, "SLURM_JOB_ID") == job]
    files = f"/run/containers/user-*/data/pyxis_{job}_* /run/pyxis/*/{job}.*"
    look = f"ls -d {files} 2>/dev/null; grep pyxis_{job}_ /proc/mounts"
    for host in GPU_NODES:
        found += [f"{host.name}: {line}" for line in lab.run_on(host.name, ["sh", "-c", look]).stdout.splitlines()]
    return found


def await_none(lab: Lab, job: str) -> None:
    """Waits until the job is over, with what it does after its end, and nothing of it is there."""
    process.until(lambda: not on_login(lab, "squeue", "-h", "-j", job).stdout, 20, "the job's end")
    assert traces(lab, job) == []


def allocate(lab: Lab, script: str, *options: str) -> tuple[str, subprocess.CompletedProcess[str]]:
    """Runs a script in an allocation of its own: the job's id, and what came of it."""
    numbered = f"echo $SLURM_JOB_ID; {script}"
    done = on_login(lab, "salloc", "-Q", "-t2", "--job-name=labtest-runtime", *options, "sh", "-c", numbered)
    job, _, printed = done.stdout.partition("\n")
    done.stdout = printed
    return job, done


@pytest.fixture(autouse=True)
def no_sleepers(lab: Lab) -> Iterator[None]:
    yield
    on_login(lab, "scancel", f"--name={SLEEPER}")


def test_eight_tasks_on_each_of_four_nodes_leave_nothing(lab: Lab) -> None:
    step = f"srun --container-image={BUSYBOX} cat /etc/os-release"
    job, done = allocate(lab, f"{step} && {step}", "-N4", "--ntasks-per-node=8")
    assert done.stdout.count('NAME="LabBusybox"') == 64, done.stderr
    await_none(lab, job)


def test_steps_that_start_at_once_leave_nothing(lab: Lab) -> None:
    step = f"srun --exact -N4 -n4 --mem=100 --container-image={BUSYBOX} grep -c Lab /etc/os-release"
    job, done = allocate(lab, f"for i in 1 2 3 4 5 6; do {step} & done; wait", "-N4", "--ntasks-per-node=8")
    assert done.stdout.split() == ["1"] * 24, done.stderr
    await_none(lab, job)


def test_an_unnamed_container_ends_with_its_step(lab: Lab) -> None:
    step = f"srun --container-image={BUSYBOX} ls -d /bin"
    _, done = allocate(lab, f"{step}; srun sh -c 'ls -d /run/containers/user-*/data/pyxis_'$SLURM_JOB_ID'_*'")
    assert done.stdout == "/bin\n"


@pytest.mark.parametrize(
    "options",
    [
        "--container-image=/lustre/images/nope.sqsh",
        "--container-image=registry.lab:5000#demo:nosuchtag",
        f"--container-image={BUSYBOX} --container-mounts=/nope:/data",
        f"--container-image={BUSYBOX} --container-mounts=/root/secret:/data",
        f"--container-image={BUSYBOX} --container-workdir=/nope",
        f"--container-image={BUSYBOX} --container-name=labtest --container-workdir=/nope",
    ],
)
def test_a_container_that_could_not_start_leaves_nothing(lab: Lab, options: str) -> None:
    job, done = allocate(lab, f"srun {options} true")
    assert done.returncode == 1
    await_none(lab, job)


def sleepers(lab: Lab) -> list[tuple[Host, int]]:
    """The sleeping job's own processes and where they are."""
    pids = [(host, pid) for host in GPU_NODES for pid in namespaces.find(lab.paths, host, "sleep")]
    return [(host, pid) for host, pid in pids if f"sleep\0{SECONDS_ASLEEP}" in Path(f"/proc/{pid}/cmdline").read_text()]


def start_sleeper(lab: Lab) -> str:
    """The id of a job that sleeps in a container, once it does."""
    wrapped = f"srun --container-image={BUSYBOX} sleep {SECONDS_ASLEEP}"
    submit = f"sbatch --parsable -t5 --no-requeue -o /dev/null --job-name={SLEEPER}".split()
    job = on_login(lab, *submit, "--wrap", wrapped).stdout.strip()
    process.until(lambda: bool(sleepers(lab)), 30, "the container's start")
    assert traces(lab, job)
    return job


def test_a_cancelled_container_leaves_nothing(lab: Lab) -> None:
    job = start_sleeper(lab)
    on_login(lab, "scancel", job)
    await_none(lab, job)


def test_a_killed_slurmstepd_leaves_nothing_once_its_job_is_over(lab: Lab) -> None:
    job = start_sleeper(lab)
    [(host, sleeper)] = sleepers(lab)
    steps = namespaces.find(lab.paths, host, "slurmstepd")
    of_job = [pid for pid in steps if f"[{job}.0]" in Path(f"/proc/{pid}/cmdline").read_text()]
    assert of_job
    for pid in [*of_job, sleeper]:
        os.kill(pid, signal.SIGKILL)
    on_login(lab, "scancel", job)
    await_none(lab, job)
