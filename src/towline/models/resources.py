"""`Resources`: what a job asks of Slurm for the whole allocation."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from towline.models.fields import Count, GpuCount, MemoryMiB, Model, NodeMemory, Token, Tokens, Walltime

ALTERNATIVES = (
    ("gpus", "gpus_per_node"),
    ("cpus_per_task", "cpus_per_gpu"),
    ("memory", "memory_per_cpu", "memory_per_gpu"),
)
"""Fields of which a job gives one at most."""


class Resources(Model):
    """What is asked of Slurm for the whole allocation.

    Attributes:
        nodes: number of nodes.
        gpus: GPUs in total; the plan spreads them over nodes as the site has them. Instead of `gpus_per_node`.
        gpus_per_node: GPUs on each node; 0 asks for none.
        gpu_type: type of the GPUs as the site's gres names it; any when empty.
        tasks_per_node: tasks of the step on each node; 1 suits torchrun, accelerate and TAO entrypoints.
        cpus_per_task: CPUs of each task; those that come with the GPUs asked for when not given.
        cpus_per_gpu: CPUs for each GPU, divided among the tasks of a node. Instead of `cpus_per_task`.
        memory: memory per node in MiB (`64G` is read too), or `all`; the site's default when not given.
        memory_per_cpu: memory in MiB for each CPU. Instead of `memory`.
        memory_per_gpu: memory in MiB for each GPU. Instead of `memory`.
        time: walltime in seconds (`4h`, `30m`, `1-00:00:00` are read too); the profile's or the
            partition's default when not given.
        exclusive: whether the nodes are shared with no other job.
        licenses: licenses as the site names them, each with `:COUNT` where more than one is needed.
    """

    nodes: Count = 1
    gpus: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    gpus_per_node: GpuCount = 0
    gpu_type: Token | None = None
    tasks_per_node: Count = 1
    cpus_per_task: Count | None = None
    cpus_per_gpu: Count | None = None
    memory: NodeMemory | None = None
    memory_per_cpu: MemoryMiB | None = None
    memory_per_gpu: MemoryMiB | None = None
    time: Walltime | None = None
    exclusive: bool = False
    licenses: Tokens = ()

    @model_validator(mode="after")
    def _one_of_each(self) -> Resources:
        for group in ALTERNATIVES:
            given = [name for name in group if getattr(self, name)]
            if len(given) > 1:
                raise ValueError(f"{' and '.join(given)} say the same in two ways; give one of them")
        for name in ("gpu_type", "cpus_per_gpu", "memory_per_gpu"):
            if getattr(self, name) and not (self.gpus or self.gpus_per_node):
                raise ValueError(f"{name}: say with gpus or gpus_per_node how many GPUs the job needs")
        return self
