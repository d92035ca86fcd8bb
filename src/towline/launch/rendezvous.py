"""How the ranks of a job find each other: the variables that distributed frameworks read.

All of it is written into `script/env`, which each task reads. What only the allocation knows comes from there: the
supervisor finds `TOWLINE_MASTER_ADDR` (the first host of the allocation) and `TOWLINE_MASTER_PORT`, and Slurm tells
each task its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from towline.launch.quoting import quote

FIRST_PORT = 20000
PORTS = 10000
"""`MASTER_PORT` is `FIRST_PORT` + Slurm id modulo `PORTS`, or the next one that is free on the first host: two jobs on
one node get different ports, and the range stays clear of Linux' ephemeral ports (32768 to 60999,
ip_local_port_range) and of Kubernetes' (30000 on)."""

TAO_PORT = 29500
"""The port of TAO's convention."""

Convention = Literal["", "tao"]
"""Whose variables the tasks get beside the general ones; see `Place.lines`."""

_IN_EVERY_TASK = {
    "MASTER_ADDR": '"${TOWLINE_MASTER_ADDR:-}"',
    "MASTER_PORT": '"${TOWLINE_MASTER_PORT:-}"',
    "NODE_RANK": '"${SLURM_NODEID:-0}"',
    "RANK": '"${SLURM_PROCID:-0}"',
    "LOCAL_RANK": '"${SLURM_LOCALID:-0}"',
}
_AS_IF_STARTED_BY_SLURM = (
    *("SLURM_NTASKS", "SLURM_NNODES", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"),
    *("RANK", "LOCAL_RANK", "GROUP_RANK"),
)
"""Where these are, Lightning believes that Slurm started it once per GPU, and starts nothing itself."""
_OF_SEVERAL_NODES = (
    *("WORLD_SIZE", "NODE_RANK", "NUM_GPU_PER_NODE"),
    *("MASTER_ADDR", "MASTER_PORT", "NNODES", "NPROC_PER_NODE"),
)


def master_port(slurm_id: int) -> int:
    """The port that the supervisor will choose for this Slurm id when it is free."""
    return FIRST_PORT + slurm_id % PORTS


@dataclass(frozen=True)
class Place:
    """The shape of a step: what its tasks are told of each other.

    Attributes:
        nodes: number of nodes.
        tasks_per_node: tasks on each.
        gpus_per_node: GPUs on each, all of them seen by every task.
        convention: `tao` for TAO's variables.
    """

    nodes: int
    tasks_per_node: int = 1
    gpus_per_node: int = 0
    convention: Convention = ""

    def lines(self) -> str:
        """Lines of sh that set the variables in a task.

        `NPROC_PER_NODE` is what `torchrun --nproc-per-node` wants: the GPUs of a node, or its tasks when there are
        none. `WORLD_SIZE` counts tasks; torchrun sets its own for the workers it starts, and where one task runs on
        each node it is the number of nodes, as TAO has it. Such a task with several GPUs has no `LOCAL_RANK`: by that
        frameworks (Lightning, Transformers, Accelerate) believe that they were started once per GPU. Pyxis sets it in
        images with PyTorch, so it is taken away there.
        """
        values = dict(_IN_EVERY_TASK)
        counted = {
            "NNODES": self.nodes,
            "NPROC_PER_NODE": self.gpus_per_node or self.tasks_per_node,
            "NUM_GPU_PER_NODE": self.gpus_per_node,
            "WORLD_SIZE": self.nodes * self.tasks_per_node,
        }
        values |= {name: quote(str(count)) for name, count in counted.items()}
        absent = ["LOCAL_RANK"] if self._several_gpus_each else []
        if self.convention == "tao" and self.tasks_per_node == 1:
            absent = [*_AS_IF_STARTED_BY_SLURM, *(_OF_SEVERAL_NODES if self.nodes == 1 else ())]
            values["SLURM_JOB_NAME"] = "bash"
        exports = [f"export {name}={value}\n" for name, value in values.items() if name not in absent]
        return "".join([*exports, *([f"unset {' '.join(absent)}\n"] if absent else [])])

    @property
    def _several_gpus_each(self) -> bool:
        return self.tasks_per_node == 1 and self.gpus_per_node > 1
