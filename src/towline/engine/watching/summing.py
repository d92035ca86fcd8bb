"""A job in figures: what it asks for, what it has used, and what it waits for."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import replace

from towline.engine.session import Session
from towline.engine.watching.pending import waiting
from towline.models.array import parse_tasks
from towline.models.errors import TowlineError
from towline.models.job import Attempt, JobRecord, JobState
from towline.models.spec import JobSpec
from towline.models.summary import JobSummary


async def summary(session: Session, record: JobRecord) -> JobSummary:
    """The job in figures, with a look at the queue when it waits; what stands in the way of that is no error."""
    figures = summed(record, session.store.spec(record.id), time.time())
    with contextlib.suppress(TowlineError):
        return replace(figures, waiting=await waiting(session, record))
    return figures


def summed(record: JobRecord, spec: JobSpec, now: float) -> JobSummary:
    """The figures. Pure.

    Args:
        record: the job.
        spec: what it asks for.
        now: seconds since 1970; what runs is counted until then.
    """
    parts = [each.resources for each in spec.components] or [spec.resources]
    gpus = sum(part.nodes * part.gpus_per_node for part in parts)
    cpus = [part.nodes * part.tasks_per_node * part.cpus_per_task for part in parts if part.cpus_per_task]
    tasks = len(parse_tasks(spec.array)) if spec.array and record.task is None else 1
    ran = None if tasks > 1 else _ran(record, now)
    limit = spec.resources.time
    return JobSummary(
        nodes=sum(part.nodes for part in parts),
        gpus=gpus,
        cpus=sum(cpus) if len(cpus) == len(parts) else None,
        time=limit,
        partition=spec.partition,
        account=spec.account or "",
        qos=spec.qos or "",
        waited=_waited(record.attempts, now, waits=record.state is JobState.PENDING),
        ran=ran,
        gpu_hours=None if ran is None else round(gpus * ran / 3600, 4),
        gpu_hours_most=None if limit is None else round(tasks * gpus * limit / 3600, 4),
    )


def _waited(attempts: Sequence[Attempt], now: float, *, waits: bool) -> int | None:
    spans = [each.started - each.submitted for each in attempts if each.started and each.submitted]
    last = attempts[-1] if attempts else Attempt()
    if waits and last.submitted and not last.started:
        spans.append(int(now) - last.submitted)
    return sum(max(span, 0) for span in spans) if spans else None


def _ran(record: JobRecord, now: float) -> int | None:
    """Without the attempts of which no end is known any more."""
    spans = [each.ended - each.started for each in record.attempts if each.started and each.ended]
    last = record.last
    if last.started and not last.ended and record.state in (JobState.RUNNING, JobState.SUSPENDED):
        spans.append(int(now) - last.started)
    return sum(max(span, 0) for span in spans) if spans else None
