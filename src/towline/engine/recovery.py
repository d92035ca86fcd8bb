"""Submissions whose answer was lost: found again, or withdrawn for good."""

from __future__ import annotations

import dataclasses
import time

from towline.engine.session import CALL_SECONDS, Session
from towline.engine.submission import LOST, submission_of
from towline.models.job import Attempt, JobRecord, JobState
from towline.remote.base import Ending
from towline.slurm.calls import Submission, cancel_call, find_call
from towline.slurm.submission import ScriptExit, parse_submission


async def recover(session: Session, record: JobRecord) -> None:
    """Find out what became of a submission that left no answer where a poll would see it.

    A job that Slurm has is taken over. When there is none, and the submission has had all the time it can
    take, it is withdrawn: its directory is marked as cancelled, so that a straggler starts nothing. While that is
    open, nothing changes.
    """
    submission = submission_of(session, record)
    if record.note != LOST:  # its client died before it could say so
        session.store.save(dataclasses.replace(record, note=LOST))
    outcome = await session.call(find_call(submission, session.profile.setup))
    if outcome.ending is not Ending.DONE or outcome.exit_code is None:
        return
    answer = parse_submission(
        outcome.exit_code, outcome.stdout.decode("utf-8", "replace"), outcome.stderr.decode("utf-8", "replace")
    )
    if answer.slurm:
        attempt = Attempt(record.last.number, answer.slurm.id, answer.slurm.cluster)
        session.store.save(dataclasses.replace(record, state=JobState.PENDING, attempts=(attempt,), note=""))
    elif answer.exit is ScriptExit.NO_JOB and _had_its_time(record, submission):
        await _withdraw(session, record, submission)


def _had_its_time(record: JobRecord, submission: Submission) -> bool:
    """Whether the call that submits has ended by now; both times are this machine's."""
    return time.time() - record.created > CALL_SECONDS + 2 * submission.message_timeout


async def _withdraw(session: Session, record: JobRecord, submission: Submission) -> None:
    call = cancel_call(record.directory, submission.token, (), session.profile.setup)
    outcome = await session.call(call)
    if outcome.ok:
        note = "the submission was cut off before Slurm had the job; it is withdrawn and can be made again"
        session.store.save(dataclasses.replace(record, state=JobState.REFUSED, note=note))
