"""The client is killed at a random moment of a submission: there is one job or none, and the store says which."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.chaos.registry import Run, Story, chaos
from harness.lab import TOWLINE, lab_environment

WINDOW = 1.6
"""Seconds after the start in which the kill falls: a submission to the lab is over by then."""
SETTLED = frozenset({"refused", "pending", "running", "succeeded", "failed", "cancelled"})


@chaos("kill-client", runs=20)
@contextmanager
def kill_client() -> Generator[Story]:
    """A `towline run --detach` is killed at a random moment: one job or none, and `towline ps` knows which."""
    with tempfile.TemporaryDirectory() as scratch, lab_environment(Path(scratch, "state")) as env:
        yield _Scene(env).play


@dataclass(frozen=True)
class _Scene:
    env: dict[str, str]

    def play(self, run: Run) -> Sequence[str]:
        name = f"kill-client-{run.random.randrange(16**8):08x}"
        moment = run.random.uniform(0, WINDOW)
        child = subprocess.Popen(
            [TOWLINE, "run", "--detach", "--name", name, "--partition", "cpu", "--time", "5m", "--", "sleep", "2"],
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            child.wait(moment)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        try:
            found = self._judge(name)
        except subprocess.CalledProcessError as error:
            found = [f"{error} {error.stderr!r}"]
        return [f"killed after {moment:.3f} s: {sentence}" for sentence in found]

    def _judge(self, name: str) -> list[str]:
        known = self._settled(name)
        there = self._in_slurm(name)
        found: list[str] = []
        if len(there) > 1:
            found.append(f"Slurm has {len(there)} jobs: {there}")
        if len(known) > 1:
            found.append(f"the store has {len(known)} jobs")
        if there and not known:
            found.append(f"Slurm has job {there[0]} and the store knows nothing of it")
        for job in known:
            found += self._compared(job, there)
        return found

    @staticmethod
    def _compared(job: dict[str, Any], there: list[str]) -> list[str]:
        if job["state"] not in SETTLED:
            return [f"the store says {job['state']} after a poll, and Slurm has {there or 'no job'}"]
        if job["state"] == "refused" and there:
            return [f"the store says that nothing was started, and Slurm has {there[0]}"]
        if job["slurm_ids"] != there and (job["slurm_ids"] or there):
            return [f"the store has Slurm job {job['slurm_ids']}, and Slurm has {there}"]
        return []

    def _settled(self, name: str) -> list[dict[str, Any]]:
        """What the store says after one `towline ps`; a submission that may still be under way is asked about again."""
        deadline = time.monotonic() + 60
        while True:
            jobs = [job for job in self._listed() if job["name"] == name]
            if all(job["state"] in SETTLED for job in jobs) or time.monotonic() > deadline:
                return jobs

    def _listed(self) -> list[dict[str, Any]]:
        done = subprocess.run([TOWLINE, "ps", "--all", "--json"], env=self.env, capture_output=True, check=True)
        return json.loads(done.stdout)["jobs"]

    def _in_slurm(self, name: str) -> list[str]:
        """The ids of Slurm's jobs with that name, asked on the login host itself."""
        ask = "sacct -X -n -P -S now-1hours -o JobID,JobName; squeue -h -t all -o '%i|%j'"
        done = subprocess.run(
            [TOWLINE, "lab", "shell", "login1", "--", "sh", "-c", ask],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        )
        rows = [line.split("|", 1) for line in done.stdout.splitlines() if "|" in line]
        return sorted({job_id for job_id, token in rows if token.startswith(f"{name}-")})
