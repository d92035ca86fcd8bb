"""The client is killed at a random moment of a submission: there is one job or none, and the store says which."""

from __future__ import annotations

import json
import secrets
import subprocess
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.chaos.registry import Run, Story, chaos
from harness.lab import TOWLINE, lab_environment

WINDOW = 1.1
"""The kill falls within this many times what a submission takes that is left alone."""
STRAGGLER_SECONDS = 10.0
"""How long what the client sent may still be under way on the login host."""
WITHDRAWAL_SECONDS = 300.0
"""How long a submission may stay open that left no trace on the cluster; then it must have been withdrawn."""
SETTLED = frozenset({"refused", "pending", "running", "succeeded", "failed", "cancelled"})

Job = dict[str, Any]


@chaos("kill-client", runs=20)
@contextmanager
def kill_client() -> Generator[Story]:
    """A `towline run --detach` is killed at a random moment: one job or none, and `towline ps` knows which."""
    with tempfile.TemporaryDirectory() as scratch, lab_environment(Path(scratch, "state")) as env:
        yield _Killing(env)


class _Killing(Story):
    def __init__(self, env: dict[str, str]) -> None:
        self._env = env
        self._open: list[str] = []
        started = time.monotonic()
        self._submit("kill-client-spared", None)
        self._window = WINDOW * (time.monotonic() - started)

    def play(self, run: Run) -> Sequence[str]:
        name = f"kill-client-{secrets.token_hex(4)}"  # Slurm remembers those of earlier seeds
        moment = run.random.uniform(0, self._window)
        if not self._submit(name, moment):
            run.seen["not killed"] += 1
        known, there = self._look(name, STRAGGLER_SECONDS)
        run.seen["job" if there else "none"] += 1
        run.seen["known as " + (known[0]["state"] if known else "nothing")] += 1
        if not there and any(job["state"] not in SETTLED for job in known):
            self._open.append(name)
            return []
        return [f"killed after {moment:.3f} s: {sentence}" for sentence in _compared(known, there)]

    def settle(self) -> Sequence[str]:
        looks = [(name, *self._look(name, WITHDRAWAL_SECONDS)) for name in self._open]
        return [f"{name}: {sentence}" for name, known, there in looks for sentence in _compared(known, there)]

    def _submit(self, name: str, moment: float | None) -> bool:
        """Submit a job, and kill the client after so many seconds; whether it was still there then."""
        command = [TOWLINE, "run", "--detach", "--name", name, "--partition", "cpu", "--time", "5m", "--", "sleep", "2"]
        with subprocess.Popen(command, env=self._env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as child:
            try:
                child.wait(moment)
            except subprocess.TimeoutExpired:
                child.kill()
                return True
        return False

    def _look(self, name: str, patience: float) -> tuple[list[Job], list[str]]:
        """What the store knows of the job, and what Slurm has; asked again while the store does not know."""
        deadline = time.monotonic() + patience
        while True:
            known = [job for job in self._ask("ps", "--all", "--json")["jobs"] if job["name"] == name]
            if all(job["state"] in SETTLED for job in known) or time.monotonic() > deadline:
                return known, self._in_slurm(name)
            time.sleep(0.5)

    def _ask(self, *arguments: str) -> Any:
        return json.loads(self._output(*arguments))

    def _in_slurm(self, name: str) -> list[str]:
        """The ids of Slurm's jobs with that name, asked on the login host itself."""
        ask = "sacct -X -n -P -S now-1hours -o JobID,JobName; squeue -h -t all -o '%i|%j'"
        output = self._output("lab", "shell", "login1", "--", "sh", "-c", ask)
        rows = [line.split("|", 1) for line in output.splitlines() if "|" in line]
        return sorted({job_id for job_id, token in rows if token.startswith(f"{name}-")})

    def _output(self, *arguments: str) -> str:
        done = subprocess.run(
            [TOWLINE, *arguments], env=self._env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(
                f"towline {' '.join(arguments)} failed with {done.returncode}:\n{done.stdout}{done.stderr}"
            )
        return done.stdout


def _compared(known: list[Job], there: list[str]) -> list[str]:
    """Where the store and Slurm do not say the same."""
    if len(there) > 1 or len(known) > 1:
        return [f"the store has {len(known)} jobs, and Slurm has {there}"]
    if not known:
        return [f"the store knows nothing, and Slurm has {there}"] if there else []
    (job,) = known
    if job["state"] not in SETTLED:
        return [f"the store says {job['state']}, and Slurm has {there or 'no job'}"]
    if job["slurm_ids"] != there:
        return [f"the store says {job['state']} with Slurm job {job['slurm_ids']}, and Slurm has {there or 'no job'}"]
    return []
