"""Pausing a job and letting it go on."""

from __future__ import annotations

from towline.engine.outcomes import expect_done, last_words
from towline.engine.session import Session
from towline.engine.watching import observation
from towline.models.errors import NotFound, SlurmRefused, UsageError
from towline.models.job import JobRecord, JobState
from towline.slurm.calls import pause_call
from towline.slurm.parse import SlurmId
from towline.slurm.submission import ScriptExit

_CANNOT = 60


async def pause(session: Session, record: JobRecord) -> JobRecord:
    """Hold a job that waits; suspend one that runs, or have one that resumes from checkpoints stop and wait.

    Raises:
        UsageError: it has ended, or Slurm does not have it yet.
        SlurmRefused: Slurm did not do it.
        NotFound: Slurm has another job under its id.
    """
    return await _told(session, record, "pause")


async def resume(session: Session, record: JobRecord) -> JobRecord:
    """Let a paused job go on.

    Raises:
        UsageError: it has ended, or Slurm does not have it yet.
        SlurmRefused: Slurm did not do it.
        NotFound: Slurm has another job under its id.
    """
    return await _told(session, record, "resume")


async def _told(session: Session, record: JobRecord, wish: str) -> JobRecord:
    (record,) = await observation.poll(session, [record])
    attempt = record.last
    if record.state.ended or not attempt.slurm_id:
        raise UsageError(f"job {record.reference} cannot be {wish}d: it is {record.state}", why=record.note)
    waits, resumes = record.state is JobState.PENDING, session.store.spec(record.id).resume is not None
    slurm = SlurmId(attempt.slurm_id, attempt.slurm_cluster)
    call = pause_call(record.directory, wish, slurm, waits=waits, resumes=resumes, setup=session.profile.setup)
    outcome = await session.call(call)
    said = last_words(outcome.stderr)
    cannot = SlurmRefused(
        f"job {record.reference} runs, and this site lets users suspend nothing",
        why=said,
        fix="A job that says how it resumes (--checkpoints) is stopped instead, and goes on later; or cancel it.",
    )
    refused = SlurmRefused(f"Slurm did not {wish} job {record.reference}", why=said, fix="See `towline status`.")
    given_away = NotFound(
        f"job {record.reference} is not in Slurm any more",
        why=f"Slurm has given its id {attempt.slurm_id} to another job of yours, which was left alone.",
        fix=f"`towline status {record.reference}` says how it ended, as far as that is known.",
    )
    failures = {_CANNOT: cannot, 1: refused, ScriptExit.STRANGER: given_away}
    expect_done(outcome, f"telling Slurm to {wish} the job", failures)
    (record,) = await observation.poll(session, [record])
    return record
