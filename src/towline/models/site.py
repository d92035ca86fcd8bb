"""`SiteFacts`: what a cluster said of itself, kept with the time it was asked."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Partition:
    """A partition as `scontrol show partition` and `sinfo` describe it.

    Attributes:
        name: its name.
        default: whether jobs without a partition go there.
        available: whether it takes jobs (State=UP).
        max_time: longest walltime in seconds; None when unlimited.
        default_time: walltime in seconds of jobs that ask for none; None when not set.
        max_nodes: most nodes of one job; None when unlimited.
        nodes: number of its nodes.
        gpus_per_node: the most GPUs that one of its nodes has.
        gpu_types: the types of these GPUs; empty where the site names none.
        cpus_per_node: the most CPUs that one of its nodes has.
        memory_per_node: the most memory in MiB that one of its nodes has.
    """

    name: str
    default: bool = False
    available: bool = True
    max_time: int | None = None
    default_time: int | None = None
    max_nodes: int | None = None
    nodes: int = 0
    gpus_per_node: int = 0
    gpu_types: tuple[str, ...] = ()
    cpus_per_node: int = 0
    memory_per_node: int = 0


@dataclass(frozen=True)
class SiteFacts:
    """What one cluster said of itself.

    Attributes:
        cluster: Slurm's ClusterName.
        version: Slurm's version, for example `22.05.8`.
        partitions: in the order that Slurm lists them.
        message_timeout: Slurm's MessageTimeout in seconds (slurm.conf(5), default 10).
        asked: when, in seconds since 1970 on this machine's clock.
    """

    cluster: str
    version: str
    partitions: tuple[Partition, ...]
    message_timeout: int = 10
    asked: float = 0.0

    def partition(self, name: str) -> Partition | None:
        """The partition of that name, or None."""
        return next((part for part in self.partitions if part.name == name), None)

    @property
    def default_partition(self) -> Partition | None:
        """The partition that takes jobs which name none, or None."""
        return next((part for part in self.partitions if part.default), None)

    def to_json(self) -> str:
        """The facts as text that `from_json` reads."""
        from pydantic import TypeAdapter

        return TypeAdapter(SiteFacts).dump_json(self).decode()

    @classmethod
    def from_json(cls, text: str) -> SiteFacts:
        """Read what `to_json` wrote.

        Raises:
            ValueError: the text holds no such facts.
        """
        from pydantic import TypeAdapter

        return TypeAdapter(SiteFacts).validate_json(text)
