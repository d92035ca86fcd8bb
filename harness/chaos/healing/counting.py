"""Jobs that count up and resume from a checkpoint, and what must hold of each when it is over."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

from harness.chaos.healing.play import Play
from towline import JobSpec, Resources, Resume

STEPS = 20
CPUS = 8
"""CPUs of a job: four jobs fill a node of the lab, so that each node has some when it is struck."""
RETRIES = 10
"""How many new starts faults may cost a job that says nothing of it."""
XID = 'echo "NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus." >&2; exit 1'
WORK = (
    'r=$TOWLINE_RESULTS_DIR; i=$(cat "$r/count.pt" 2>/dev/null || echo 0); '
    'step() { echo "$TOWLINE_ATTEMPT $i $(date +%s%N)" >>"$r/steps-$TOWLINE_ATTEMPT"; }; '
    'while [ "$i" -lt "$n" ]; do i=$((i + 1)); step; sleep "$s"; step; '
    'echo "$i" >"$r/.count-$TOWLINE_ATTEMPT" && mv "$r/.count-$TOWLINE_ATTEMPT" "$r/count.pt"; '
    f'[ "$TOWLINE_ATTEMPT/$i" != "1/$x" ] || {{ {XID}; }}; '
    "done"
)
"""`n` steps of `s` seconds, each with its begin and its end noted; the first attempt loses its GPU after step `x`."""
SLACK = 2.0
"""Seconds between the look at the mark of a cancelled job and the note that an attempt has begun."""


def any_kind(chance: random.Random) -> JobSpec:
    """A job that may be preempted, lose a GPU, or run on a node that has to boot first."""
    fails = chance.choice([0, 0, 0, chance.randint(1, STEPS)])
    partition = chance.choice(["batch", "batch", "batch", "low", "low", "low_requeue", "low_requeue", "cloud"])
    resources = Resources(gpus_per_node=chance.choice([0, 1]), cpus_per_task=CPUS)
    return _spec(fails, chance.choice([0.5, 1.0]), partition=(partition,), resources=resources)


def longer_than_its_walltime() -> JobSpec:
    """A job that cannot do all its steps before its walltime is over."""
    return _spec(0, 3.0, resources={"time": "1m", "cpus_per_task": CPUS}, grace="5s")


def _spec(fails: int, seconds: float, **fields: Any) -> JobSpec:
    shell = f"n={STEPS}; x={fails}; s={seconds:g}; {WORK}"
    return JobSpec.build(name="chaos", shell=shell, resume=Resume(checkpoints="*.pt"), **fields)


def violations(play: Play, job: dict[str, Any]) -> list[str]:
    """What does not hold of a job that was to count to the end."""
    found: list[str] = []
    if job["state"] != "succeeded":
        found.append(f"it is {job['state']}: {job['note']}")
    if (count := play.read("results/count.pt").strip()) != str(STEPS):
        found.append(f"it counted to {count or 'nothing'} of {STEPS}")
    done = {step for steps in _steps(play).values() for step, _ in steps}
    if missing := set(range(1, STEPS + 1)) - done:
        found.append(f"the steps {sorted(missing)} were never done")
    return [*found, *_always(play, job)]


def violations_when_cancelled(play: Play, job: dict[str, Any]) -> list[str]:
    """What does not hold of a job that was cancelled in the middle, or had ended just before."""
    found = _always(play, job)
    if job["state"] not in ("cancelled", "succeeded"):
        found.append(f"it was cancelled, and is {job['state']}: {job['note']}")
    if rows := play.queued():
        found.append(f"it was cancelled, and Slurm still has it: {rows}")
    return [*found, *_began_after_cancel(play)]


def _began_after_cancel(play: Play) -> list[str]:
    """Attempts that began after the mark was there; all hosts of the lab have one clock."""
    directory = play.job["directory"]
    told = play.ask(f"cd '{directory}' && stat -c '%.9Y %n' cancelled attempts/*/start 2>/dev/null")
    times = {name: float(time) for time, _, name in (line.partition(" ") for line in told.splitlines())}
    mark = times.pop("cancelled", None)
    return [f"{name} came after the job was cancelled" for name, time in times.items() if mark and time > mark + SLACK]


def _always(play: Play, job: dict[str, Any]) -> list[str]:
    faults = [each for each in job["attempts"][:-1] if each["cause"] != "time"]
    found = [f"faults have cost it {len(faults)} new starts"] if len(faults) > RETRIES else []
    return [*found, *_overlaps(_steps(play))]


def _steps(play: Play) -> dict[int, list[tuple[int, int]]]:
    """By attempt: steps, with the nanosecond at which each began or ended."""
    found: dict[int, list[tuple[int, int]]] = {}
    for row in (line.split() for line in play.ask(f"cat '{play.job['directory']}'/results/steps-*").splitlines()):
        if len(row) == 3 and all(word.isdigit() for word in row):  # a node that lost its power may leave half a line
            found.setdefault(int(row[0]), []).append((int(row[1]), int(row[2])))
    return dict(sorted(found.items()))


def _overlaps(steps: dict[int, list[tuple[int, int]]]) -> list[str]:
    """Attempts of which one still worked when a later one had begun to."""
    spans = [(number, rows[0][1], rows[-1][1]) for number, rows in steps.items() if rows]
    return [f"attempts {one[0]} and {two[0]} worked at once" for one, two in pairwise(spans) if one[2] >= two[1]]
