"""`JobRecord` and `Attempt`: what is known about a job, and in what state it is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum

from towline.models.array import format_tasks, parse_tasks
from towline.models.diagnosis import Diagnosis
from towline.models.report import Reported


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
class Component:
    """One component of a heterogeneous job.

    Attributes:
        slurm_id: as Slurm prints it, for example `41+1`.
        slurm_state: Slurm's own state word.
        reason: Slurm's reason word while pending, or for the end.
        nodes: names of its nodes, compressed; empty before the start.
    """

    slurm_id: str
    slurm_state: str = ""
    reason: str = ""
    nodes: str = ""


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
        failed_role: role that failed first, in a job with roles; the rank is the role's then. Empty for others.
        task: number of the array's task that this is about, or whose failure gave the array's code; None for others.
        diagnosis: why it ended; None while nobody has asked, or nothing was found.
        components: those of a heterogeneous job; the first one's state is the job's, and `nodes` has them all.
        cause: class of the failure that ended it, for example `node` or `user`, see `towline.models.diagnosis`; empty
            when it did not fail, or nobody knows.
        evidence: the line that shows the cause.
        bad_nodes: nodes that were found bad, comma-separated.
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
    failed_role: str = ""
    task: int | None = None
    components: tuple[Component, ...] = ()
    diagnosis: Diagnosis | None = None
    cause: str = ""
    evidence: str = ""
    bad_nodes: str = ""


@dataclass(frozen=True)
class Tasks:
    """The tasks of an array, by what became of them; sets of numbers as `towline.models.array` writes them.

    Attributes:
        asked: the array as it was asked for, for example `0-99%8`.
        pending, running, succeeded, failed, cancelled: the tasks in that state; every task is in one of them.
        failures: what is known of failed tasks, for the first `MOST_FAILURES` that were seen.
    """

    asked: str
    pending: str = ""
    running: str = ""
    succeeded: str = ""
    failed: str = ""
    cancelled: str = ""
    failures: tuple[Attempt, ...] = ()

    @classmethod
    def of(cls, asked: str) -> Tasks:
        """An array that was just submitted."""
        return cls(asked, pending=format_tasks(parse_tasks(asked)))

    def to_json(self) -> str:
        """The tasks as text that `from_json` reads."""
        from pydantic import TypeAdapter

        return TypeAdapter(Tasks).dump_json(self).decode()

    @classmethod
    def from_json(cls, text: str) -> Tasks | None:
        """Read what `to_json` wrote; None for empty text."""
        if not text:
            return None
        from pydantic import TypeAdapter

        return TypeAdapter(Tasks).validate_json(text)

    @property
    def numbers(self) -> frozenset[int]:
        """Every task."""
        return parse_tasks(self.asked)

    def by_state(self) -> dict[JobState, frozenset[int]]:
        """The tasks in each state; suspended ones count as running."""
        return {state: parse_tasks(getattr(self, state.value)) for state in TASK_STATES}

    def states(self) -> dict[int, JobState]:
        """The state of each task."""
        return {number: state for state, numbers in self.by_state().items() for number in numbers}

    def with_states(self, states: dict[int, JobState]) -> Tasks:
        """The array with these states for all of its tasks; what was known of failures that are none any more goes."""
        sets = {
            state.value: format_tasks(task for task, found in states.items() if found is state) for state in TASK_STATES
        }
        kept = tuple(each for each in self.failures if states.get(each.task or 0) is JobState.FAILED)
        return replace(self, **sets, failures=kept)


TASK_STATES = (JobState.PENDING, JobState.RUNNING, JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)
"""The states that tasks of an array are counted under."""

MOST_FAILURES = 100
"""Failed tasks of one array whose details are kept; the others are counted, and can be asked for one by one."""


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
        roles: names of its roles; each has a log of its own.
        tasks: the tasks of an array; None for any other job.
        task: number of the task when this is about one task of an array, else None.
        progress: what the job itself said last about how far it is; None when it said nothing.
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
    roles: tuple[str, ...] = ()
    tasks: Tasks | None = None
    task: int | None = None
    progress: Reported | None = None

    @property
    def reference(self) -> str:
        """What names the job to every command: its id, with `_3` behind it for one task of an array."""
        return self.id if self.task is None else f"{self.id}_{self.task}"

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
