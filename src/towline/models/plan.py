"""`Plan`: everything a submission will do, decided before anything is sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from towline.models.array import parse_tasks
from towline.models.code import Code
from towline.models.spec import JobSpec


class Verdict(str, Enum):
    """Outcome of one check; the value is the stable word that `--json` prints."""

    OK = "ok"
    FAILS = "fails"
    CANNOT_TELL = "cannot-tell"
    ON_SUBMIT = "on-submit"
    """Checked on the login host as the first step of the submission, before anything is changed."""


@dataclass(frozen=True)
class Check:
    """One thing that must hold before a job is sent.

    Attributes:
        name: stable word, for example `partition`.
        verdict: what was found.
        evidence: the facts behind it, in one sentence.
        fix: what to do when it fails.
    """

    name: str
    verdict: Verdict
    evidence: str
    fix: str = ""


@dataclass(frozen=True)
class Waits:
    """How long earlier jobs of this user's waited, which asked for about as much of the same partitions.

    Attributes:
        jobs: how many.
        median, longest: seconds between submission and start.
    """

    jobs: int
    median: int
    longest: int


@dataclass(frozen=True)
class Estimate:
    """When the job would start, from what is known.

    Attributes:
        start_in: seconds until the start that Slurm expects now (`sbatch --test-only`); None when it does not say.
        nodes: the nodes that it would take then.
        partition: the partition; empty where Slurm does not say.
        fitting: how many nodes have what each of the job's nodes needs.
        idle: how many of these nobody uses.
        shared: how many of these are used in part.
        waits: what earlier jobs tell; None when there are none.
    """

    start_in: int | None = None
    nodes: str = ""
    partition: str = ""
    fitting: int = 0
    idle: int = 0
    shared: int = 0
    waits: Waits | None = None


@dataclass(frozen=True)
class PlannedImage:
    """An image of a registry that the job starts from a file of the cluster's cache.

    Attributes:
        reference: the image as the job names it.
        path: the file.
        arch: the architecture of the nodes, as `uname -m` says it.
        digest: what the registry says that it is now; empty when it was not asked.
        ready: whether the file is there; else a job makes it first.
        owner: the other user in a shared cache whose file it is; empty for one's own.
        place: the directory with the records of its import, where that is not the file's.
    """

    reference: str
    path: str
    arch: str
    digest: str = ""
    ready: bool = False
    owner: str = ""
    place: str = ""


@dataclass(frozen=True)
class PlannedInput:
    """Data that lies elsewhere, and its copy on the shared file system.

    Attributes:
        uri: the data as the job names it.
        target: where the job finds it.
        path: the copy, a file or a directory.
        version: a hash of what the source has now; empty when it did not say.
        size: bytes, as far as they are known.
        ready: whether the copy is there; else a job makes it first.
        most: bytes that it may have for the job to bring it itself, after its start; 0 for any number, None when it
            does not.
    """

    uri: str
    target: str
    path: str
    version: str = ""
    size: int = 0
    ready: bool = False
    most: int | None = None


@dataclass(frozen=True)
class Plan:
    """What `submit` sends, byte for byte what `--dry-run` shows.

    Attributes:
        job_id: the id the job will have.
        token: Slurm's job name of the first attempt.
        spec: the spec with defaults filled in.
        directory: absolute path of the job directory.
        files: path below the directory → content.
        checks: every check with its verdict.
        required_paths: paths that must exist on the cluster.
        sbatch: the `sbatch` command as it runs there.
        notes: what was decided for the user, in sentences.
        facts_asked: when the site told of itself, in seconds since 1970 on this machine's clock; 0 for not known.
        estimate: when the job would start; None when the cluster was not asked.
        code: the working tree that is sent before the job, if it is not there yet; None for none.
        images: the registry's images that it starts from files.
        inputs: the data from elsewhere that it gets copies of.
        waits_for: the jobs that it waits for, as `sbatch --dependency` takes them; those that
            make images and copies of data come on top.
    """

    job_id: str
    token: str
    spec: JobSpec
    directory: str
    files: Mapping[str, bytes]
    checks: tuple[Check, ...]
    required_paths: tuple[str, ...]
    sbatch: tuple[str, ...]
    notes: tuple[str, ...] = ()
    facts_asked: float = 0.0
    estimate: Estimate | None = None
    code: Code | None = None
    images: tuple[PlannedImage, ...] = ()
    inputs: tuple[PlannedInput, ...] = ()
    waits_for: str = ""

    @property
    def script(self) -> str:
        """The batch script."""
        return self.files["script/batch"].decode()

    @property
    def tasks(self) -> int:
        """How many allocations of this size the job has: the tasks of an array, else 1."""
        return len(parse_tasks(self.spec.array)) if self.spec.array else 1

    @property
    def nodes(self) -> int:
        """Nodes of one allocation."""
        return self.spec.resources.nodes

    @property
    def gpus(self) -> int:
        """GPUs of one allocation, those of all components of a heterogeneous job."""
        parts = [each.resources for each in self.spec.components] or [self.spec.resources]
        return sum(part.nodes * part.gpus_per_node for part in parts)

    @property
    def gpu_hours(self) -> float | None:
        """GPUs times hours that the job may use at most; None without a walltime."""
        return self._hours_of(self.gpus)

    @property
    def node_hours(self) -> float | None:
        """Nodes times hours that the job may use at most; None without a walltime."""
        return self._hours_of(self.nodes)

    def _hours_of(self, count: int) -> float | None:
        time = self.spec.resources.time
        return None if time is None else self.tasks * count * time / 3600

    @property
    def failures(self) -> tuple[Check, ...]:
        """The checks that fail."""
        return tuple(check for check in self.checks if check.verdict is Verdict.FAILS)
