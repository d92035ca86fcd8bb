"""`JobEvent`: something that happened to a job, as the store keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from towline.models.job import JobState
from towline.models.values import Json


class EventKind(str, Enum):
    """What happened; the value is the stable word that `--json` prints."""

    CREATED = "created"
    """The job is in the store; nothing of it was sent yet."""
    STATE = "state"
    """It is in another state."""
    WAITING = "waiting"
    """It waits for another reason than before; `details` say whether it is blocked for ever, and the way out."""
    ATTEMPT = "attempt"
    """It has a new attempt, or the newest one has got its Slurm id."""
    TASKS = "tasks"
    """Tasks of an array are in other states."""
    PROGRESS = "progress"
    """It reported how far it is."""
    HEALING = "healing"
    """Something was decided or done about another attempt."""

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class JobEvent:
    """Something that happened to a job. Every event is in the store once, whichever process saw it.

    Attributes:
        number: its place in the store; later events have higher numbers.
        time: when it was written down, in seconds since 1970 on this machine's clock.
        cluster: name of the cluster profile.
        job_id: Towline's id of the job.
        job_name: the user's name for it.
        kind: what happened.
        state: the job's state afterwards.
        attempt: number of the newest attempt afterwards.
        note: one sentence for a person; may be empty.
        details: more, by kind; see `docs/json.md`.
    """

    number: int
    time: float
    cluster: str
    job_id: str
    job_name: str
    kind: EventKind
    state: JobState
    attempt: int = 1
    note: str = ""
    details: Mapping[str, Json] = field(default_factory=dict[str, Json])
