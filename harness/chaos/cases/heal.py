"""Random faults over a dozen jobs that count up: each ends complete, and no step is done by two attempts at once."""

from __future__ import annotations

import asyncio
import json
import subprocess
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.chaos.healing.counting import any_kind, longer_than_its_walltime, violations, violations_when_cancelled
from harness.chaos.healing.faults import Event, happen, random_faults
from harness.chaos.healing.play import Play, Unmet
from harness.chaos.registry import Run, Story, chaos
from harness.lab import lab_environment
from towline import AsyncCluster, AsyncJob, JobSpec
from towline.config.files import load_profile
from towline.engine.store import Store
from towline.lab import Lab

JOBS = 12
SECONDS = 600.0
"""Until when all jobs of a run must have ended."""


@chaos("heal", runs=5)
@contextmanager
def heal() -> Generator[Story]:
    """Random faults over a dozen jobs that resume: every count is exact, no step done by two attempts at once."""
    with tempfile.TemporaryDirectory() as scratch, lab_environment(Path(scratch)) as env:
        yield _Healing(env, Path(scratch))


class _Healing(Story):
    def __init__(self, env: dict[str, str], scratch: Path) -> None:
        self._env, self._scratch, self._lab = env, scratch, Lab.default()

    def play(self, run: Run) -> Sequence[str]:
        env = {**self._env, "TOWLINE_STATE_DIR": str(self._scratch / f"state-{run.number}")}
        plays = self._submitted(env, _specs(run))
        ids = [play.job["id"] for play in plays]
        alive = run.random.random() < 0.5
        run.seen["with a client" if alive else "without one"] += 1
        waiter = plays[0].begin("wait", *ids) if alive else None
        try:
            with plays[-1].undo, plays[0].undo:
                happen(run, [*random_faults(run, plays[0]), _cancel(run, plays[-1])])
            plays[-1].towline("cancel", ids[-1])  # may be said twice; by now nothing is in the way
            waiter = waiter or plays[0].begin("wait", *ids)
            waiter.communicate(timeout=SECONDS)
            return _told(run, plays)
        except subprocess.TimeoutExpired:
            return [f"after {SECONDS:g} s there is still {plays[0].towline('ps')}"]
        except Unmet as error:
            return [str(error)]
        finally:
            if waiter and waiter.poll() is None:
                waiter.kill()
                waiter.communicate()
            self._lab.reset()

    def _submitted(self, env: dict[str, str], specs: Sequence[JobSpec]) -> list[Play]:
        jobs = asyncio.run(_submit(Path(env["TOWLINE_STATE_DIR"]), specs))
        return [
            Play(self._lab, env, alive=False, job={"id": each.id, "directory": each.record.directory}) for each in jobs
        ]


async def _submit(state: Path, specs: Sequence[JobSpec]) -> list[AsyncJob]:
    async with AsyncCluster(load_profile("lab"), store=Store(state)) as cluster:
        return [await cluster.submit(spec) for spec in specs]


def _specs(run: Run) -> list[JobSpec]:
    """A dozen that are to reach the end, one of them against its walltime in every other run, and one to cancel."""
    specs = [any_kind(run.random) for _ in range(JOBS + 1)]
    if run.random.random() < 0.5:
        run.seen["against its walltime"] += 1
        specs[0] = longer_than_its_walltime()
    return specs


def _cancel(run: Run, play: Play) -> Event:
    """The job is cancelled beside the faults, which may be in the way."""

    def act() -> None:
        client = play.begin("cancel", play.job["id"])
        play.undo.callback(client.communicate)

    return Event(run.random.uniform(0, 30), "cancel", act)


def _told(run: Run, plays: Sequence[Play]) -> list[str]:
    """What did not hold of each job, with the story of its attempts."""
    ids = [play.job["id"] for play in plays]
    jobs = {job["id"]: job for job in json.loads(plays[0].towline("status", "--json", *ids))["jobs"]}
    found: list[str] = []
    for play in plays:
        job = jobs[play.job["id"]]
        run.seen[f"{len(job['attempts'])} attempts"] += 1
        said = violations_when_cancelled(play, job) if play is plays[-1] else violations(play, job)
        found += [f"{job['id']}: {sentence} {_story(job)}" for sentence in said]
    return found


def _story(job: dict[str, Any]) -> str:
    return json.dumps([[each["slurm_id"], each["slurm_state"], each["cause"]] for each in job["attempts"]])
