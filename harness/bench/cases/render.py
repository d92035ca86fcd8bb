"""What a spec costs before anything is sent: validation, checks, and every file of the job."""

from __future__ import annotations

import statistics
import time

from harness.bench.registry import Reading, benchmark
from towline.config.profile import ClusterProfile
from towline.engine.planning.plans import check_plan, make_plan
from towline.models.ids import new_job_id
from towline.models.site import Partition, SiteFacts
from towline.models.spec import JobSpec

ROUNDS = 10_000
PROFILE = ClusterProfile(name="bench", hosts=("login",), root="/lustre/me/towline", image="/images/pytorch.sqsh")
FACTS = SiteFacts("bench", "22.05.8", (Partition("batch", True, True, 14400, nodes=64),), 10, 0.0)


@benchmark("render", unit="ms", limit=1)
def render() -> Reading:
    """One spec of a training on four nodes, validated and rendered: median of 10,000."""
    taken = [_once(number) for number in range(ROUNDS)]
    ordered = sorted(taken)
    parts = {"p99_ms": 1000 * ordered[int(0.99 * ROUNDS)], "rounds": ROUNDS}
    return Reading(1000 * statistics.median(taken), parts)


def _once(number: int) -> float:
    started = time.perf_counter()
    spec = JobSpec.build(
        command=["python", "train.py", "--seed", str(number)],
        name=f"train-{number}",
        resources={"nodes": 4, "tasks_per_node": 2, "time": "2h"},
        mounts=["/datasets:/data:ro", "/scratch/me"],
        env={"SEED": str(number), "PYTHONUNBUFFERED": "1"},
        partition=["batch"],
    )
    plan = make_plan(spec, PROFILE, FACTS, new_job_id())
    check_plan(plan)
    return time.perf_counter() - started
