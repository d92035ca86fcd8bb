"""Cosmos-RL on several nodes: from its configuration to a job with roles. Pure planning: nothing is sent here.

A policy or rollout replica takes whole nodes or a part of one. What each node runs is told to Cosmos-RL's own launcher
in variables (`NODE_LAUNCH_METADATA_POLICY` and its kin), which it reads beside the roles' host names.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import cast

from towline.launch.quoting import quote_words
from towline.models.errors import SpecError
from towline.models.roles import Role
from towline.models.spec import JobSpec

CONTROLLER_PORT = 8082
RENDEZVOUS_PORT = 29345
"""Port on which the ranks of a node's first replica meet; the next replica of the node has the next one."""
LINGER = 60
"""Seconds that policy and rollout get to end after the controller has left: it leaves when training is over."""

_WITHOUT_ROLLOUT = "sft"
_WITH_ROLLOUT = ("grpo", "rl")
_POLICY_SIZES = ("tp_size", "pp_size", "cp_size", "dp_replicate_size")
_ROLLOUT_SIZES = ("tp_size", "pp_size")


@dataclass(frozen=True)
class Replica:
    """A replica's part of one node, with the names that Cosmos-RL reads.

    Attributes:
        nnode: nodes that the replica has.
        role: `policy`, `rollout` or `reference`.
        rendezvous_node: the replica's first node among the role's.
        rendezvous_port: port on which its ranks meet there.
        visible_gpus: the node's GPUs that it has.
    """

    nnode: int
    role: str
    rendezvous_node: int
    rendezvous_port: int
    visible_gpus: tuple[int, ...]


Node = tuple[Replica, ...]
"""The replicas that share one node."""


@dataclass(frozen=True)
class Layout:
    """The nodes of each role, in order; a role that the training has no use for has none."""

    policy: tuple[Node, ...]
    rollout: tuple[Node, ...] = ()
    reference: tuple[Node, ...] = ()

    @property
    def nodes(self) -> int:
        """Nodes of the whole job; the controller shares the first of policy."""
        return len(self.policy) + len(self.rollout) + len(self.reference)

    def by_role(self) -> dict[str, tuple[Node, ...]]:
        """The roles that have nodes, in the order in which they start."""
        return {name: nodes for name in ("policy", "rollout", "reference") if (nodes := getattr(self, name))}


def layout(config: Mapping[str, object], gpus_per_node: int) -> Layout:
    """How the replicas of a configuration lie on nodes.

    Args:
        config: Cosmos-RL's configuration as its TOML file has it.
        gpus_per_node: GPUs of each node.

    Raises:
        SpecError: a size is no whole number, the kind of training is not known, or replicas and nodes do not divide.
    """
    kind = _text(config, "train.train_policy.type", _WITHOUT_ROLLOUT).lower()
    if kind not in (_WITHOUT_ROLLOUT, *_WITH_ROLLOUT):
        raise _wrong("train.train_policy.type", f"{kind!r} is not known; it is one of sft, grpo and rl")
    policy = _role(config, "policy", _POLICY_SIZES, gpus_per_node, sharded=True)
    rollout = _role(config, "rollout", _ROLLOUT_SIZES, gpus_per_node) if kind in _WITH_ROLLOUT else ()
    distilled = _table(config, "distillation").get("enable") is True
    reference = _role(config, "reference", _POLICY_SIZES, gpus_per_node, sharded=True) if distilled else ()
    return Layout(policy, rollout, reference)


def place(role: str, gpus: int, replicas: int, gpus_per_node: int) -> tuple[Node, ...]:
    """The nodes of one role.

    Args:
        role: its name.
        gpus: GPUs of each replica.
        replicas: how many there are.
        gpus_per_node: GPUs of each node.

    Raises:
        SpecError: a replica is no whole number of nodes, and none of its parts either.
    """
    if gpus % gpus_per_node and gpus_per_node % gpus:
        raise _wrong(
            f"{role}.parallelism",
            f"a replica of {gpus} GPUs neither fills nodes of {gpus_per_node} GPUs nor divides them",
        )
    if gpus >= gpus_per_node:
        each, everything = gpus // gpus_per_node, tuple(range(gpus_per_node))
        return tuple(
            (Replica(each, role, node - node % each, RENDEZVOUS_PORT, everything),) for node in range(replicas * each)
        )
    room = gpus_per_node // gpus
    counts = [min(room, replicas - first) for first in range(0, replicas, room)]
    return tuple(
        tuple(
            Replica(1, role, node, RENDEZVOUS_PORT + slot, tuple(range(slot * gpus, (slot + 1) * gpus)))
            for slot in range(count)
        )
        for node, count in enumerate(counts)
    )


def metadata(nodes: Sequence[Node]) -> str:
    """The nodes as Cosmos-RL reads them from a variable."""
    return json.dumps([{"colocation": [asdict(replica) for replica in node]} for node in nodes], separators=(",", ":"))


