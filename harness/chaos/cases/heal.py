"""Random faults over a dozen jobs that count up: each ends complete, and no step is done by two attempts at once."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.chaos.healing.play import Play, Unmet, until
from harness.chaos.registry import Run, Story, chaos
from harness.lab import TOWLINE, lab_environment
from towline.lab import Lab
from towline.lab.errors import LabError
from towline.lab.layout import GPU_NODES

JOBS = 12
STEPS = 16
SECONDS = 600.0
"""Until when all jobs of a run must have ended."""
WORK = (
    'r=$TOWLINE_RESULTS_DIR; i=$(cat "$r/count.pt" 2>/dev/null || echo 0); '
    'while [ "$i" -lt "$n" ]; do i=$((i + 1)); b=$(date +%s%N); sleep 0.5; '
    'echo "$i $TOWLINE_ATTEMPT $b $(date +%s%N)" >>"$r/steps-$TOWLINE_ATTEMPT"; '
    'echo "$i" >"$r/.count" && mv "$r/.count" "$r/count.pt"; '
    '[ "$TOWLINE_ATTEMPT/$i" != "1/$x" ] || '
    '{ echo "NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus." >&2; exit 1; }; '
    "done"
)
NODES = [node.name for node in GPU_NODES]
FAULTS = (
    "node-crash",
    "node-cut",
    "slurmctld-down",
    "slurmdbd-down",
    "login-down",
    "gpu-lost",
    "urgent",
    "no-scontrol-on-nodes",
)


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
        plays = [self._submitted(env, run) for _ in range(JOBS)]
        ids = [play.job["id"] for play in plays]
        alive = run.random.random() < 0.5
        run.seen["with a client" if alive else "without one"] += 1
        waiter = _wait(env, ids) if alive else None
        try:
            with plays[0].undo:
                for _ in range(run.random.randint(1, 3)):
                    self._break(run, plays[0])
            waiter = waiter or _wait(env, ids)
            try:
                waiter.communicate(timeout=SECONDS)
            except subprocess.TimeoutExpired:
                return [f"after {SECONDS:g} s there is still {plays[0].towline('ps')}"]
            return [f"{play.job['id']}: {sentence}" for play in plays for sentence in _violations(play, run)]
        except Unmet as error:
            return [str(error)]
        finally:
            if waiter and waiter.poll() is None:
                waiter.kill()
                waiter.communicate()
            plays[0].towline("cancel", *ids, check=False)

    def _submitted(self, env: dict[str, str], run: Run) -> Play:
        play = Play(self._lab, env, alive=False)
        fails = run.random.choice([0, 0, 0, run.random.randint(1, STEPS)])
        partition = run.random.choice(["batch", "batch", "low", "low_requeue"])
        gpus = run.random.choice([("--gpus", "1"), ()])
        play.submit("--partition", partition, *gpus, "--checkpoints", "*.pt", command=f"n={STEPS}; x={fails}; {WORK}")
        return play

    def _break(self, run: Run, play: Play) -> None:
        name, node = run.random.choice(FAULTS), run.random.choice(NODES)
        words = [node] if name in ("node-crash", "node-cut", "gpu-lost") else []
        words = ["login1"] if name == "login-down" else words
        time.sleep(run.random.uniform(0, 5))
        run.seen[name] += 1
        if name == "urgent":
            nodes = run.random.randint(1, 3)
            done = play.ask(
                f"sbatch --parsable -J chaos-urgent -o /dev/null -p urgent -N{nodes} --exclusive --wrap 'sleep 5'"
            )
            play.undo.callback(play.ask, f"scancel {done.strip()}")
            return
        try:
            play.fault(name, *words)
        except LabError:  # two faults that exclude each other
            return
        time.sleep(run.random.uniform(2, 40))
        play.mend(name, *words)


def _wait(env: dict[str, str], ids: Sequence[str]) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [TOWLINE, "wait", *ids], env=env, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True
    )


def _violations(play: Play, run: Run) -> list[str]:
    until(lambda: play.status()["ended"], "it has ended", 60)
    job = play.status()
    run.seen[f"{len(job['attempts'])} attempts"] += 1
    told = json.dumps([[each["slurm_id"], each["slurm_state"], each["cause"]] for each in job["attempts"]])
    found: list[str] = []
    if job["state"] != "succeeded":
        found.append(f"it is {job['state']}: {job['note']} {told}")
    if (count := play.read("results/count.pt").strip()) != str(STEPS):
        found.append(f"it counted to {count or 'nothing'} of {STEPS} {told}")
    if len(job["attempts"]) > 11:
        found.append(f"it had {len(job['attempts'])} attempts")
    return [*found, *_overlaps(_steps(play))]


def _steps(play: Play) -> list[tuple[int, int, int, int]]:
    """Step, attempt, begin and end of every step that was done."""
    lines = (
        play.read("results/steps-*").splitlines()
        or play.ask(f"cat '{play.job['directory']}'/results/steps-*").splitlines()
    )
    rows: list[Any] = [line.split() for line in lines]
    return [(int(row[0]), int(row[1]), int(row[2]), int(row[3])) for row in rows if len(row) == 4]


def _overlaps(steps: Sequence[tuple[int, int, int, int]]) -> list[str]:
    """Work of one attempt that was going on while another one worked."""
    found: list[str] = []
    for step, attempt, begin, end in steps:
        for other, second, start, stop in steps:
            if attempt < second and begin < stop and start < end:
                found.append(f"step {step} of attempt {attempt} and step {other} of attempt {second} were done at once")
    return found[:3]
