"""`SiteFacts`: what a cluster said of itself, kept with the time it was asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Per = Literal["job", "user", "group"]

QUEUED = "queued"
"""The name of a limit on jobs in the queue, which has none as a resource; each task of an array counts as a job."""
"""What a limit counts: one job, a user's jobs together, or everybody's together. No job may be larger than any."""


@dataclass(frozen=True)
class NodeKind:
    """Equal nodes of one partition.

    Attributes:
        count: how many there are, whatever their state.
        cpus: CPUs of each, as Slurm counts them.
        memory: MiB of each.
        gpus: GPUs of each by type; the type is empty where the site names none.
        features: what `--constraint` can ask for.
    """

    count: int
    cpus: int
    memory: int
    gpus: tuple[tuple[str, int], ...] = ()
    features: tuple[str, ...] = ()

    def gpu_count(self, kind: str | None = None) -> int:
        """GPUs of each node: of that type, or of any."""
        return sum(count for name, count in self.gpus if not kind or not name or name == kind)


@dataclass(frozen=True)
class Limit:
    """A limit on what jobs may hold of one resource.

    Attributes:
        per: what is counted.
        resource: Slurm's name of it: `cpu`, `mem` (MiB), `node`, `gres/gpu`, `gres/gpu:h100`; or `QUEUED`.
        most: the most that is allowed.
    """

    per: Per
    resource: str
    most: int


@dataclass(frozen=True)
class Qos:
    """A quality of service (sacctmgr(1)).

    Attributes:
        name: its name.
        max_time: longest walltime in seconds; None for no limit.
        limits: on resources.
        flags: for example `PartitionTimeLimit`, with which a partition's MaxTime does not count.
    """

    name: str
    max_time: int | None = None
    limits: tuple[Limit, ...] = ()
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Association:
    """The right of this user to charge an account (sacctmgr(1)), with what its parents pass down.

    Attributes:
        account: the account.
        partition: the partition that it is for; empty for all.
        qos: the QOS that its jobs may have.
        default_qos: the QOS of its jobs that name none.
        max_time: longest walltime in seconds; None for no limit.
        limits: on resources.
    """

    account: str
    partition: str = ""
    qos: tuple[str, ...] = ()
    default_qos: str = ""
    max_time: int | None = None
    limits: tuple[Limit, ...] = ()


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
        kinds: its nodes, equal ones together.
        max_cpus_per_node: the most CPUs that jobs may have of one node; None for all.
        qos: the QOS whose limits hold for its jobs beside their own.
        accounts, qoses, groups: who may use it; None for everybody.
        denied_accounts, denied_qoses: who may not.
        preempt_mode: what happens to its jobs when others preempt them, for example `CANCEL`; `OFF` for nothing.
        priority_tier: jobs of partitions with a higher one may preempt them.
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
    kinds: tuple[NodeKind, ...] = ()
    max_cpus_per_node: int | None = None
    qos: str = ""
    accounts: tuple[str, ...] | None = None
    qoses: tuple[str, ...] | None = None
    groups: tuple[str, ...] | None = None
    denied_accounts: tuple[str, ...] = ()
    denied_qoses: tuple[str, ...] = ()
    preempt_mode: str = "OFF"
    priority_tier: int = 1

    @property
    def nodes_by_kind(self) -> tuple[NodeKind, ...]:
        """Its nodes, equal ones together; as one kind where only the most that a node has is known."""
        if self.kinds or not self.nodes:
            return self.kinds
        types = self.gpu_types or ("",)
        gpus = ((types[0], self.gpus_per_node),) if self.gpus_per_node else ()
        return (NodeKind(self.nodes, self.cpus_per_node, self.memory_per_node, gpus),)


@dataclass(frozen=True)
class SiteFacts:
    """What one cluster said of itself.

    Attributes:
        cluster: Slurm's ClusterName.
        version: Slurm's version, for example `22.05.8`.
        partitions: in the order that Slurm lists them.
        message_timeout: Slurm's MessageTimeout in seconds (slurm.conf(5), default 10).
        max_array_size: Slurm's MaxArraySize: the numbers of an array's tasks are below it; None when not known.
        asked: when, in seconds since 1970 on this machine's clock.
        enforces: what accounting refuses: words of AccountingStorageEnforce (slurm.conf(5)).
        part_limits: EnforcePartLimits: `NO`, `ANY` or `ALL` of the asked partitions must be able to take a job.
        default_account: the account of jobs that name none.
        associations: this user's; None when accounting did not tell.
        qoses: every QOS; None when accounting did not tell.
        groups: the user's groups on the login host; None when not known.
        licenses: the licenses that Slurm counts; None when not known.
        runtimes: what the login host has to start containers: `pyxis`, `apptainer`, `singularity`; None when not known.
    """

    cluster: str
    version: str
    partitions: tuple[Partition, ...]
    message_timeout: int = 10
    asked: float = 0.0
    enforces: tuple[str, ...] = ()
    part_limits: str = "NO"
    default_account: str = ""
    associations: tuple[Association, ...] | None = None
    qoses: tuple[Qos, ...] | None = None
    groups: tuple[str, ...] | None = None
    licenses: tuple[tuple[str, int], ...] | None = None
    max_array_size: int | None = None
    runtimes: tuple[str, ...] | None = None

    @property
    def partial(self) -> bool:
        """Whether accounting would refuse jobs, and did not tell for which reasons."""
        return bool(self.enforces) and (self.associations is None or self.qoses is None)

    def qos(self, name: str) -> Qos | None:
        """The QOS of that name, or None."""
        return next((each for each in self.qoses or () if each.name == name), None)

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
