"""`Plan`: everything a submission will do, decided before anything is sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

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

    @property
    def script(self) -> str:
        """The batch script."""
        return self.files["script/batch"].decode()

    @property
    def gpu_hours(self) -> float | None:
        """GPUs times hours that the job may use at most; None without a walltime."""
        wanted = self.spec.resources
        return None if wanted.time is None else wanted.nodes * wanted.gpus_per_node * wanted.time / 3600

    @property
    def node_hours(self) -> float | None:
        """Nodes times hours that the job may use at most; None without a walltime."""
        wanted = self.spec.resources
        return None if wanted.time is None else wanted.nodes * wanted.time / 3600

    @property
    def failures(self) -> tuple[Check, ...]:
        """The checks that fail."""
        return tuple(check for check in self.checks if check.verdict is Verdict.FAILS)
