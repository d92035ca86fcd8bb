from __future__ import annotations

from typing import Any

import pytest

from towline.models.errors import SpecError
from towline.models.roles import Role, component_numbers, first_nodes, nodes_of
from towline.models.spec import JobSpec


def role(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "shell": "true", **fields}


CTL = role("ctl", on="policy", service=True)
POLICY, ROLLOUT = role("policy", nodes=2), role("rollout", nodes=3)


def test_roles_take_the_next_nodes_or_share_them() -> None:
    spec = JobSpec.build(roles=[CTL, POLICY, ROLLOUT, role("probe", on="rollout", nodes=2)])
    assert nodes_of(spec.roles) == 5
    assert first_nodes(spec.roles) == {"ctl": 0, "policy": 0, "rollout": 2, "probe": 2}
    assert spec.command_line == "ctl: true; policy: true; rollout: true; probe: true"
    assert JobSpec.build(roles=[POLICY], resources={"nodes": 2}).resources.nodes == 2


def test_images_of_roles() -> None:
    assert JobSpec.build(roles=[role("a"), role("b", image="/b.sqsh")], image="/i.sqsh").images == (
        "/i.sqsh",
        "/b.sqsh",
    )
    assert JobSpec.build(roles=[role("b", image="/b.sqsh")], image="/i.sqsh").images == ("/b.sqsh",)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"roles": [POLICY, POLICY]}, "two have the same name"),
        ({"roles": [role("Policy")]}, "not a name for a role"),
        ({"roles": [role("a", on="b"), POLICY]}, "no role with nodes of its own"),
        ({"roles": [CTL, POLICY, role("x", on="ctl")]}, "no role with nodes of its own"),
        ({"roles": [role("a", on="policy", nodes=3), POLICY]}, "wants 3 of the 2 nodes"),
        ({"roles": [role("a", service=True)]}, "would never be done"),
        ({"roles": [role("a", command=["x"])]}, "either a command or shell text"),
        ({"roles": [{"name": "a"}]}, "either a command or shell text"),
        ({"roles": [role("a", ready_port=70000)]}, "ready_port"),
        ({"roles": [POLICY], "shell": "true"}, "take the job's away"),
        ({"roles": [POLICY], "array": "0-3"}, "no array"),
        ({"roles": [POLICY], "resources": {"gpus": 4}}, "use gpus_per_node"),
        ({"roles": [POLICY], "resources": {"nodes": 3}}, "2 nodes together, and 3 are asked for"),
        ({"roles": [role("a", env={"K": "v"})], "secrets": ["K"]}, "env of a role"),
        ({"roles": [role("a", on="policy", partition="cpu"), POLICY]}, "shares the nodes"),
        ({"roles": [role("a", resources={"nodes": 2})]}, "stand in the role itself"),
        ({"roles": [role("a", resources={"gpus": 2})]}, "per node"),
        ({"roles": [role("a", partition="cpu")], "nodelist": "node1"}, "nodelist"),
    ],
)
def test_roles_that_do_not_fit_together(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(SpecError, match=why):
        JobSpec.build(**fields)


def test_a_role_by_itself() -> None:
    assert Role(name="a", command=("python3", "x y.py")).command_line == "python3 'x y.py'"


def test_roles_of_several_kinds_are_components() -> None:
    learner = role("learner", nodes=2, resources={"gpus_per_node": 8, "memory": "400G"}, constraint="h100")
    roles = [role("ctl", on="actor", tasks_per_node=3), learner, role("actor", nodes=4, tasks_per_node=2)]
    spec = JobSpec.build(roles=roles, partition="cpu", resources={"time": "1h", "memory": "1G"})
    assert component_numbers(spec.roles) == {"ctl": 1, "learner": 0, "actor": 1}
    first, second = spec.components
    assert (first.resources.nodes, first.resources.gpus_per_node, first.resources.memory) == (2, 8, 400 << 10)
    assert (first.partition, first.constraint, first.resources.time) == (("cpu",), "h100", 3600)
    assert (second.resources.nodes, second.resources.tasks_per_node, second.resources.memory) == (4, 3, 1024)
    assert second.constraint is None
    assert JobSpec.build(roles=[POLICY]).components == ()
    assert component_numbers(JobSpec.build(roles=[POLICY]).roles) == {}
