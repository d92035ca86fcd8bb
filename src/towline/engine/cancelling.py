"""Cancelling: final, idempotent, and confirmed."""

from __future__ import annotations

import asyncio
import dataclasses
import time

from towline.engine.outcomes import expect_done, last_words
from towline.engine.session import Session
from towline.engine.submitting.intent import submission_of
from towline.engine.submitting.recovery import look_up
from towline.engine.watching import observation
from towline.engine.watching.pace import Pace
from towline.models.errors import SlurmUnavailable
from towline.models.ids import attempt_token
from towline.models.job import JobRecord, JobState
from towline.slurm.calls import cancel_call
from towline.slurm.cancel import CancelAnswer, parse_cancel
from towline.slurm.parse import SlurmId
from towline.slurm.submission import ScriptExit, environment_error

CONFIRM_SECONDS = 60.0
"""How long the end of a cancelled job is awaited: tasks have KillWait (slurm.conf(5), 30 s by default) to stop."""

AGAIN_SECONDS = 10.0
"""After so long Slurm is told again to end a job that has not ended."""


async def cancel(session: Session, record: JobRecord, *, confirm: bool = True) -> JobRecord:
    """Cancel a job, and look until it has ended or `CONFIRM_SECONDS` have passed; once without `confirm`.

    Returns:
        The job; one that had ended before stays as it was. Its state is not an end when Slurm is still at it.

    Raises:
        SlurmUnavailable: Slurm could not be told. The job is marked, so that no attempt starts any more.
    """
    if record.state.ended:
        return record
    if record.state is JobState.SUBMITTING:
        found = await look_up(session, submission_of(session, record), withdraw=True)
        if found and found.exit is ScriptExit.WITHDRAWN:
            return _withdrawn(session, record)
    answer = await _tell(session, record)
    if record.state is JobState.SUBMITTING and not answer.told:
        return _withdrawn(session, record)  # of an array's task only this task: its mark keeps it from starting
    return await _confirmed(session, record, CONFIRM_SECONDS if confirm else 0.0)


async def _tell(session: Session, record: JobRecord) -> CancelAnswer:
    attempt = record.last
    ids = [SlurmId(each.slurm_id.partition("_")[0], each.slurm_cluster) for each in record.attempts if each.slurm_id]
    token = attempt_token(record.name, record.id, attempt.number)
    outcome = await session.call(cancel_call(record.directory, token, ids, session.profile.setup, record.task))
    if error := environment_error(outcome.exit_code or 0, last_words(outcome.stderr)):
        raise error
    answer = parse_cancel(expect_done(outcome, "cancelling the job").decode("utf-8", "replace"))
    if answer.failed:
        raise SlurmUnavailable(
            f"Slurm could not be told to cancel job {record.id}",
            why=answer.failed,
            fix="Cancel it again in a while; it is marked as cancelled, so that nothing of it starts meanwhile.",
        )
    return answer


def _withdrawn(session: Session, record: JobRecord) -> JobRecord:
    """A job that Slurm never had: marked on the cluster, so that a submission still on its way starts nothing."""
    done = dataclasses.replace(record, state=JobState.CANCELLED, note="cancelled before Slurm had it")
    if record.task is None:
        session.store.save(done)
    return done


async def _confirmed(session: Session, record: JobRecord, patience: float) -> JobRecord:
    pace, until = Pace(0.2, 5.0), time.monotonic() + patience
    again = time.monotonic() + AGAIN_SECONDS
    while True:
        (record,) = await observation.poll(session, [record])
        if record.state.ended or time.monotonic() >= until:
            return record
        if time.monotonic() > again:
            # A job that was just being put back into the queue came back after it was told to end.
            await _tell(session, record)
            again = time.monotonic() + AGAIN_SECONDS
        await asyncio.sleep(pace.quiet())
