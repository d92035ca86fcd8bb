"""How much of which nodes: a job's wishes laid on what the site's nodes are. Pure.

GPUs in total become GPUs on nodes, and tasks get the CPUs that belong to their GPUs. The numbers that come out are
those that stand in the batch script.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from towline.models.resources import Resources
from towline.models.site import NodeKind, Partition


@dataclass(frozen=True)
class Rules:
    """What a site or a preset wants of a job's size.

    Attributes:
        gpus_per_node: GPUs of a whole node; None takes it from the site's nodes.
        cpus_per_task: CPUs of tasks that name none; None gives them their GPUs' share of a node.
        cpus_per_gpu: CPUs that belong to a GPU; None counts those of the site's nodes.
        max_cpus_per_task: the most that are given to a task that names none.
        cpus_in_all: the most CPUs that the job may have by the limits of its QOS and account; None for no limit.
        tao: TAO's convention: a total below a node's GPUs is meant for each node, whole nodes are never split, and
            one node with several GPUs and one task gets `cpus_per_task` for each of them.
        shares: whether tasks that name no CPUs get their GPUs' share of a node.
        task_per_gpu: whether the job has one task for each GPU.
    """

    gpus_per_node: int | None = None
    cpus_per_task: int | None = None
    cpus_per_gpu: int | None = None
    max_cpus_per_task: int | None = None
    cpus_in_all: int | None = None
    tao: bool = False
    shares: bool = True
    task_per_gpu: bool = False


@dataclass(frozen=True)
class Size:
    """What is asked for, and what a person should know of it.

    Attributes:
        resources: without totals and shares.
        wasted: GPUs beyond those that were asked for.
        notes: how it came about, in sentences.
    """

    resources: Resources
    wasted: int = 0
    notes: tuple[str, ...] = ()


def size(wanted: Resources, partitions: Sequence[Partition], rules: Rules = Rules()) -> Size:
    """The job's size on nodes of these partitions (those it may go to); with none of them known, as far as it goes."""
    kinds = [kind for part in partitions for kind in _capped(part)]
    found = _spread(wanted, kinds, rules)
    resources = found.resources
    if rules.task_per_gpu and resources.gpus_per_node:
        resources = _changed(resources, tasks_per_node=resources.gpus_per_node)
    resources, notes = _with_cpus(resources, kinds, rules)
    if resources.memory_per_gpu:
        memory = resources.memory_per_gpu * resources.gpus_per_node
        resources = _changed(resources, memory=memory, memory_per_gpu=None)
    return replace(found, resources=resources, notes=(*found.notes, *notes))


# --- GPUs ---


