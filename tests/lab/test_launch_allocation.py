"""Supervisor and prelude inside a real allocation: what only a real Slurm does to them."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from towline.container.pyxis import srun_options
from towline.lab import Lab
from towline.launch.files import LaunchPlan, job_files, own_mounts
from towline.launch.records import DUPLICATE, NO_CONTAINER, EndRecord, parse_end
from towline.models.image import Image
from towline.models.spec import JobSpec
from towline.slurm.batch import BatchJob, render_batch

PYTHON = "/lustre/images/python.sqsh"
SECONDS = 60
READY = ': >"$TOWLINE_RESULTS_DIR/ready.$TOWLINE_ATTEMPT"'


class LabJob:
    """One job directory on the shared disk, seen from the cluster and from this machine."""

    def __init__(self, lab: Lab, **fields: Any) -> None:
        self.lab = lab
        self.id = "k" + secrets.token_hex(4)
        self.cluster_path = f"/lustre/alice/launch-tests/{self.id}"
        self.path = lab.paths.lustre / "alice/launch-tests" / self.id
        self.spec = JobSpec.build(**{"image": PYTHON, "name": "labtest-launch", **fields})

    def place(self) -> LabJob:
        """Write the job's files as alice would."""
        image = Image.parse(self.spec.image or "")
        container = srun_options(image, own_mounts(self.cluster_path))
        plan = LaunchPlan(self.spec, self.id, self.cluster_path, container)
        batch = BatchJob(self.cluster_path, self.id, f"{self.spec.name}-{self.id}-a1", time=120)
        for name, content in {**job_files(plan), "script/batch": render_batch(batch).encode()}.items():
            (self.path / name).parent.mkdir(parents=True, exist_ok=True)
            (self.path / name).write_bytes(content)
        self.attempt(1).mkdir(parents=True)
        owner = self.path.parent.parent.stat()
        for path in (self.path.parent, self.path, *self.path.rglob("*")):
            os.chown(path, owner.st_uid, owner.st_gid)
        return self

    def attempt(self, number: int) -> Path:
        return self.path / "attempts" / str(number)

    def alice(self, *argv: str) -> str:
        return self.lab.run_on("login1", argv, user="alice", check=True, timeout=SECONDS).stdout.strip()

    def submit(self) -> str:
        return self.alice("sbatch", "--parsable", f"{self.cluster_path}/script/batch")

    def ended(self, slurm_id: str) -> str:
        """Accounting's state and exit code of the newest run, once the job has ended."""
        self.until(lambda: not self.lab.run_on("login1", ["squeue", "-h", "-j", slurm_id], user="alice").stdout)
        self.until(lambda: self.accounting(slurm_id).startswith(("COMPLETED", "FAILED", "CANCELLED")))
        return self.accounting(slurm_id)

    def accounting(self, slurm_id: str) -> str:
        return self.alice("sacct", "-X", "-n", "-P", "-o", "state,exitcode", "-j", slurm_id)

    def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SECONDS
        while not condition():
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def until_ready(self, attempt: int = 1) -> None:
        self.until((self.path / f"results/ready.{attempt}").exists)

    def end(self, number: int = 1) -> EndRecord | None:
        return parse_end((self.attempt(number) / "end").read_text())

    def out(self, number: int = 1) -> str:
        return (self.attempt(number) / "main.out").read_text()

    def err(self, number: int = 1) -> str:
        return (self.attempt(number) / "main.err").read_text()

    def exits(self, number: int = 1) -> dict[str, str]:
        return {path.name: path.read_text().strip() for path in (self.attempt(number) / "exit").iterdir()}


@pytest.fixture
def job(lab: Lab) -> Iterator[Callable[..., LabJob]]:
    made: list[LabJob] = []

    def make(**fields: Any) -> LabJob:
        made.append(LabJob(lab, **fields))
        return made[-1].place()

    yield make
    for one in made:
        one.lab.run_on("login1", ["scancel", f"--name={one.spec.name}-{one.id}-a1"], user="alice")
        shutil.rmtree(one.path, ignore_errors=True)


