"""When a job would start: Slurm's own forecast, the nodes as they are now, and this user's earlier jobs. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from towline.engine.planning.fitting import fits
from towline.models.plan import Estimate, Waits
from towline.models.spec import JobSpec
from towline.slurm.look import Look

SIMILAR = 2.0
"""A job is like another one when it asks for at least half and at most twice as many GPUs, or nodes without GPUs."""


@dataclass(frozen=True)
class Wait:
    """How long one earlier job waited.

    Attributes:
        seconds: between submission and start.
        partition: where it could go.
        nodes: how many it asked for.
        gpus: how many in all.
    """

    seconds: int
    partition: tuple[str, ...]
    nodes: int
    gpus: int


def estimate(spec: JobSpec, seen: Look, waits: Sequence[Wait] = ()) -> Estimate:
    """What is known of the job's start."""
    there = {part.partition for part in seen.nodes}
    asked = set(spec.partition) & there or ({seen.start.partition} if seen.start and seen.start.partition else there)
    nodes = [each for each in seen.nodes if each.partition in asked and fits(spec, each.kind)]
    return Estimate(
        start_in=seen.start.seconds if seen.start else None,
        nodes=seen.start.nodes if seen.start else "",
        partition=seen.start.partition if seen.start else "",
        fitting=sum(each.kind.count for each in nodes),
        idle=sum(each.kind.count for each in nodes if each.idle),
        shared=sum(each.kind.count for each in nodes if each.shared),
        waits=_waits(spec, waits),
    )


def _waits(spec: JobSpec, waits: Sequence[Wait]) -> Waits | None:
    wanted = spec.resources
    gpus = wanted.nodes * wanted.gpus_per_node
    like = [
        each.seconds
        for each in waits
        if set(each.partition) == set(spec.partition)
        and bool(each.gpus) == bool(gpus)
        and _near(each.gpus or each.nodes, gpus or wanted.nodes)
    ]
    return Waits(len(like), round(statistics.median(like)), max(like)) if like else None


def _near(one: int, other: int) -> bool:
    return other <= one * SIMILAR and one <= other * SIMILAR
