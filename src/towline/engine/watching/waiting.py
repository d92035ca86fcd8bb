"""Waiting for jobs without their logs: whatever happens to the connection, and however long the queue is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

from towline.engine.events import NoAnswer, StateChanged
from towline.engine.session import Session
from towline.engine.watching.poller import Poller
from towline.models.errors import OutcomeUnknown, RemoteFault, SlurmUnavailable, TowlineError, Unreachable, WaitTimedOut
from towline.models.job import JobRecord

PASSING = (Unreachable, OutcomeUnknown, WaitTimedOut, RemoteFault, SlurmUnavailable)
"""Errors after which a look is made again; the job goes on meanwhile."""


async def changes(
    session: Session, record: JobRecord, *, patience: float | None = None, interval: float | None = None
) -> AsyncIterator[StateChanged | NoAnswer]:
    """The job whenever something about it has changed, until it has ended.

    Args:
        session: the cluster.
        record: the job as it is known.
        patience: seconds without any answer from the cluster until this gives up; never when not given.
        interval: seconds between two looks at the queue; the profile's when not given.

    Raises:
        Unreachable, OutcomeUnknown, WaitTimedOut, RemoteFault: there was no answer for `patience` seconds.
    """
    heard, silent = time.monotonic(), False
    with session.part(Poller).following(record, files=True, interval=interval) as interest:
        while not record.state.ended:
            before = record
            try:
                record = await session.part(Poller).turn(interest)
                heard, silent = time.monotonic(), False
            except PASSING as error:
                _check_patience(error, time.monotonic() - heard, patience)
                if not silent:
                    yield NoAnswer(error.why or error.what)
                silent = True
            if record != before:
                yield StateChanged(record)
            if not record.state.ended:
                await asyncio.sleep(session.part(Poller).pause())


def _check_patience(error: TowlineError, seconds: float, patience: float | None) -> None:
    if patience is not None and seconds > patience:
        raise error
