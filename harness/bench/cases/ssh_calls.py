"""Calls over a far network: what a channel that stays open saves."""

from __future__ import annotations

import asyncio
import statistics
import time

from harness.bench.far import Far, far_host
from harness.bench.registry import Reading, benchmark
from harness.bench.timing import compare
from towline.remote.base import Operation

ROUNDS = 50
CALL = Operation("call", "true")


@benchmark("ssh-calls", unit="x", limit=0.6)
def ssh_calls() -> Reading:
    """A small call at 50 ms round trip against `ssh host true` over its own warm connection: medians of 50."""
    with far_host() as far:
        return compare(lambda: _call(far), lambda: far.ssh("true"), rounds=ROUNDS)


PARALLEL = 20
PARALLEL_ROUNDS = 9


@benchmark("ssh-parallel", unit="x", limit=3.5)
def ssh_parallel() -> Reading:
    """20 parallel calls at 50 ms round trip against one call, both over warm channels; and one plain ssh to compare."""
    with far_host() as far:
        for _ in range(3):  # the channels are opened by need
            far.run(_together(far))
        reading = compare(lambda: far.run(_together(far)), lambda: _call(far), rounds=PARALLEL_ROUNDS)
        plain = statistics.median(_timed_plain(far) for _ in range(PARALLEL_ROUNDS))
    return Reading(reading.value, {**reading.parts, "plain_ssh_ms": 1000 * plain})


def _call(far: Far) -> None:
    assert far.run(far.client.run(CALL)).ok


async def _together(far: Far) -> None:
    outcomes = await asyncio.gather(*(far.client.run(CALL) for _ in range(PARALLEL)))
    assert all(outcome.ok for outcome in outcomes)


def _timed_plain(far: Far) -> float:
    start = time.perf_counter()
    far.ssh("true")
    return time.perf_counter() - start
