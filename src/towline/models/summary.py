"""`JobSummary`: what a job asks for, what it has used, and what it waits for."""

from __future__ import annotations

from dataclasses import dataclass

from towline.models.waiting import Waiting


@dataclass(frozen=True)
class JobSummary:
    """A job in figures.

    Attributes:
        nodes: nodes of its allocation, of one task's for an array.
        gpus: GPUs of it in all.
        cpus: CPUs of it in all; None when the site decides.
        time: its walltime in seconds; None for none.
        partition: where it may go; empty for the site's default.
        account, qos: as they were asked for; empty for the site's default.
        waited: seconds that its attempts waited in the queue; None when not known.
        ran: seconds that they ran; None when not known.
        gpu_hours: GPUs times hours that they had; None when not known, as for arrays.
        gpu_hours_most: the same for the whole walltime of one attempt, all tasks of an array together.
        waiting: why it waits; None when it does not, or when that could not be asked.
    """

    nodes: int = 1
    gpus: int = 0
    cpus: int | None = None
    time: int | None = None
    partition: tuple[str, ...] = ()
    account: str = ""
    qos: str = ""
    waited: int | None = None
    ran: int | None = None
    gpu_hours: float | None = None
    gpu_hours_most: float | None = None
    waiting: Waiting | None = None
