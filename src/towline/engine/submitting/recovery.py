"""Submissions whose answer was lost: found again, or withdrawn for good."""

from __future__ import annotations

import dataclasses
import time

from towline.engine.session import CALL_SECONDS, Session
from towline.engine.submitting.intent import LOST, submission_of
from towline.engine.submitting.presence import is_submitting
from towline.models.job import Attempt, JobRecord, JobState
from towline.remote.base import Ending
from towline.slurm.calls import Submission, find_call
from towline.slurm.submission import ScriptExit, SubmitAnswer, parse_submission

WITHDRAWN = "the submission was cut off before Slurm had the job; it is withdrawn and can be made again"


async def recover(session: Session, record: JobRecord) -> None:
    """Find out what became of a submission that left no answer where a poll would see it.

    A job that Slurm has is taken over. When there is none, and nobody is at it any more, it is withdrawn on the
    cluster, so that a straggler starts nothing. While that is open, nothing changes.
    """
    attended = is_submitting(session.store.directory, record.id)
    if attended is not True and record.note != LOST:  # its client died before it could say so
        session.store.save(dataclasses.replace(record, note=LOST))
    submission = submission_of(session, record)
    given_up = attended is False or (attended is None and _had_its_time(record, submission))
    answer = await look_up(session, submission, withdraw=given_up)
    if answer is None:
        return
    if answer.slurm:
        session.store.save(taken_over(record, answer))
    elif answer.exit is ScriptExit.WITHDRAWN or (_never_arrived(answer) and _had_its_time(record, submission)):
        session.store.save(dataclasses.replace(record, state=JobState.REFUSED, note=WITHDRAWN))


async def settle_contest(session: Session, record: JobRecord) -> None:
    """End a second job that came of the newest attempt, and follow the one that has it."""
    answer = await look_up(session, submission_of(session, record), withdraw=False)
    if answer and answer.slurm and answer.slurm.id != record.last.slurm_id:
        session.store.save(taken_over(record, answer))


async def look_up(session: Session, submission: Submission, *, withdraw: bool) -> SubmitAnswer | None:
    """What the cluster says of an attempt; None when it could not be asked."""
    outcome = await session.call(find_call(submission, session.profile.setup, withdraw=withdraw))
    if outcome.ending is not Ending.DONE or outcome.exit_code is None:
        return None
    return parse_submission(
        outcome.exit_code, outcome.stdout.decode("utf-8", "replace"), outcome.stderr.decode("utf-8", "replace")
    )


def taken_over(record: JobRecord, answer: SubmitAnswer) -> JobRecord:
    """The job with Slurm's id for its newest attempt."""
    slurm = answer.slurm
    attempt = Attempt(record.last.number, slurm.id, slurm.cluster) if slurm else record.last
    return dataclasses.replace(record, state=JobState.PENDING, attempts=(*record.attempts[:-1], attempt), note="")


def _never_arrived(answer: SubmitAnswer) -> bool:
    """Whether there is no job, and the cluster's disk did not even let that be written down."""
    return answer.exit in (ScriptExit.NO_SPACE, ScriptExit.STAGING)


def _had_its_time(record: JobRecord, submission: Submission) -> bool:
    """Whether the call that submits has ended by now; both times are this machine's."""
    return time.time() - record.created > CALL_SECONDS + 2 * submission.message_timeout
