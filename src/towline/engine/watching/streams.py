"""Streams of what is known: events as they are written down, all jobs as they change, and a job at regular times."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from towline.engine.session import Session
from towline.engine.watching import observation
from towline.engine.watching.poller import Poller
from towline.engine.watching.waiting import PASSING
from towline.models.event import JobEvent
from towline.models.job import JobRecord

_BATCH = 500


@dataclass(frozen=True)
class Snapshot:
    """One job at one time.

    Attributes:
        time: seconds since 1970.
        record: the job as it is known.
        heard: when the cluster was heard of last, in seconds since 1970; 0 for never.
        trouble: why there was no answer; empty when there was one.
    """

    time: float
    record: JobRecord
    heard: float
    trouble: str = ""


async def events(
    session: Session,
    jobs: Sequence[JobRecord] = (),
    *,
    after: int = 0,
    follow: bool = False,
    interval: float | None = None,
) -> AsyncIterator[JobEvent]:
    """What has happened to jobs, oldest first; with `follow` also what happens from now on.

    Following goes on while the cluster does not answer. It ends when the jobs that were named have ended.

    Args:
        session: the cluster.
        jobs: the jobs; all of the cluster when empty.
        after: the number of the last event that is known.
        follow: go on.
        interval: seconds between two looks at the queue; the profile's when not given.
    """
    ids = [job.id for job in jobs] or None
    if not follow:
        for event in _written(session, ids, after):
            yield event
        return
    with session.part(Poller).attending(interval):
        over = False
        while not over:
            over = ids is not None and all(_has_ended(session, job_id) for job_id in ids)
            for event in _written(session, ids, after):
                after = event.number
                yield event
            if not over:
                await _keep_up(session)
                await asyncio.sleep(session.part(Poller).pause())


def _written(session: Session, ids: Sequence[str] | None, after: int) -> list[JobEvent]:
    found: list[JobEvent] = []
    while batch := session.store.events(session.profile.name, after=after, jobs=ids, limit=_BATCH):
        found += batch
        after = batch[-1].number
        if len(batch) < _BATCH:
            break
    return found


def _has_ended(session: Session, job_id: str) -> bool:
    record = session.store.job(job_id)
    return record is None or record.state.ended


async def lists(
    session: Session, *, everything: bool = False, interval: float | None = None
) -> AsyncIterator[tuple[JobRecord, ...]]:
    """The cluster's jobs after each change of one of them; those that have not ended, or all.

    Without `everything` it ends after the list without jobs. It goes on while the cluster does not answer.

    Args:
        session: the cluster.
        everything: also jobs that have ended.
        interval: seconds between two looks at the queue; the profile's when not given.
    """
    shown: tuple[JobRecord, ...] | None = None
    with session.part(Poller).attending(interval):
        while True:
            await _keep_up(session)
            records = session.store.jobs(session.profile.name, everything=everything)
            if records != shown:
                shown = records
                yield records
            if not records and not everything:
                return
            await asyncio.sleep(session.part(Poller).pause())


async def snapshots(session: Session, jobs: Sequence[JobRecord], every: float) -> AsyncIterator[Snapshot]:
    """Each job at once and then at regular times, until it has ended, whatever happens to the connection.

    Args:
        session: the cluster.
        jobs: the jobs.
        every: seconds between two times.
    """
    known = {job.reference: job for job in jobs}
    open_ones = list(known)
    with session.part(Poller).attending(every):
        while open_ones:
            trouble = await _look(session, known)
            now, heard = time.time(), session.part(Poller).heard
            for reference in tuple(open_ones):
                record = known[reference]
                if record.state.ended:
                    open_ones.remove(reference)
                yield Snapshot(now, record, heard, trouble)
            if open_ones:
                await _pass(session, known, open_ones, now + every)


async def _pass(session: Session, known: dict[str, JobRecord], open_ones: Sequence[str], until: float) -> None:
    """Wait until the next time; the end of all jobs ends it sooner."""
    while (left := until - time.time()) > 0:
        await asyncio.sleep(min(left, max(1.0, session.part(Poller).pause())))
        await _keep_up(session)
        _read(session, known)
        if all(known[reference].state.ended for reference in open_ones):
            return


async def _look(session: Session, known: dict[str, JobRecord]) -> str:
    """Bring what is known up to date; the result is why that was not possible. Tasks of arrays are not in the store."""
    trouble = await _keep_up(session)
    _read(session, known)
    tasks = [record for record in known.values() if record.task is not None and not record.state.ended]
    try:
        known |= {record.reference: record for record in await observation.poll(session, tasks)}
    except PASSING as error:
        trouble = error.why or error.what
    return trouble


def _read(session: Session, known: dict[str, JobRecord]) -> None:
    for reference, record in known.items():
        if record.task is None and not record.state.ended:
            known[reference] = session.store.job(record.id) or record


async def _keep_up(session: Session) -> str:
    try:
        await session.part(Poller).keep_up()
    except PASSING as error:
        return error.why or error.what
    return ""
