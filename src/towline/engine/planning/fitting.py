"""Whether one partition can take a job: each rule gives the reason why not, or nothing. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from towline.engine.planning.standing import (
    ENFORCING_ACCOUNTS,
    account_of,
    associations_of,
    enforces,
    qos_of,
    resource_bounds,
    time_bounds,
)
from towline.models.array import parse_tasks
from towline.models.site import QUEUED, NodeKind, Partition, SiteFacts
from towline.models.spec import JobSpec
from towline.models.values import format_walltime

Rule = Callable[[JobSpec, Partition, SiteFacts], "str | None"]

_FEATURE = re.compile(r"[A-Za-z_][\w.:-]*")


def fitting_nodes(spec: JobSpec, part: Partition) -> int:
    """How many of the partition's nodes have all that the job needs on one node."""
    return sum(kind.count for kind in part.nodes_by_kind if fits(spec, kind))


def fits(spec: JobSpec, kind: NodeKind) -> bool:
    """Whether such a node has all that the job needs on one node."""
    wanted = spec.resources
    memory = _memory_per_node(spec)
    return (
        kind.gpu_count(wanted.gpu_type) >= wanted.gpus_per_node
        and kind.cpus >= wanted.tasks_per_node * (wanted.cpus_per_task or 1)
        and (not memory or not kind.memory or kind.memory >= memory)
    )


def _memory_per_node(spec: JobSpec) -> int:
    wanted = spec.resources
    if wanted.memory_per_cpu:
        return wanted.memory_per_cpu * wanted.tasks_per_node * (wanted.cpus_per_task or 1)
    return wanted.memory if isinstance(wanted.memory, int) else 0


def _nodes(spec: JobSpec, part: Partition, facts: SiteFacts) -> str | None:
    asked, most = spec.resources.nodes, part.nodes
    qos = facts.qos(qos_of(spec, facts, part))
    if part.max_nodes is not None and not (qos and "PartitionMaxNodes" in qos.flags):
        most = min(most, part.max_nodes)
    if asked > most:
        return f"{asked} nodes are asked for and partition {part.name} allows {most}"
    fitting = fitting_nodes(spec, part)
    if part.kinds and 0 < fitting < asked:
        return f"{asked} nodes are asked for and only {fitting} of partition {part.name} have what each of them needs"
    return None


def _gpus(spec: JobSpec, part: Partition, _: SiteFacts) -> str | None:
    wanted, kind = spec.resources.gpus_per_node, spec.resources.gpu_type
    if wanted > part.gpus_per_node:
        return f"{wanted} GPUs per node are asked for and nodes of partition {part.name} have {part.gpus_per_node}"
    if wanted and kind and part.gpu_types and kind not in part.gpu_types:
        return f"GPUs of type {kind} are asked for and partition {part.name} has {', '.join(part.gpu_types)}"
    most = max((each.gpu_count(kind) for each in part.nodes_by_kind), default=0)
    if wanted > most:
        return f"{wanted} GPUs of type {kind} per node are asked for and nodes of partition {part.name} have {most}"
    return None


def _cpus(spec: JobSpec, part: Partition, _: SiteFacts) -> str | None:
    tasks, each = spec.resources.tasks_per_node, spec.resources.cpus_per_task
    there = min(part.cpus_per_node, part.max_cpus_per_node or part.cpus_per_node)
    if not there or tasks * (each or 1) <= there:
        return None
    asked = f"{tasks} tasks per node" if each is None else f"{tasks * each} CPUs per node"
    return f"{asked} are asked for and nodes of partition {part.name} have {there} CPUs"


def _memory(spec: JobSpec, part: Partition, _: SiteFacts) -> str | None:
    wanted = _memory_per_node(spec)
    if wanted and part.memory_per_node and wanted > part.memory_per_node:
        return f"{wanted} MiB per node are asked for and nodes of partition {part.name} have {part.memory_per_node}"
    return None


def _features(spec: JobSpec, part: Partition, _: SiteFacts) -> str | None:
    """Slurm refuses features that no node has; only names are looked at, not what is said of them together."""
    if not spec.constraint or not part.kinds:
        return None
    there = {feature for kind in part.kinds for feature in kind.features}
    missing = [name for name in _FEATURE.findall(spec.constraint) if name not in there]
    if not missing:
        return None
    has = f"they have {', '.join(sorted(there))}" if there else "they have none"
    return f"no node of partition {part.name} has the feature {missing[0]}; {has}"


def _time(spec: JobSpec, part: Partition, facts: SiteFacts) -> str | None:
    asked = spec.resources.time
    for bound in time_bounds(spec, part, facts):
        if asked and asked > bound.most:
            limit = format_walltime(bound.most)
            return f"a walltime of {format_walltime(asked)} is asked for and {bound.whose} allows {limit}"
    return None


def _access(spec: JobSpec, part: Partition, facts: SiteFacts) -> str | None:
    account, qos = account_of(spec, facts), qos_of(spec, facts, part)
    if part.groups is not None and facts.groups is not None and not set(part.groups) & set(facts.groups):
        return f"partition {part.name} is for members of {', '.join(part.groups)}, and you are in none of these groups"
    if account and _shut(account, part.accounts, part.denied_accounts):
        return f"partition {part.name} takes no jobs of account {account}"
    if qos and _shut(qos, part.qoses, part.denied_qoses):
        return f"partition {part.name} takes no jobs of QOS {qos}"
    if account and facts.associations and enforces(facts, ENFORCING_ACCOUNTS):
        known = any(each.account.lower() == account for each in facts.associations)
        if known and not associations_of(spec, facts, part):
            return f"account {account} may not be used in partition {part.name}"
    return None


def _shut(name: str, allowed: tuple[str, ...] | None, denied: tuple[str, ...]) -> bool:
    lower = name.lower()
    if allowed is not None and lower not in [each.lower() for each in allowed]:
        return True
    return lower in [each.lower() for each in denied]


def _limits(spec: JobSpec, part: Partition, facts: SiteFacts) -> str | None:
    bounds = resource_bounds(spec, part, facts)
    broken = [
        f"{asked} {_WORDS.get(name, name)} are asked for and {bound.whose} allows {bound.most}"
        for name, asked in _asked(spec)
        if (bound := bounds.get(name)) and asked > bound.most
    ]
    return "; ".join(broken) or None


_WORDS = {"gres/gpu": "GPUs", "node": "nodes", "cpu": "CPUs", "mem": "MiB of memory", QUEUED: "tasks"}


def _asked(spec: JobSpec) -> Iterator[tuple[str, int]]:
    """What the job asks for in all, by Slurm's names of resources."""
    wanted = spec.resources
    yield "node", wanted.nodes
    yield "cpu", wanted.nodes * wanted.tasks_per_node * (wanted.cpus_per_task or 1)
    yield "mem", wanted.nodes * _memory_per_node(spec)
    yield "gres/gpu", wanted.nodes * wanted.gpus_per_node
    if wanted.gpu_type:
        yield f"gres/gpu:{wanted.gpu_type}", wanted.nodes * wanted.gpus_per_node
    if spec.array:
        yield QUEUED, len(parse_tasks(spec.array))


RULES: dict[str, Rule] = {
    "access": _access,
    "nodes": _nodes,
    "gpus": _gpus,
    "cpus": _cpus,
    "memory": _memory,
    "features": _features,
    "limits": _limits,
    "time": _time,
}
"""Name of the check → the rule."""


def takes(spec: JobSpec, part: Partition, facts: SiteFacts) -> bool:
    """Whether the partition takes jobs, and can take this one."""
    return part.available and not any(rule(spec, part, facts) for rule in RULES.values())
