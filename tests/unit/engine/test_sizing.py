"""What a job asks of the site's nodes, and what is wasted."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline.engine.planning.sizing import Rules, size
from towline.models.resources import Resources
from towline.models.site import NodeKind, Partition

GPU8 = Partition("gpu8", nodes=16, kinds=(NodeKind(16, 128, 1000, (("h100", 8),)),))
GPU4 = Partition("gpu4", nodes=16, kinds=(NodeKind(16, 64, 1000, (("a100", 4),)),))
BOTH = Partition("both", nodes=32, kinds=(*GPU8.kinds, *GPU4.kinds))
CPU = Partition("cpu", nodes=2, kinds=(NodeKind(2, 48, 1000),))
CAPPED = Partition("capped", nodes=16, kinds=GPU8.kinds, max_cpus_per_node=96)
TAO = Rules(gpus_per_node=8, cpus_per_task=16, max_cpus_per_task=128, tao=True)


@pytest.mark.parametrize(
    ("fields", "part", "nodes", "each", "exclusive", "wasted"),
    [
        ({"gpus": 1}, GPU8, 1, 1, False, 0),
        ({"gpus": 7}, GPU8, 1, 7, False, 0),
        ({"gpus": 8}, GPU8, 1, 8, True, 0),
        ({"gpus": 16}, GPU8, 2, 8, True, 0),
        ({"gpus": 20}, GPU8, 3, 8, True, 4),
        ({"gpus": 9}, GPU8, 2, 8, True, 7),
        ({"gpus": 16, "nodes": 4}, GPU8, 4, 4, False, 0),
        ({"gpus": 32, "nodes": 4}, GPU8, 4, 8, True, 0),
        ({"gpus": 30, "nodes": 4}, GPU8, 4, 8, True, 2),
        ({"gpus": 33, "nodes": 4}, GPU8, 5, 8, True, 7),
        ({"gpus": 6, "nodes": 4}, GPU8, 4, 2, False, 2),
        ({"gpus": 4, "exclusive": True}, GPU8, 1, 4, True, 0),
        ({"gpus": 8}, GPU4, 2, 4, True, 0),
        ({"gpus": 8}, BOTH, 1, 8, True, 0),
        ({"gpus": 12}, BOTH, 3, 4, False, 0),
        ({"gpus": 4}, BOTH, 1, 4, False, 0),
        ({"gpus": 8, "gpu_type": "a100"}, BOTH, 2, 4, True, 0),
        ({"gpus": 0}, GPU8, 1, 0, False, 0),
        ({"gpus_per_node": 8}, GPU8, 1, 8, False, 0),
        ({"nodes": 3}, GPU8, 3, 0, False, 0),
        ({"gpus": 5, "nodes": 2}, CPU, 2, 3, False, 1),
    ],
)
def test_gpus_in_total_become_gpus_on_nodes(
    fields: dict[str, Any], part: Partition, nodes: int, each: int, exclusive: bool, wasted: int
) -> None:
    found = size(Resources(**fields), [part])
    got = found.resources
    assert (got.nodes, got.gpus_per_node, got.exclusive, found.wasted) == (nodes, each, exclusive, wasted)
    assert got.gpus is None
    assert any("more than was asked for" in note for note in found.notes) == bool(wasted)


@pytest.mark.parametrize(
    ("fields", "nodes", "each", "exclusive", "cpus"),
    [
        ({"gpus": 1}, 1, 1, False, 16),
        ({"gpus": 4}, 1, 4, False, 64),
        ({"gpus": 8}, 1, 8, True, 128),
        ({"gpus": 12}, 2, 8, True, 16),
        ({"gpus": 16}, 2, 8, True, 16),
        ({"gpus": 16, "nodes": 4}, 4, 8, True, 16),
        ({"gpus": 4, "nodes": 2}, 2, 4, False, 16),
        ({"gpus": 0}, 1, 0, False, 16),
        ({"gpus": 4, "tasks_per_node": 4}, 1, 4, False, 16),
        ({"gpus": 4, "cpus_per_task": 3}, 1, 4, False, 3),
    ],
)
def test_taos_table(fields: dict[str, Any], nodes: int, each: int, exclusive: bool, cpus: int) -> None:
    got = size(Resources(**fields), [GPU4], TAO).resources
    assert (got.nodes, got.gpus_per_node, got.exclusive, got.cpus_per_task) == (nodes, each, exclusive, cpus)


@pytest.mark.parametrize(
    ("fields", "part", "cpus"),
    [
        ({"gpus_per_node": 1}, GPU8, 16),
        ({"gpus_per_node": 8}, GPU8, 128),
        ({"gpus_per_node": 8}, CAPPED, 96),
        ({"gpus_per_node": 8, "tasks_per_node": 8}, GPU8, 16),
        ({"gpus_per_node": 3, "tasks_per_node": 2}, GPU8, 24),
        ({"gpus_per_node": 1, "tasks_per_node": 99}, GPU8, None),
        ({"gpus_per_node": 4}, BOTH, 64),
        ({"gpus_per_node": 9}, GPU8, None),
        ({}, GPU8, None),
        ({"exclusive": True}, CPU, 48),
        ({"exclusive": True, "tasks_per_node": 5}, CPU, 9),
        ({"gpus_per_node": 4, "cpus_per_task": 2}, GPU8, 2),
        ({"gpus_per_node": 4, "cpus_per_gpu": 6}, GPU8, 24),
        ({"gpus": 16, "cpus_per_gpu": 6, "tasks_per_node": 8}, GPU8, 6),
    ],
)
def test_tasks_get_the_cpus_of_their_gpus(fields: dict[str, Any], part: Partition, cpus: int | None) -> None:
    got = size(Resources(**fields), [part]).resources
    assert (got.cpus_per_task, got.cpus_per_gpu) == (cpus, None)


def test_one_task_for_each_gpu() -> None:
    found = size(Resources(gpus=16), [GPU8], Rules(task_per_gpu=True)).resources
    assert (found.nodes, found.tasks_per_node, found.gpus_per_node, found.cpus_per_task) == (2, 8, 8, 16)


def test_a_share_is_one_that_every_asked_partition_can_give() -> None:
    assert size(Resources(gpus_per_node=8), [GPU8, CAPPED]).resources.cpus_per_task == 96


def test_a_profiles_numbers_count_before_the_sites() -> None:
    rules = Rules(gpus_per_node=4, cpus_per_task=10, max_cpus_per_task=8)
    got = size(Resources(gpus=8), [GPU8], rules).resources
    assert (got.nodes, got.gpus_per_node, got.cpus_per_task) == (2, 4, 8)
    assert size(Resources(gpus=8), [], rules).resources.nodes == 2


@pytest.mark.parametrize(
    ("rules", "cpus", "why"),
    [
        (Rules(cpus_in_all=100), 50, "your limits"),
        (Rules(cpus_in_all=1), None, ""),
        (Rules(cpus_in_all=1000), 128, "share"),
        (Rules(cpus_per_gpu=14), 112, "14 for each GPU"),
        (Rules(max_cpus_per_task=100), 100, "allows no more"),
    ],
)
def test_a_share_breaks_no_limit(rules: Rules, cpus: int | None, why: str) -> None:
    found = size(Resources(gpus=16), [GPU8], rules)
    assert found.resources.cpus_per_task == cpus
    assert why in found.notes[-1] or cpus is None


def test_memory_for_each_gpu_becomes_memory_of_the_node() -> None:
    got = size(Resources(gpus_per_node=4, memory_per_gpu=20480), [GPU8]).resources
    assert (got.memory, got.memory_per_gpu) == (81920, None)


parts = st.lists(st.sampled_from([GPU8, GPU4, BOTH, CPU, CAPPED]), max_size=3)


@given(total=st.integers(1, 300), nodes=st.integers(1, 40), parts=parts, tao=st.booleans())
def test_nobody_gets_less_than_was_asked_for(total: int, nodes: int, parts: list[Partition], tao: bool) -> None:
    found = size(Resources(gpus=total, nodes=nodes), parts, TAO if tao else Rules())
    got = found.resources
    assert got.nodes >= nodes
    assert got.nodes * got.gpus_per_node == total + found.wasted
    assert found.wasted >= 0


@given(total=st.integers(1, 300), part=st.sampled_from([GPU8, GPU4, BOTH]))
def test_less_than_one_node_is_wasted_and_no_node_gets_more_than_it_has(total: int, part: Partition) -> None:
    found = size(Resources(gpus=total), [part])
    whole = max(kind.gpu_count() for kind in part.kinds)
    assert found.wasted < whole
    assert found.resources.gpus_per_node <= whole
    assert size(found.resources, [part]).resources == found.resources
