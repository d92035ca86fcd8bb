"""`JobRecord` and `Attempt`: what is known about a job, and in what state it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class JobState(str, Enum):
    """Towline's words for a job's state; the value is the stable word that `--json` prints."""

    SUBMITTING = "submitting"
    """Intent is recorded; whether Slurm has the job is not known yet."""
    REFUSED = "refused"
    """Nothing was started: a check or Slurm refused it."""
    PENDING = "pending"
    RUNNING = "running"
    SUSPENDED = "suspended"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"
    """Slurm uses a word that is not known here; watching goes on."""

    @property
    def ended(self) -> bool:
        """Whether the job will never run again."""
        return self in _ENDED

    def __str__(self) -> str:
        return self.value


_ENDED = frozenset({JobState.REFUSED, JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED})


@dataclass(frozen=True)
class Attempt:
    """One submission to Slurm, or one start after a requeue.

    Attributes:
        number: 1 for the first.
        slurm_id: Slurm's job id; empty while not known.
        slurm_cluster: cluster name of a federation or multi-cluster answer (`-M`), else empty.
        slurm_state: Slurm's own state word, for example `NODE_FAIL`; empty while not known.
        reason: Slurm's reason word while pending, or for the end.
        nodes: names of the nodes, compressed as Slurm prints them; empty before the start.
        submitted, started, ended: seconds since 1970 on the controller's clock; None when not known.
        exit_code: the job's exit code, 0 to 255; None when there is none.
        exit_source: `job` when the job itself recorded the code, `slurm` when it is accounting's
            (22.05 stores codes modulo 128), empty without a code.
        failed_rank: rank whose failure gave the code; None when not known.
    """

    number: int = 1
    slurm_id: str = ""
    slurm_cluster: str = ""
    slurm_state: str = ""
    reason: str = ""
    nodes: str = ""
    submitted: int | None = None
    started: int | None = None
    ended: int | None = None
    exit_code: int | None = None
    exit_source: str = ""
    failed_rank: int | None = None


@dataclass(frozen=True)
class JobRecord:
    """A job as the store knows it.

    Attributes:
        id: Towline's id, see `towline.models.ids`.
        name: the user's name for it; not unique.
        cluster: name of the cluster profile.
        state: Towline's word for the state.
        directory: absolute path of the job directory on the cluster.
        created: seconds since 1970 on this machine's clock.
        attempts: oldest first; never empty once submitted.
        note: one sentence about the state for a person (why it waits, why it ended), may be empty.
        command: the command as typed, for lists.
    """

    id: str
    name: str
    cluster: str
    state: JobState
    directory: str
    created: float
    attempts: tuple[Attempt, ...] = field(default=())
    note: str = ""
    command: str = ""

    @property
    def last(self) -> Attempt:
        """The newest attempt."""
        return self.attempts[-1] if self.attempts else Attempt()

    @property
    def exit_code(self) -> int | None:
        """The job's own exit code, None while it has none."""
        return self.last.exit_code

    @property
    def slurm_ids(self) -> tuple[str, ...]:
        """Every Slurm id the job has had, oldest first."""
        return tuple(dict.fromkeys(attempt.slurm_id for attempt in self.attempts if attempt.slurm_id))
