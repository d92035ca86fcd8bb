"""How the ranks of a job find each other: the variables that distributed frameworks read.

What is the same in every task is written into `script/env`. What only the allocation knows is worked out there:
the supervisor finds `MASTER_ADDR` (the first host of the allocation) and `MASTER_PORT`, and the prelude sets
`NODE_RANK`, `RANK` and `LOCAL_RANK` from Slurm's own variables in each task.
"""

from __future__ import annotations

from towline.models.spec import Resources

FIRST_PORT = 20000
PORTS = 10000
"""`MASTER_PORT` is `FIRST_PORT` + Slurm id modulo `PORTS`: two jobs on one node get different ports, and
the range stays clear of Linux' ephemeral ports (32768 to 60999, ip_local_port_range) and of Kubernetes' (30000 on)."""

RANK_VARIABLES = ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK", "RANK", "LOCAL_RANK")
"""What the prelude sets in each task, before `script/env` is read: a spec's own value wins."""


def master_port(slurm_id: int) -> int:
    """The port that the supervisor will choose for this Slurm id."""
    return FIRST_PORT + slurm_id % PORTS


def common_environment(resources: Resources) -> dict[str, str]:
    """The variables that are the same in every task.

    `NPROC_PER_NODE` is what `torchrun --nproc-per-node` wants: the GPUs of a node, or its tasks when there are
    none. `WORLD_SIZE` counts tasks; torchrun sets its own for the workers it starts.
    """
    return {
        "NNODES": str(resources.nodes),
        "NPROC_PER_NODE": str(resources.gpus_per_node or resources.tasks_per_node),
        "WORLD_SIZE": str(resources.nodes * resources.tasks_per_node),
    }
