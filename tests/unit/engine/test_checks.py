"""What is refused before anything is sent, and what the user is told then."""

from __future__ import annotations

from typing import Any

import pytest

from towline.engine.checks import check_spec
from towline.models.plan import Check, Verdict
from towline.models.site import Partition, SiteFacts
from towline.models.spec import JobSpec

FACTS = SiteFacts(
    "lab",
    "22.05.8",
    (
        Partition("batch", True, True, 4 * 3600, 3600, None, 4, 8, ("h100",), 32, 128000),
        Partition("short", False, True, 300, 300, 2, 4, 8, ("h100",), 32, 128000),
        Partition("cpu", False, True, 4 * 3600, 3600, None, 1, 0, (), 16, 64000),
        Partition("long", False, True, None, None, None, 4, 8, ("h100",), 32, 128000),
        Partition("closed", False, False, None, None, None, 4, 8, ("h100",), 32, 128000),
    ),
)


def failing(**fields: Any) -> dict[str, Check]:
    spec = JobSpec.build(**{"command": ["true"], "image": "/i.sqsh", **fields})
    return {check.name: check for check in check_spec(spec, FACTS, ()) if check.verdict is Verdict.FAILS}


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"partition": "cpu"},
        {"resources": {"nodes": 4, "gpus_per_node": 8, "time": "4h"}},
        {"partition": "long", "resources": {"time": "30d"}},
        {"partition": "short,long", "resources": {"time": "1h"}},
        {"resources": {"gpus_per_node": 1, "gpu_type": "h100"}},
    ],
)
def test_what_a_partition_can_take_passes(fields: dict[str, Any]) -> None:
    assert failing(**fields) == {}


@pytest.mark.parametrize(
    ("fields", "name", "evidence", "fix"),
    [
        ({"partition": "nosuch"}, "partition", "no partition nosuch", "batch, short, cpu, long, closed (closed)"),
        ({"partition": "closed"}, "partition", "closed takes no jobs", "batch"),
        ({"resources": {"nodes": 5}}, "nodes", "allows 4", "No partition"),
        ({"partition": "short", "resources": {"nodes": 3}}, "nodes", "short allows 2", "batch, long"),
        ({"resources": {"gpus_per_node": 9}}, "gpus", "batch have 8", "No partition"),
        ({"partition": "cpu", "resources": {"gpus_per_node": 1}}, "gpus", "cpu have 0", "batch, short, long"),
        ({"resources": {"gpus_per_node": 1, "gpu_type": "a100"}}, "gpus", "has h100", "No partition"),
        ({"resources": {"time": "5h"}}, "time", "batch allows 04:00:00", "long"),
        ({"partition": "short,batch", "resources": {"time": "5h"}}, "time", "short allows 00:05:00", "long"),
        ({"resources": {"tasks_per_node": 8, "cpus_per_task": 5}}, "cpus", "40 CPUs", "No partition"),
        ({"partition": "cpu", "resources": {"memory": "100G"}}, "memory", "cpu have 64000", "batch"),
    ],
)
def test_what_no_asked_partition_can_take_is_refused(
    fields: dict[str, Any], name: str, evidence: str, fix: str
) -> None:
    found = failing(**fields)
    assert set(found) == {name}
    assert evidence in found[name].evidence
    assert fix in found[name].fix


def test_all_failures_are_told_at_once() -> None:
    assert set(failing(resources={"nodes": 99, "gpus_per_node": 99, "time": "9d"})) == {"nodes", "gpus", "time"}


def test_a_job_without_an_image_is_refused() -> None:
    assert set(failing(image=None)) == {"image"}
