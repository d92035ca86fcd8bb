"""When a job would start, from what Slurm says, from the nodes, and from earlier jobs."""

from __future__ import annotations

from typing import Any

import pytest

from towline.engine.planning.estimating import Wait, estimate
from towline.models.plan import Waits
from towline.models.site import NodeKind
from towline.models.spec import JobSpec
from towline.slurm.look import Look, NodesNow, Start

BIG, SMALL = NodeKind(3, 32, 1000, (("h100", 8),)), NodeKind(2, 8, 1000)
NODES = (
    NodesNow("batch", BIG, True, False),
    NodesNow("batch", NodeKind(1, 32, 1000, (("h100", 8),)), False, True),
    NodesNow("batch", SMALL, True, False),
    NodesNow("cpu", SMALL, True, False),
)


def spec(**fields: Any) -> JobSpec:
    return JobSpec.build(**{"command": ["true"], **fields})


def test_slurms_word_and_the_nodes_that_fit() -> None:
    found = estimate(
        spec(partition="batch", resources={"gpus_per_node": 1}), Look(start=Start(90, "n1", "batch"), nodes=NODES)
    )
    assert (found.start_in, found.nodes, found.partition) == (90, "n1", "batch")
    assert (found.fitting, found.idle, found.shared) == (4, 3, 1)


def test_without_a_partition_the_one_counts_that_slurm_would_take() -> None:
    found = estimate(spec(), Look(start=Start(0, "c1", "cpu"), nodes=NODES))
    assert (found.fitting, found.idle) == (2, 2)


@pytest.mark.parametrize(
    ("waits", "found"),
    [
        ([], None),
        ([Wait(10, ("batch",), 1, 8), Wait(50, ("batch",), 2, 16), Wait(30, ("batch",), 1, 4)], Waits(3, 30, 50)),
        ([Wait(10, ("batch",), 1, 3), Wait(10, ("batch",), 3, 17), Wait(10, ("batch",), 8, 0)], None),
        ([Wait(10, ("cpu",), 1, 8), Wait(10, ("batch", "cpu"), 1, 8)], None),
        ([Wait(7, ("batch",), 1, 8)], Waits(1, 7, 7)),
    ],
)
def test_earlier_jobs_like_it_tell_how_long_it_waits(waits: list[Wait], found: Waits | None) -> None:
    wanted = spec(partition="batch", resources={"gpus_per_node": 8})
    assert estimate(wanted, Look(), waits).waits == found


def test_jobs_without_gpus_are_like_each_other_by_nodes() -> None:
    waits = [Wait(5, (), 2, 0), Wait(500, (), 5, 0)]
    assert estimate(spec(resources={"nodes": 2}), Look(), waits).waits == Waits(1, 5, 5)
