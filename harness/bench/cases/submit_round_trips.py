"""How many round trips to the login host a submission costs, counted where they are made."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

from harness.bench.registry import Reading, benchmark
from harness.lab import lab_environment
from towline import AsyncCluster, JobSpec, Resources

SPEC = JobSpec(command=("true",), name="bench-round-trips", partition=("cpu",), resources=Resources(time=600))


@benchmark("submit-round-trips", unit="calls", limit=2)
def submit_round_trips() -> Reading:
    """Calls to the cluster for a submission: the first of a user, who knows nothing of the site yet, is the dearest."""
    with tempfile.TemporaryDirectory() as scratch, lab_environment(Path(scratch, "state")) as env:
        os.environ.update({name: env[name] for name in ("TOWLINE_STATE_DIR", "TOWLINE_CLUSTER")})
        first, following = asyncio.run(_count())
    return Reading(max(first, following), {"first": first, "next": following})


async def _count() -> tuple[int, int]:
    async with AsyncCluster.open("lab") as cluster:
        first = await _calls_of_one(cluster)
        return first, await _calls_of_one(cluster)


async def _calls_of_one(cluster: AsyncCluster) -> int:
    before = cluster.calls
    job = await cluster.submit(SPEC)
    calls = cluster.calls - before
    await job.cancel()
    return calls
