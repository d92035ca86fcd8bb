"""Pausing a job and letting it go on."""

from __future__ import annotations

from towline.engine.outcomes import expect_done, last_words
from towline.engine.session import Session
from towline.engine.watching import observation
from towline.models.errors import NotFound, SlurmRefused, TowlineError, UsageError
from towline.models.job import JobRecord, JobState
from towline.remote.base import Outcome
from towline.slurm.calls import pause_call
from towline.slurm.parse import SlurmId
from towline.slurm.submission import ScriptExit

_CANNOT, _REFUSED = 60, 1
_TRIES = 3


async def pause(session: Session, record: JobRecord) -> JobRecord:
    """Hold a job that waits; suspend one that runs, or have one that resumes from checkpoints stop and wait.

    Raises:
        UsageError: it has ended, or Slurm does not have it yet.
        SlurmRefused: Slurm did not do it.
        NotFound: Slurm has another job under its id.
    """
    return await _told(session, record, "pause")


async def resume(session: Session, record: JobRecord) -> JobRecord:
    """Let a paused job go on; one that is not paused stays as it is.

    Raises:
        UsageError: it has ended, or Slurm does not have it yet.
        SlurmRefused: Slurm did not do it.
        NotFound: Slurm has another job under its id.
    """
    return await _told(session, record, "resume")


async def _told(session: Session, record: JobRecord, wish: str) -> JobRecord:
    (record,) = await observation.poll(session, [record])
    if record.state.ended or not record.last.slurm_id:
        raise UsageError(f"job {record.reference} cannot be {wish}d: it is {record.state}", why=record.note)
    if wish == "resume" and record.state is JobState.RUNNING and not _waits(record, wish):
        return record  # it goes on already; Slurm would only say that nobody may
    outcome, record = await _tell_as_it_is(session, record, wish)
    if outcome.exit_code == _REFUSED and wish == "resume" and record.state is JobState.RUNNING:
        return record  # another client was faster
    said = last_words(outcome.stderr)
    cannot = SlurmRefused(
        f"job {record.reference} runs, and this site lets users suspend nothing",
        why=said,
        fix="A job that says how it resumes (--checkpoints) is stopped instead, and goes on later; or cancel it.",
    )
    refused = SlurmRefused(f"Slurm did not {wish} job {record.reference}", why=said, fix="See `towline status`.")
    given_away = NotFound(
        f"job {record.reference} is not in Slurm any more",
        why=f"Slurm has given its id {record.last.slurm_id} to another job of yours, which was left alone.",
        fix=f"`towline status {record.reference}` says how it ended, as far as that is known.",
    )
    over = UsageError(f"job {record.reference} cannot be {wish}d: it was cancelled", fix="Submit it again.")
    failures: dict[int, TowlineError] = {_CANNOT: cannot, _REFUSED: refused}
    failures |= {ScriptExit.STRANGER: given_away, ScriptExit.CANCELLED: over}
    expect_done(outcome, f"telling Slurm to {wish} the job", failures)
    return record


async def _tell_as_it_is(session: Session, record: JobRecord, wish: str) -> tuple[Outcome, JobRecord]:
    """Tell Slurm, and again where the job is not what it was any more: others may be at it, or the job itself."""
    for _ in range(_TRIES):
        slurm_id, waits = record.last.slurm_id, _waits(record, wish)
        outcome = await _tell(session, record, wish)
        if outcome.exit_code not in (ScriptExit.OK, _REFUSED):
            break
        (record,) = await observation.poll(session, [record])
        moved = record.last.slurm_id != slurm_id
        if outcome.exit_code == ScriptExit.OK:
            # The next attempt was on its way, or began just then: what runs is held without a word, and runs on.
            began = waits and record.state is JobState.RUNNING and not _waits(record, wish)
            again = wish == "pause" and (moved or began)
        else:
            again = moved or waits or _waits(record, wish)
        if record.state.ended or not again:
            break
    return outcome, record  # pyright: ignore[reportPossiblyUnboundVariable]


def _waits(record: JobRecord, wish: str) -> bool:
    """Whether Slurm is to hold or release the job; of an array that runs, some tasks may be held."""
    # One that is being put back is in the queue already, though some of it still runs.
    if record.state is JobState.PENDING or "COMPLETING" in record.last.slurm_state:
        return True
    return wish == "resume" and record.tasks is not None and record.state is JobState.RUNNING


async def _tell(session: Session, record: JobRecord, wish: str) -> Outcome:
    attempt = record.last
    resumes = session.store.spec(record.id).resume is not None
    slurm = SlurmId(attempt.slurm_id, attempt.slurm_cluster)
    waits = _waits(record, wish)
    return await session.call(
        pause_call(record.directory, wish, slurm, waits=waits, resumes=resumes, setup=session.profile.setup)
    )