def _spread(wanted: Resources, kinds: Sequence[NodeKind], rules: Rules) -> Size:
    """GPUs in total on nodes: those of whole nodes, exclusive, from a node's number on."""
    if wanted.gpus is None:
        return Size(wanted)
    total = wanted.gpus
    wholes = _whole_nodes(wanted, kinds, rules)
    options = [_on_nodes(wanted, total, whole, largest=whole == max(wholes), rules=rules) for whole in wholes]
    if not options:
        options = [_changed(wanted, gpus=None, gpus_per_node=-(-total // wanted.nodes))]
    chosen = min(options, key=lambda each: (_gpus(each) - total, each.nodes, each.exclusive))
    wasted = _gpus(chosen) - total
    notes: list[str] = []
    if (chosen.nodes, chosen.gpus_per_node) != (wanted.nodes, total):
        whole = "whole nodes" if chosen.exclusive and not wanted.exclusive else "nodes"
        notes.append(f"{total} GPUs are {chosen.nodes} {whole} of {chosen.gpus_per_node}")
    if wasted:
        notes.append(f"{wasted} of {_gpus(chosen)} GPUs are more than was asked for")
    return Size(chosen, wasted, tuple(notes))


def _gpus(resources: Resources) -> int:
    return resources.nodes * resources.gpus_per_node


def _whole_nodes(wanted: Resources, kinds: Sequence[NodeKind], rules: Rules) -> list[int]:
    """How many GPUs whole nodes have, among which the job may choose; TAO's number is the preset's."""
    found = {count for kind in kinds if (count := kind.gpu_count(wanted.gpu_type))}
    if rules.gpus_per_node and (rules.tao or not found):
        return [rules.gpus_per_node]
    return sorted(min(count, rules.gpus_per_node or count) for count in found)


def _on_nodes(wanted: Resources, total: int, whole: int, *, largest: bool, rules: Rules) -> Resources:
    """The total on nodes of that many GPUs; whole ones are asked for alone if no larger ones could be taken so."""
    nodes = max(wanted.nodes, -(-total // whole))
    if total < whole:
        each = total if rules.tao else -(-total // nodes)
    else:
        each = whole if rules.tao else -(-total // nodes)
        if each < whole and nodes > wanted.nodes:  # a remainder: whole nodes are what runs there
            each = whole
    exclusive = wanted.exclusive or (each == whole and total >= whole and largest)
    return _changed(wanted, gpus=None, gpus_per_node=each, nodes=nodes, exclusive=exclusive)


# --- CPUs ---


def _with_cpus(wanted: Resources, kinds: Sequence[NodeKind], rules: Rules) -> tuple[Resources, tuple[str, ...]]:
    tasks, gpus = wanted.tasks_per_node, wanted.gpus_per_node
    if wanted.cpus_per_gpu:
        cpus = max(1, -(-wanted.cpus_per_gpu * gpus // tasks))
        return _changed(wanted, cpus_per_gpu=None, cpus_per_task=cpus), ()
    if wanted.cpus_per_task or not (rules.shares or rules.cpus_per_task):
        return wanted, ()
    cpus, why = _own_number(wanted, rules) if rules.cpus_per_task else _share(wanted, kinds, rules)
    if rules.max_cpus_per_task and cpus > rules.max_cpus_per_task:
        cpus, why = rules.max_cpus_per_task, "the profile allows no more"
    if not cpus:
        return wanted, ()
    return _changed(wanted, cpus_per_task=cpus), (f"{cpus} CPUs for each task: {why}",)


def _own_number(wanted: Resources, rules: Rules) -> tuple[int, str]:
    cpus = rules.cpus_per_task or 1
    if rules.tao and wanted.nodes == wanted.tasks_per_node == 1 and wanted.gpus_per_node > 1:
        return cpus * wanted.gpus_per_node, f"{cpus} for each GPU, as the profile says"
    return cpus, "as the profile says"


def _share(wanted: Resources, kinds: Sequence[NodeKind], rules: Rules) -> tuple[int, str]:
    """The smallest share that nodes with such GPUs have for each task, so that any of them can give it.

    Without GPUs only whole nodes have a share; others get what the site gives. Nobody asked for the share, so it
    must not break a limit.
    """
    gpus, tasks = wanted.gpus_per_node, wanted.tasks_per_node
    if gpus and rules.cpus_per_gpu:
        cpus, why = rules.cpus_per_gpu * gpus // tasks, f"{rules.cpus_per_gpu} for each GPU, as the profile says"
    else:
        cpus, why = _smallest(wanted, kinds) // tasks, "its share of a node" if gpus else "its share of a whole node"
    allowed = rules.cpus_in_all // (tasks * wanted.nodes) if rules.cpus_in_all else cpus
    return (cpus, why) if cpus <= allowed else (allowed, "all that your limits allow")


def _smallest(wanted: Resources, kinds: Sequence[NodeKind]) -> int:
    """CPUs that belong to the GPUs asked for, on the nodes that have the fewest for them; 0 for none."""
    gpus, shares = wanted.gpus_per_node, list[int]()
    for kind in kinds:
        there = kind.gpu_count(wanted.gpu_type)
        if gpus and there >= gpus:
            shares.append(kind.cpus * gpus // there)
        elif not gpus and wanted.exclusive:
            shares.append(kind.cpus)
    return min(shares, default=0)


def _capped(part: Partition) -> list[NodeKind]:
    most = part.max_cpus_per_node
    return [replace(kind, cpus=min(kind.cpus, most)) if most else kind for kind in part.nodes_by_kind]


def _changed(resources: Resources, **values: object) -> Resources:
    return resources.model_copy(update=values)
