"""Submitting: the intent is recorded, everything goes in one stream, and the store says what became of it."""

from __future__ import annotations

import dataclasses
import getpass
import os
import socket
import sqlite3
import time
from collections.abc import Mapping

from towline.engine.outcomes import unreachable
from towline.engine.session import Session
from towline.launch.files import SECRETS, secrets_file
from towline.models.errors import ConfigError, OutcomeUnknown, TowlineError
from towline.models.ids import attempt_token
from towline.models.image import Image
from towline.models.job import Attempt, JobRecord, JobState
from towline.models.plan import Plan
from towline.models.secrets import Secret
from towline.remote.base import Ending, Outcome
from towline.slurm.calls import RequiredPath, Submission, stage_call
from towline.slurm.submission import ScriptExit, SubmitAnswer, parse_submission, submission_error

_NOTHING_STARTED = frozenset(ScriptExit) - {ScriptExit.OK, ScriptExit.IN_FLIGHT, ScriptExit.UNCLEAR}
"""Ends of the submission script after which there is certainly no job."""

LOST = "the answer to its submission was lost; it is looked up at every poll, and withdrawn if Slurm never had it"
"""What is said of a job until it is known whether Slurm has it."""


async def submit(session: Session, plan: Plan, secrets: Mapping[str, Secret]) -> JobRecord:
    """Stage and submit a plan whose checks passed.

    Args:
        session: the cluster.
        plan: what is sent.
        secrets: the values of the spec's secrets, see `engine.secrets`; they are sent beside the plan's files.

    Raises:
        TowlineError: the job was refused, or (`OutcomeUnknown`) the answer was lost and the job is looked up
            by the next poll. The store says which.
    """
    record = _intended(session, plan)
    files = {**plan.files, SECRETS: secrets_file(secrets)} if secrets else plan.files
    call = stage_call(submission_of(session, record, plan.sbatch), files, required_paths(plan), session.profile.setup)
    try:
        outcome = await session.call(call)
    except TowlineError as error:
        _save(session, record, JobState.REFUSED, error.what)
        raise
    return _conclude(session, record, outcome)


def _intended(session: Session, plan: Plan) -> JobRecord:
    record = JobRecord(
        id=plan.job_id,
        name=plan.spec.name,
        cluster=session.profile.name,
        state=JobState.SUBMITTING,
        directory=plan.directory,
        created=time.time(),
        attempts=(Attempt(),),
        command=plan.spec.command_line,
    )
    try:
        session.store.intend(record, plan.spec)
    except sqlite3.Error as error:
        raise ConfigError(
            f"the local store {session.store.path} cannot be written, so nothing was submitted",
            why=str(error),
            fix="Free the disk or choose another place with TOWLINE_STATE_DIR.",
        ) from error
    return record


def submission_of(session: Session, record: JobRecord, sbatch: tuple[str, ...] = ()) -> Submission:
    """The newest attempt of a job as the Slurm room's scripts take it."""
    facts = session.store.facts(session.profile.name)
    return Submission(
        root=session.profile.root,
        job_id=record.id,
        attempt=record.last.number,
        token=attempt_token(record.name, record.id, record.last.number),
        sbatch=sbatch,
        intent=record.created,
        message_timeout=facts.message_timeout if facts else 10,
        owner=f"{_user()}@{socket.gethostname()} pid {os.getpid()}",
    )


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a service's container may have no name for its uid
        return str(os.getuid())


def required_paths(plan: Plan) -> tuple[RequiredPath, ...]:
    """What must be on the cluster before the plan's job is sent there."""
    image = Image.parse(plan.spec.image).path if plan.spec.image else ""
    return tuple(RequiredPath(path, image=path == image) for path in plan.required_paths)


def _conclude(session: Session, record: JobRecord, outcome: Outcome) -> JobRecord:
    """What the outcome says of the job, written down before it is told."""
    if outcome.ending is Ending.NOT_STARTED:
        _save(session, record, JobState.REFUSED, "it never reached the cluster")
        raise unreachable(outcome)
    if outcome.ending is not Ending.DONE or outcome.exit_code is None:
        raise _unknown(session, record, outcome.detail)
    answer = parse_submission(
        outcome.exit_code, outcome.stdout.decode("utf-8", "replace"), outcome.stderr.decode("utf-8", "replace")
    )
    if answer.slurm:
        attempt = Attempt(slurm_id=answer.slurm.id, slurm_cluster=answer.slurm.cluster)
        accepted = dataclasses.replace(record, state=JobState.PENDING, attempts=(attempt,))
        session.store.save(accepted)
        return accepted
    raise _failure(session, record, answer, outcome)


def _failure(session: Session, record: JobRecord, answer: SubmitAnswer, outcome: Outcome) -> TowlineError:
    error = submission_error(answer)
    if answer.exit in _NOTHING_STARTED and error:
        _save(session, record, JobState.REFUSED, error.what)
        return error
    said = outcome.stderr.decode("utf-8", "replace")
    return _unknown(session, record, "\n".join(filter(None, [error.what, error.why])) if error else said)


def _save(session: Session, record: JobRecord, state: JobState, note: str) -> None:
    session.store.save(dataclasses.replace(record, state=state, note=note))


def _unknown(session: Session, record: JobRecord, why: str) -> OutcomeUnknown:
    _save(session, record, JobState.SUBMITTING, LOST)
    return OutcomeUnknown(
        f"the answer to the submission of job {record.id} was lost; Slurm may have the job",
        why=why.strip(),
        fix=f"`towline status {record.id}` looks it up; submitting it again would make a second job.",
    )
