"""Starting the next attempt from outside, under the same claims and the same budget as the job itself does."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping

from towline.engine.healing.bad_nodes import bad_nodes
from towline.engine.healing.due import Due, is_held, is_settling, next_due, was_put_back
from towline.engine.outcomes import last_words
from towline.engine.session import Session
from towline.engine.submitting.intent import owner
from towline.engine.watching.verdict import Evidence
from towline.models.errors import TowlineError
from towline.models.event import EventKind
from towline.models.ids import attempt_token
from towline.models.job import Attempt, JobRecord, JobState
from towline.models.spec import JobSpec
from towline.models.values import Json
from towline.remote.base import Ending
from towline.slurm.calls import Submission, again_call, pause_call, release_call
from towline.slurm.parse import SlurmId
from towline.slurm.reasons import HELD_HERE, explain_reason
from towline.slurm.refusals import RefusalKind
from towline.slurm.submission import ScriptExit, SubmitAnswer, parse_submission

_CAUSES = {
    "node": "a node failed",
    "preempted": "it was preempted",
    "time": "its walltime was over",
    "ambiguous": "it ended without a word",
    "infrastructure": "the cluster failed it",
    "paused": "it was paused",
}


async def go_on(
    session: Session, before: JobRecord, after: JobRecord, evidence: Evidence, now: int | None
) -> JobRecord:
    """The job as it goes on: with its next attempt if one is due, as it is otherwise.

    Args:
        session: the cluster.
        before: the job as it was known before the poll.
        after: as it is known after it.
        evidence: what the poll saw.
        now: the time on the cluster's clock.
    """
    if is_held(after):
        return await _released(session, after)
    if was_put_back(before, after, evidence):
        return await _held_when_spent(session, after)
    if _holds(session, after):
        return _held(after)
    if not after.state.ended or after.state is JobState.SUCCEEDED:
        return after
    spec = session.store.spec(after.id)
    if spec.restart != "never" and is_settling(after, evidence, now):
        return _waiting(before, after, "it has ended; how is not written there yet")
    due = next_due(after, evidence, spec)
    return await _again(session, after, spec, due) if due else after


async def _again(session: Session, record: JobRecord, spec: JobSpec, due: Due) -> JobRecord:
    """Have the next attempt submitted, by whoever is first."""
    number = record.last.number + 1
    submission = next_submission(session, record, spec)
    end = {
        "class": due.cause,
        "nodes": due.nodes,
        "retries": str(spec.retries),
        "patience": str(spec.resume.without_progress if spec.resume else 3),
        "checkpoints": spec.resume.checkpoints if spec.resume else "",
        "always": spec.exclude or "",
        "further": ",".join(bad_nodes(session)),
    }
    ended = dataclasses.replace(record.last, cause=record.last.cause or due.cause)
    record = dataclasses.replace(record, attempts=(*record.attempts[:-1], ended))
    try:
        outcome = await session.call(again_call(submission, end, session.profile.setup))
    except TowlineError as error:
        return _waiting(record, record, f"{_said(due)}, and the next attempt could not be submitted yet: {error.what}")
    if outcome.ending is not Ending.DONE or outcome.exit_code is None:
        return _waiting(record, record, f"{_said(due)}, and whether the next attempt was submitted is not known yet")
    said = outcome.stderr.decode("utf-8", "replace")
    answer = parse_submission(outcome.exit_code, outcome.stdout.decode("utf-8", "replace"), said)
    if answer.slurm is None:
        return _not_submitted(record, due, answer)
    left_out = f", without {answer.excluded}" if answer.excluded else ""
    note = f"{_said(due)}; attempt {number} is submitted{left_out}"
    attempt = Attempt(number, answer.slurm.id, answer.slurm.cluster)
    record = dataclasses.replace(record, state=JobState.PENDING, note=note, attempts=(*record.attempts, attempt))
    details = {"action": "submitted", "cause": due.cause, "exclude": answer.excluded}
    session.store.tell(record, EventKind.HEALING, details, key=f"attempt {number}")
    return record


def next_submission(session: Session, record: JobRecord, spec: JobSpec) -> Submission:
    """The attempt after the newest one; its script says all but what `slurm/scripts/again.sh` adds.

    What the job waited for is over, and may be forgotten by Slurm, which then refuses the dependency.
    """
    waits = ("--dependency=",) if spec.depends_on else ()
    begins = ("--begin=now",) if spec.begin else ()
    number = record.last.number + 1
    facts = session.store.facts(session.profile.name)
    return Submission(
        root=session.profile.root,
        job_id=record.id,
        attempt=number,
        token=attempt_token(record.name, record.id, number),
        sbatch=("sbatch", "--parsable", *waits, *begins),
        intent=time.time(),
        message_timeout=facts.message_timeout if facts else 10,
        owner=owner(),
    )


def _not_submitted(record: JobRecord, due: Due, answer: SubmitAnswer) -> JobRecord:
    if answer.exit is ScriptExit.SPENT:
        note = "; ".join(filter(None, (record.note or _said(due), answer.why)))
        return dataclasses.replace(record, note=note)
    if answer.exit is ScriptExit.CANCELLED:
        return dataclasses.replace(record, state=JobState.CANCELLED, note="cancelled between two attempts")
    if answer.exit is ScriptExit.REFUSED and answer.refusal and answer.refusal.kind is RefusalKind.PERMANENT:
        note = f"{_said(due)}, and Slurm refused the next attempt: {answer.refusal.said}"
        return dataclasses.replace(record, note=note)
    why = answer.refusal.said if answer.refusal else last_words(answer.notices.encode())
    return _waiting(record, record, f"{_said(due)}, and the next attempt is not submitted yet: {why}")


def _waiting(before: JobRecord, after: JobRecord, note: str) -> JobRecord:
    """Not over: the next poll finds the same end, and tries again."""
    state = JobState.PENDING if before.state.ended else before.state
    return dataclasses.replace(after, state=state, note=note)


def _said(due: Due) -> str:
    return _CAUSES.get(due.cause, f"it failed ({due.cause})")


async def _released(session: Session, record: JobRecord) -> JobRecord:
    """Have a job that a node could not start run elsewhere: Slurm drains that node and holds the job."""
    attempt, spec = record.last, session.store.spec(record.id)
    if spec.restart == "never" or _count(session, record, "released") >= spec.retries:
        return record
    try:
        outcome = await session.call(release_call(SlurmId(attempt.slurm_id), record.directory, session.profile.setup))
    except TowlineError:  # the next poll tries again; what this one has learnt of other jobs is kept
        return record
    if outcome.ending is not Ending.DONE or outcome.exit_code:
        return record
    session.store.tell(record, EventKind.HEALING, {"action": "released", "cause": "node", "exclude": ""})
    free = dataclasses.replace(attempt, reason="")  # it is held no more
    note = "a node could not start it; it waits for another one"
    return dataclasses.replace(record, note=note, attempts=(*record.attempts[:-1], free))


async def _held_when_spent(session: Session, record: JobRecord) -> JobRecord:
    """Hold a job that Slurm has put back more often than it may cost new starts; Slurm itself would go on for ever."""
    session.store.tell(
        record,
        EventKind.HEALING,
        {"action": "put-back", "cause": "node", "exclude": ""},
        key=f"put back {record.last.submitted}",
    )
    retries = session.store.spec(record.id).retries
    if _count(session, record, "put-back") <= retries:
        return record
    slurm = SlurmId(record.last.slurm_id, record.last.slurm_cluster)
    call = pause_call(record.directory, "pause", slurm, waits=True, resumes=False, setup=session.profile.setup)
    try:
        outcome = await session.call(call)
    except TowlineError:  # the next time that Slurm puts it back
        return record
    if outcome.ending is not Ending.DONE or outcome.exit_code:
        return record
    details: dict[str, Json] = {"action": "held", "cause": "node", "exclude": "", "submitted": record.last.submitted}
    session.store.tell(record, EventKind.HEALING, details)
    return _held(record)


def _holds(session: Session, record: JobRecord) -> bool:
    """Whether this program holds the job itself; Slurm says of that, too, that its user does."""
    if record.state is not JobState.PENDING or record.last.reason != "JobHeldUser":
        return False
    return any(each.get("submitted") == record.last.submitted for each in _healed(session, record, "held"))


def _held(record: JobRecord) -> JobRecord:
    reason = explain_reason(HELD_HERE)
    last = dataclasses.replace(record.last, reason=HELD_HERE)
    return dataclasses.replace(
        record, note=f"{reason.sentence} {reason.way_out}", attempts=(*record.attempts[:-1], last)
    )


def _count(session: Session, record: JobRecord, action: str) -> int:
    """How often something was done for a job, by whichever process of this store."""
    return len(_healed(session, record, action))


def _healed(session: Session, record: JobRecord, action: str) -> list[Mapping[str, Json]]:
    told = session.store.events(session.profile.name, jobs=[record.id], limit=10_000)
    return [each.details for each in told if each.kind is EventKind.HEALING and each.details.get("action") == action]