def test_a_node_that_runs_on_its_own_instead_of_the_image_is_found_out(job: Callable[..., LabJob]) -> None:
    """As with Pyxis set `optional`: the step has all options but gets no container."""
    bare = job(command=["echo", "ran"], restart="never")
    step = bare.path / "script/step"
    step.write_text("".join(line for line in step.read_text().splitlines(True) if "--container-image" not in line))
    assert bare.ended(bare.submit()) == f"FAILED|{NO_CONTAINER}:0"
    assert bare.end() == EndRecord("failed", NO_CONTAINER, 0, "no-container")
    assert bare.out() == ""
    assert "runs commands on the bare host" in bare.err()


def test_a_container_that_cannot_start_is_no_failure_of_a_rank(job: Callable[..., LabJob]) -> None:
    missing = job(command=["true"], image="/lustre/images/no-such.sqsh")
    assert missing.ended(missing.submit()) == "FAILED|1:0"
    assert missing.end() == EndRecord("failed", 1, None, "launch")


def test_of_two_jobs_for_one_attempt_one_runs(job: Callable[..., LabJob]) -> None:
    twice = job(command=["echo", "ran"])
    states = sorted(twice.ended(slurm_id) for slurm_id in [twice.submit(), twice.submit()])
    assert states == ["COMPLETED|0:0", f"FAILED|{DUPLICATE}:0"]
    assert twice.out() == "ran\n"


def test_a_requeue_starts_an_attempt_of_its_own(job: Callable[..., LabJob]) -> None:
    text = f'{READY}; echo "start $TOWLINE_ATTEMPT"; [ "$TOWLINE_ATTEMPT" = 1 ] || exit 9; exec sleep 100'
    requeued = job(shell=text)
    slurm_id = requeued.submit()
    requeued.until_ready()
    requeued.alice("scontrol", "requeue", slurm_id)
    requeued.until_ready(attempt=2)
    assert requeued.ended(slurm_id) == "FAILED|9:0"
    assert (requeued.out(1), requeued.out(2)) == ("start 1\n", "start 2\n")
    assert requeued.end(1) == EndRecord("stopped", 143, None, "stopped")
    assert requeued.end(2) == EndRecord("failed", 9, 0, "exit")
    links = {link.name: os.readlink(link) for link in (requeued.path / "slurm-logs").iterdir()}
    assert sorted(links.values()) == ["../attempts/1", "../attempts/2"]


def test_a_cancelled_command_can_save_its_work(job: Callable[..., LabJob]) -> None:
    saving = job(shell=f"trap 'echo saved; exit 0' TERM; {READY}; while :; do sleep 0.1; done")
    slurm_id = saving.submit()
    saving.until_ready()
    saving.alice("scancel", slurm_id)
    assert saving.ended(slurm_id).startswith("CANCELLED")
    assert saving.out() == "saved\n"
    (told,) = saving.exits().values()
    assert told.rpartition(" ")[0] == "0 signal", told
    assert saving.end() == EndRecord("stopped", 143, None, "stopped")


def test_a_signal_of_the_users_reaches_the_command(job: Callable[..., LabJob]) -> None:
    asked = job(shell=f"trap 'echo checkpoint; exit 5' USR1; {READY}; while :; do sleep 0.1; done")
    slurm_id = asked.submit()
    asked.until_ready()
    asked.alice("scancel", "--signal=USR1", slurm_id)
    assert asked.ended(slurm_id) == "FAILED|5:0"
    assert asked.out() == "checkpoint\n"


def test_python_can_be_interrupted(job: Callable[..., LabJob]) -> None:
    """A command started in the background of a shell would have INT ignored."""
    program = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    python = job(command=["python3", "-c", program])
    assert python.ended(python.submit()) == "COMPLETED|0:0"
    assert python.out() == "True\n"
