"""Cosmos-RL's replicas on nodes, and the job that comes of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from towline.models.errors import SpecError
from towline.models.spec import JobSpec
from towline.tao.cosmos import Replica, cosmos_job, layout, metadata, place


def config(kind: str | None = "grpo", policy: Any = None, rollout: Any = None, **more: Any) -> dict[str, Any]:
    train = {"train_policy": {"type": kind} if kind else {}}
    return {"train": train, "policy": {"parallelism": policy or {}}, "rollout": {"parallelism": rollout or {}}, **more}


@pytest.mark.parametrize(
    ("kind", "policy", "rollout", "nodes"),
    [
        ("grpo", {}, {}, (1, 1)),
        ("GRPO", {"tp_size": 8}, {"tp_size": 8}, (1, 1)),
        ("rl", {"tp_size": 8, "pp_size": 2}, {"tp_size": 4, "n_init_replicas": 4}, (2, 2)),
        ("sft", {"dp_shard_size": 8, "dp_replicate_size": 2}, {"tp_size": 3}, (2, 0)),
        (None, {"dp_shard_size": 32}, {}, (4, 0)),
        ("grpo", {"cp_size": 2, "tp_size": 2, "n_init_replicas": 3}, {"n_init_replicas": 9}, (2, 2)),
        ("grpo", {"dp_shard_size": -1, "tp_size": 8}, {"tp_size": 2, "pp_size": 4}, (1, 1)),
        ("grpo", {"dp_shard_size": 0, "tp_size": 8}, {"tp_size": 8, "n_init_replicas": 3}, (1, 3)),
    ],
)
def test_nodes_of_roles(kind: str | None, policy: Any, rollout: Any, nodes: tuple[int, int]) -> None:
    found = layout(config(kind, policy, rollout), 8)
    assert (len(found.policy), len(found.rollout)) == nodes
    assert found.nodes == sum(nodes)


def test_a_replica_of_whole_nodes() -> None:
    everything = tuple(range(8))
    assert place("policy", 16, 2, 8) == tuple(
        (Replica(2, "policy", first, 29345, everything),) for first in (0, 0, 2, 2)
    )


def test_replicas_that_share_nodes() -> None:
    slices = [(0, 1), (2, 3), (4, 5), (6, 7)]
    full = [Replica(1, "rollout", 0, 29345 + slot, gpus) for slot, gpus in enumerate(slices)]
    rest = [Replica(1, "rollout", 1, 29345, (0, 1)), Replica(1, "rollout", 1, 29346, (2, 3))]
    assert place("rollout", 2, 6, 8) == (tuple(full), tuple(rest))


def test_metadata_as_cosmos_reads_it() -> None:
    assert json.loads(metadata(place("policy", 4, 2, 8))) == [
        {
            "colocation": [
                {"nnode": 1, "role": "policy", "rendezvous_node": 0, "rendezvous_port": port, "visible_gpus": gpus}
                for port, gpus in ((29345, [0, 1, 2, 3]), (29346, [4, 5, 6, 7]))
            ]
        }
    ]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (config(policy={"tp_size": 3}), r"policy.parallelism: a replica of 3 GPUs neither fills nodes of 8"),
        (config(policy={"tp_size": 12}), r"a replica of 12 GPUs"),
        (config(rollout={"tp_size": 5}), r"rollout.parallelism: a replica of 5 GPUs"),
        (config(policy={"tp_size": 0}), r"policy.parallelism.tp_size: it must be a whole number of at least 1"),
        (config(policy={"tp_size": "8"}), r"tp_size.*is '8'"),
        (config(policy={"pp_size": True}), r"pp_size"),
        (config(policy={"n_init_replicas": 0}), r"n_init_replicas"),
        (config(policy={"dp_shard_size": -2}), r"dp_shard_size"),
        (config("dpo"), r"'dpo' is not known"),
        ({"policy": 1}, r"policy must be a table"),
        ({"train": {"train_policy": {"type": 1}}}, r"must be text"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(given: dict[str, Any], why: str) -> None:
    with pytest.raises(SpecError, match=why):
        layout(given, 8)


SPEC = JobSpec.build(
    command=["python", "train it.py"], name="rl", env={"A": "1"}, image="/i.sqsh", resources={"gpus_per_node": 8}
)


def test_a_job_with_roles() -> None:
    job = cosmos_job(SPEC, config(policy={"tp_size": 8, "pp_size": 2}, rollout={"n_init_replicas": 8}))
    controller, policy, rollout = job.roles
    assert [role.name for role in job.roles] == ["controller", "policy", "rollout"]
    assert [(role.nodes, role.on, role.service) for role in job.roles] == [
        (1, "policy", True),
        (2, None, False),
        (1, None, False),
    ]
    assert controller.ready_port == 8082
    assert (job.name, job.image, job.command, job.resources.nodes, job.resources.memory) == (
        *("rl", "/i.sqsh", (), 3, "all"),
    )
    assert policy.env == {"COSMOS_NODE_ROLE": "policy"}
    assert {name: job.env[name] for name in ("A", "COSMOS_RL_MULTINODE", "TOTAL_NODES", "CONTROLLER_PORT")} == {
        "A": "1",
        "COSMOS_RL_MULTINODE": "1",
        "TOTAL_NODES": "3",
        "CONTROLLER_PORT": "8082",
    }
    assert (job.env["NUM_POLICY_NODES"], job.env["NUM_ROLLOUT_NODES"]) == ("2", "1")
    assert len(json.loads(job.env["NODE_LAUNCH_METADATA_ROLLOUT"])[0]["colocation"]) == 8
    assert rollout.shell == (
        'export POLICY_NODES="$TOWLINE_NODES_POLICY"\n'
        'export ROLLOUT_NODES="$TOWLINE_NODES_ROLLOUT"\n'
        'export CONTROLLER_NODE="${TOWLINE_NODES_POLICY%% *}"\n'
        'export COSMOS_CONTROLLER_HOST="${TOWLINE_NODES_POLICY%% *}:8082"\n'
        'export LOCAL_NODE_LIST="$TOWLINE_NODES_ROLLOUT"\n'
        "exec 'python' 'train it.py'"
    )
    assert 'LOCAL_NODE_LIST="$TOWLINE_NODES_POLICY"' in controller.shell


def test_supervised_training_has_no_rollout_and_distillation_a_reference() -> None:
    sft = cosmos_job(SPEC, config("sft", {"dp_shard_size": 16}))
    assert [role.name for role in sft.roles] == ["controller", "policy"]
    assert (sft.env["NUM_ROLLOUT_NODES"], sft.env["NODE_LAUNCH_METADATA_ROLLOUT"]) == ("0", "[]")
    distilled = config(distillation={"enable": True, "parallelism": {"tp_size": 8, "n_init_replicas": 2}})
    job = cosmos_job(SPEC, distilled)
    assert [(role.name, role.nodes) for role in job.roles[1:]] == [("policy", 1), ("rollout", 1), ("reference", 2)]
    assert json.loads(job.env["NODE_LAUNCH_METADATA_REFERENCE"])[1]["colocation"][0]["rendezvous_node"] == 1


def test_one_node_needs_no_roles() -> None:
    assert cosmos_job(SPEC, config("sft", {"dp_shard_size": 8})) is SPEC


def test_nodes_without_gpus_are_refused() -> None:
    with pytest.raises(SpecError, match="gpus_per_node"):
        cosmos_job(JobSpec.build(command=["true"]), config())
