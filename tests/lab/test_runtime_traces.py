"""What containers leave behind on nodes and on the machine: nothing, however they end."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.login import on_login, srun
from towline.lab import Lab, namespaces, process
from towline.lab.layout import GPU_NODES, find_host

BUSYBOX = "/lustre/images/busybox.sqsh"
SLEEPER = "labtest-sleeper"
SECONDS_ASLEEP = 601


def loop_devices_of_images() -> set[str]:
    """The loop devices of this machine other than those of a mounted file with a name; an image's has none."""
    listed = subprocess.run(
        ["losetup", "--list", "--noheadings", "--output=NAME,BACK-FILE"], capture_output=True, text=True
    )
    return {line for line in listed.stdout.splitlines() if "lustre.img" not in line}


def traces(lab: Lab) -> list[str]:
    """Loop devices, mounts and processes of containers, on the machine and on each node."""
    found = sorted(loop_devices_of_images())
    for host in GPU_NODES:
        if namespaces.find(lab.paths, host, "pyxis-mounter"):
            found.append(f"{host.name}: a mounter")
        mounts = lab.run_on(host.name, ["cat", "/proc/mounts"]).stdout
        found += [f"{host.name}: {line}" for line in mounts.splitlines() if "/run/pyxis" in line]
        found += [f"{host.name}: {name}" for name in lab.run_on(host.name, ["ls", "/run/pyxis"]).stdout.split()]
    return found


@pytest.fixture(autouse=True)
def quiet(lab: Lab) -> Iterator[None]:
    """No container of anybody runs on these nodes when a test begins: else what it finds is not its own."""
    process.until(lambda: not traces(lab), 20, "the end of all containers")
    yield
    on_login(lab, "scancel", f"--name={SLEEPER}")


def test_eight_tasks_on_each_of_four_nodes_leave_nothing(lab: Lab) -> None:
    for _ in range(3):
        done = srun(lab, "-N4", "--ntasks-per-node=8", f"--container-image={BUSYBOX}", "cat", "/etc/os-release")
        assert done.stdout.count('NAME="LabBusybox"') == 32, done.stderr
        assert traces(lab) == []


def test_steps_that_start_at_once_leave_nothing(lab: Lab) -> None:
    step = f"srun --exact -N4 -n4 --mem=100 --container-image={BUSYBOX} grep -c Lab /etc/os-release"
    script = f"for i in 1 2 3 4 5 6; do {step} & done; wait"
    done = on_login(lab, "salloc", "-Q", "-t2", "-N4", "--ntasks-per-node=8", "sh", "-c", script)
    assert done.stdout.split() == ["1"] * 24, done.stderr
    assert traces(lab) == []


@pytest.mark.parametrize(
    "options",
    [
        ["--container-image=/lustre/images/nope.sqsh"],
        ["--container-image=registry.lab:5000#demo:nosuchtag"],
        [f"--container-image={BUSYBOX}", "--container-mounts=/nope:/data"],
        [f"--container-image={BUSYBOX}", "--container-mounts=/root/secret:/data"],
        [f"--container-image={BUSYBOX}", "--container-workdir=/nope"],
    ],
)
def test_a_container_that_could_not_start_leaves_nothing(lab: Lab, options: list[str]) -> None:
    assert srun(lab, *options, "true").returncode == 1
    assert traces(lab) == []


def start_sleeper(lab: Lab) -> tuple[str, str]:
    """A job that sleeps in a container: its id and node, once the container is there."""
    wrapped = f"srun --container-image={BUSYBOX} sleep {SECONDS_ASLEEP}"
    submit = [
        "sbatch",
        "--parsable",
        "-t5",
        "--no-requeue",
        "-o",
        "/dev/null",
        f"--job-name={SLEEPER}",
        "--wrap",
        wrapped,
    ]
    job = on_login(lab, *submit).stdout.strip()
    process.until(lambda: bool(loop_devices_of_images()), 30, "the container's start")
    return job, on_login(lab, "squeue", "-h", "-j", job, "-o", "%N").stdout.strip()


def test_a_cancelled_container_leaves_nothing(lab: Lab) -> None:
    job, _ = start_sleeper(lab)
    on_login(lab, "scancel", job)
    process.until(lambda: not traces(lab), 30, "the end of every trace")


def test_a_killed_slurmstepd_leaves_nothing_once_its_tasks_are_gone(lab: Lab) -> None:
    job, node = start_sleeper(lab)
    for program, words in (("slurmstepd", f"[{job}.0]"), ("sleep", f"sleep\0{SECONDS_ASLEEP}")):
        for pid in namespaces.find(lab.paths, find_host(node), program):
            if words in Path(f"/proc/{pid}/cmdline").read_text():
                os.kill(pid, signal.SIGKILL)
    process.until(lambda: not traces(lab), 20, "the end of every trace")
    on_login(lab, "scancel", job)
