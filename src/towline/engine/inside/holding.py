"""An allocation for a person's shell: a job that does nothing but wait, for as long as a lease on it is renewed.

It is a job like any other, with its image, its checks and its walltime. The shell is a step beside it. When the client
dies, or its connection, or the login host, nobody renews the lease, and the job ends by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from towline.engine import cancelling
from towline.engine.session import Session
from towline.launch.inside import keeper
from towline.models.errors import TowlineError
from towline.models.job import JobRecord, JobState
from towline.remote.base import Operation

RENEWAL = 15.0
"""Seconds between two renewals; the job waits for two minutes, see `launch/scripts/keep.sh`."""
_RENEW = 'printf "%s\\n" "$2" >"$1/.lease" && mv -f "$1/.lease" "$1/lease"'
_RELEASE = ': >"$1/released"'
_SECONDS = 30.0


def allocation() -> dict[str, object]:
    """The fields of `JobSpec` that make a job an allocation that is held."""
    return {"shell": keeper(), "restart": "never"}


@asynccontextmanager
async def held(session: Session, record: JobRecord) -> AsyncGenerator[None, None]:
    """Renew the lease; behind the block the job is let go, or cancelled where that cannot be told to it."""
    renewing = asyncio.ensure_future(_renew(session, record))
    try:
        yield
    finally:
        renewing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await renewing
        await asyncio.shield(asyncio.ensure_future(_let_go(session, record)))


async def _renew(session: Session, record: JobRecord) -> None:
    while True:
        with contextlib.suppress(TowlineError):  # the next time will tell, or the job ends
            words = (record.directory, secrets.token_hex(8))
            await session.run(Operation("renew", _RENEW, words, timeout=_SECONDS, repeats=True))
        await asyncio.sleep(RENEWAL)


async def _let_go(session: Session, record: JobRecord) -> None:
    """One that runs ends well; one that waits is cancelled."""
    known = session.store.job(record.id) or record
    if known.state is JobState.RUNNING:
        words = (record.directory,)
        outcome = await session.run(Operation("release", _RELEASE, words, timeout=_SECONDS, repeats=True))
        if outcome.ok:
            return
    await cancelling.cancel(session, known, confirm=False)
