"""Asking the cluster why a job waits."""

from __future__ import annotations

import contextlib

from towline.engine.outcomes import check_ending
from towline.engine.session import Session
from towline.engine.watching import observation
from towline.engine.watching.explaining import Case, explain
from towline.models.errors import RemoteFault, TowlineError
from towline.models.job import JobRecord, JobState
from towline.models.site import SiteFacts
from towline.models.waiting import Waiting
from towline.slurm.calls import queue_call
from towline.slurm.parse import SlurmId
from towline.slurm.queue import parse_queue
from towline.slurm.submission import ScriptExit


async def waiting(session: Session, record: JobRecord) -> Waiting | None:
    """Why a job waits, with what is behind it; None for a job that does not wait in Slurm's queue.

    One round trip, and one more when nothing is known of the site.

    Raises:
        Unreachable, OutcomeUnknown, WaitTimedOut, RemoteFault: the cluster could not be asked.
    """
    last = record.last
    if record.state is not JobState.PENDING or not last.slurm_id:
        return None
    slurm = SlurmId(last.slurm_id, last.slurm_cluster)
    outcome = await session.call(queue_call(slurm, record.directory, session.profile.setup))
    check_ending(outcome, "asking what the job waits for")
    if outcome.exit_code == ScriptExit.STRANGER:
        return None
    try:
        seen = parse_queue(outcome.stdout.decode("utf-8", "replace"))
    except ValueError as error:
        raise RemoteFault(
            "the queue could not be looked at", why=str(error), fix="Try again; `towline status` shows what is known."
        ) from None
    site: SiteFacts | None = None
    with contextlib.suppress(TowlineError):
        site, _ = await observation.site_facts(session)
    jobs = {
        slurm_id: found[0]
        for _, slurm_id, _ in seen.dependencies
        if (found := session.store.by_slurm_id(slurm_id, session.profile.name))
    }
    return explain(Case(record, session.store.spec(record.id), seen, site, jobs))