def cosmos_job(spec: JobSpec, config: Mapping[str, object]) -> JobSpec:
    """The job with the roles that the configuration needs; each runs the job's own command, told its role.

    A job that fits on one node stays as it is, for there Cosmos-RL starts everything itself.

    Args:
        spec: one command, with `resources.gpus_per_node`.
        config: Cosmos-RL's configuration as its TOML file has it.

    Raises:
        SpecError: the configuration does not fit on such nodes, or the spec names no GPUs.
    """
    gpus = spec.resources.gpus_per_node
    if not gpus:
        raise _wrong("resources.gpus_per_node", "Cosmos-RL's replicas are laid on GPUs; say how many a node has")
    found = layout(config, gpus)
    if found.nodes == 1:
        return spec
    fields = spec.model_dump(exclude_unset=True)
    resources = {**fields.get("resources", {}), "nodes": found.nodes}
    if not any(name.startswith("memory") for name in resources):  # model weights and caches need all there is
        resources["memory"] = "all"
    variables = {**_variables(found), **spec.env}
    changed = {"command": (), "shell": "", "roles": _roles(spec, found), "env": variables, "resources": resources}
    return JobSpec.build(**{"name": spec.name, **fields, **changed})


def _variables(found: Layout) -> dict[str, str]:
    """What is the same for every role."""
    sizes = {f"NUM_{name.upper()}_NODES": str(len(nodes)) for name, nodes in found.by_role().items()}
    tables = {f"NODE_LAUNCH_METADATA_{name.upper()}": metadata(nodes) for name, nodes in found.by_role().items()}
    return {
        "COSMOS_RL_MULTINODE": "1",
        "NUM_ROLLOUT_NODES": "0",
        "NODE_LAUNCH_METADATA_ROLLOUT": "[]",
        **sizes,
        **tables,
        "TOTAL_NODES": str(found.nodes),
        "CONTROLLER_PORT": str(CONTROLLER_PORT),
    }


def _roles(spec: JobSpec, found: Layout) -> tuple[Role, ...]:
    """The controller first, on the first node of policy: the others need it."""
    controller = Role(
        name="controller",
        on="policy",
        shell=_shell(spec, found, "policy"),
        env={"COSMOS_NODE_ROLE": "controller"},
        ready_port=CONTROLLER_PORT,
        service=True,
        linger=LINGER,
    )
    workers = (
        Role(name=name, nodes=len(nodes), shell=_shell(spec, found, name), env={"COSMOS_NODE_ROLE": name})
        for name, nodes in found.by_role().items()
    )
    return (controller, *workers)


def _shell(spec: JobSpec, found: Layout, nodes_of: str) -> str:
    """The job's command, after what only the allocation knows: the names of the roles' hosts."""
    hosts = {f"{name.upper()}_NODES": f"$TOWLINE_NODES_{name.upper()}" for name in found.by_role()}
    first = "${TOWLINE_NODES_POLICY%% *}"
    values = {
        **hosts,
        "CONTROLLER_NODE": first,
        "COSMOS_CONTROLLER_HOST": f"{first}:{CONTROLLER_PORT}",
        "LOCAL_NODE_LIST": f"$TOWLINE_NODES_{nodes_of.upper()}",
    }
    exports = "".join(f'export {name}="{value}"\n' for name, value in values.items())
    return exports + (spec.shell or f"exec {quote_words(spec.command)}")


# --- The configuration ---


def _role(
    config: Mapping[str, object], role: str, sizes: Sequence[str], gpus_per_node: int, *, sharded: bool = False
) -> tuple[Node, ...]:
    where = f"{'distillation' if role == 'reference' else role}.parallelism"
    gpus = 1
    for size in sizes:
        gpus *= _count(config, f"{where}.{size}")
    if sharded:  # below 1 it means that nothing is sharded
        gpus *= max(_count(config, f"{where}.dp_shard_size", least=-1), 1)
    return place(role, gpus, _count(config, f"{where}.n_init_replicas"), gpus_per_node)


def _count(config: Mapping[str, object], where: str, *, least: int = 1) -> int:
    value = _at(config, where)
    if value is None:
        return 1
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise _wrong(where, f"it must be a whole number of at least {least}, and is {value!r}")
    return value


def _text(config: Mapping[str, object], where: str, default: str) -> str:
    value = _at(config, where)
    if value is None:
        return default
    if not isinstance(value, str):
        raise _wrong(where, f"it must be text, and is {value!r}")
    return value


def _at(config: Mapping[str, object], where: str) -> object:
    table, _, name = where.rpartition(".")
    return _table(config, table).get(name)


def _table(config: Mapping[str, object], where: str) -> Mapping[str, object]:
    table = config
    for part in where.split("."):
        found = table.get(part, {})
        if not isinstance(found, Mapping):
            raise _wrong(where, f"{part} must be a table, and is {found!r}")
        table = cast("Mapping[str, object]", found)
    return table


def _wrong(where: str, why: str) -> SpecError:
    return SpecError(
        "the Cosmos-RL job cannot be laid on nodes as it is described",
        why=f"{where}: {why}",
        fix="Correct its configuration, or ask for other nodes; nothing was sent to the cluster.",
    )
