"""Looking at very many jobs: one poll of 1,000 queued jobs against squeue typed by hand, and a store of 10,000 jobs."""

from __future__ import annotations

import os
import resource
import shlex
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from harness.bench.registry import Reading, benchmark
from harness.bench.timing import compare
from harness.lab import TOWLINE, lab_environment
from tests.lab.faulty import ssh_command
from towline import Attempt, Cluster, JobRecord, JobSpec, JobState
from towline.engine.store import Store
from towline.lab import Lab
from towline.lab.layout import ALICE
from towline.slurm.commands import chunks, squeue

JOBS, MANY, ROUNDS = 1000, 10_000, 15
NAME = "bench-poll"
SPEC = JobSpec(command=("true",), name=NAME)
QUEUE = """
mkdir -p "$1" && cd "$1" || exit
i=0
while [ $i -lt "$2" ]; do
    job=a$(printf %08d $i)
    mkdir -p "$job/attempts/1"
    sbatch --parsable --hold --chdir="$PWD/$job" --partition=batch --job-name="$3" --output=/dev/null --wrap true ||
        exit
    i=$((i + 1))
done
"""


@benchmark("poll-1000", unit="times", limit=1.3)
def poll_1000() -> Reading:
    """One poll of 1,000 queued jobs and of their files, over the same squeue typed into a warm ssh."""
    with tempfile.TemporaryDirectory(prefix="tl") as scratch, lab_environment(Path(scratch, "state")) as env:
        os.environ.update({name: env[name] for name in ("TOWLINE_STATE_DIR", "TOWLINE_CLUSTER")})
        lab = Lab.default()
        try:
            with Cluster.open("lab") as cluster:
                ids = _queue(lab, f"{cluster.profile.root}/jobs")
                _remember(Path(scratch, "state"), ids, cluster.profile.root)
                return _measured(cluster, _typed(lab, ids, scratch))
        finally:
            lab.run_on("login1", ["scancel", f"--name={NAME}"], user=ALICE.name)


def _queue(lab: Lab, folder: str) -> list[str]:
    """Jobs that are held, so that they stay."""
    words = ["sh", "-c", QUEUE, "sh", folder, str(JOBS), NAME]
    return lab.run_on("login1", words, user=ALICE.name, check=True, timeout=300).stdout.split()


def _remember(state: Path, ids: list[str], root: str) -> None:
    store = Store(state)
    for number, slurm_id in enumerate(ids):
        job = f"a{number:08d}"
        attempts = (Attempt(slurm_id=slurm_id),)
        created = time.time() - 600
        store.intend(JobRecord(job, NAME, "lab", JobState.PENDING, f"{root}/jobs/{job}", created, attempts), SPEC)
    store.close()


def _typed(lab: Lab, ids: list[str], scratch: str) -> Callable[[], None]:
    line = "; ".join(shlex.join(squeue(some, user=ALICE.name)) for some in chunks(ids))
    shared = ("-o", f"ControlPath={scratch}/s", "-o", "ControlMaster=auto", "-o", "ControlPersist=60")
    command = ssh_command(lab, "login1", line, options=shared)

    def run() -> None:
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)

    return run


def _measured(cluster: Cluster, typed: Callable[[], None]) -> Reading:
    cluster.jobs()  # what it finds out about the jobs is written down once
    calls, used, polls = cluster.calls, 0.0, 0

    def poll() -> None:
        nonlocal used, polls
        start = time.process_time()
        found = cluster.jobs()
        used, polls = used + time.process_time() - start, polls + 1
        if len(found) != JOBS:
            raise RuntimeError(f"{len(found)} jobs")

    reading = compare(poll, typed, rounds=ROUNDS)
    parts = {"own_cpu_ms": 1000 * used / polls, "round_trips": (cluster.calls - calls) / polls}
    if parts["round_trips"] != 1:
        raise RuntimeError(f"a poll took {parts['round_trips']} round trips")
    return Reading(reading.value, {**reading.parts, **parts})


@benchmark("store-10000", unit="MB", limit=150)
def store_10000() -> Reading:
    """Memory of `towline ps -a` with 10,000 jobs in the store, and how long it and `ps` take."""
    with tempfile.TemporaryDirectory(prefix="tl") as scratch, lab_environment(Path(scratch, "state")) as env:
        _fill(Path(scratch, "state"))
        _timed(["ps"], env)
        parts = {"ps_s": min(_timed(["ps"], env) for _ in range(3)), "ps_all_s": _timed(["ps", "-a"], env)}
        return Reading(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e6, parts)


def _fill(state: Path) -> None:
    """Many jobs at once: one transaction for all, as no process would write them."""
    store = Store(state)
    with store.writing() as db:
        for number in range(MANY):
            job = f"b{number:08d}"
            db.execute(
                "INSERT INTO jobs (id, name, cluster, state, directory, created, command, spec, changed) "
                "VALUES (?, ?, 'lab', 'succeeded', ?, ?, 'python train.py --epochs 90', ?, ?)",
                (job, f"train-{number}", f"/lustre/{job}", 1.5, SPEC.model_dump_json(), number),
            )
            db.execute(
                "INSERT INTO attempts (job, number, slurm_id, slurm_state, nodes, started, ended, exit_code) "
                "VALUES (?, 1, ?, 'COMPLETED', 'node[1-4]', 2, 3, 0)",
                (job, str(number)),
            )
    store.close()


def _timed(words: list[str], env: dict[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run([TOWLINE, *words], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start
