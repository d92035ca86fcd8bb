"""Looking at the cluster: one round trip for any number of jobs, and one for what the site is."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Mapping, Sequence

from towline.engine.healing.bad_nodes import remember_bad_nodes
from towline.engine.healing.due import is_held
from towline.engine.healing.going_on import go_on
from towline.engine.outcomes import check_ending, expect_done, last_words
from towline.engine.reasons import with_reasons
from towline.engine.session import Session
from towline.engine.submitting.recovery import recover, settle_contest
from towline.engine.watching import arrays
from towline.engine.watching.attempts import with_new_attempts, with_told_ends
from towline.engine.watching.verdict import (
    GRACE_SECONDS,
    Evidence,
    conclude,
    evidence_of,
    failed_by_report,
    slurm_id_of,
    waits_on,
)
from towline.models.errors import RemoteFault, SlurmUnavailable
from towline.models.job import JobRecord, JobState
from towline.models.site import SiteFacts
from towline.remote.base import Outcome
from towline.slurm.calls import PollTarget, facts_call, forget_call, parse_forgotten, poll_call
from towline.slurm.parse import SlurmId
from towline.slurm.poll import PollAnswer, parse_poll
from towline.slurm.site import parse_facts
from towline.slurm.strangers import apart, asks_for, owners_of, split_strangers
from towline.slurm.submission import environment_error

FACTS_SECONDS = 3600.0
"""How long kept facts about a site count; a check that fails on kept facts is made again on new ones."""

LOOKS = 1000
"""Forgotten tasks of one array whose own records are read in one poll."""


_SETTLED_SECONDS = 300.0
"""After so long every process that may have submitted a job, too, has left its mark in the job's directory."""

PARTIAL_SECONDS = 60.0
"""The same for facts without what accounting knows, which was away then."""


async def site_facts(session: Session, *, fresh: bool = False) -> tuple[SiteFacts, bool]:
    """Facts about the site, and whether they were asked for just now.

    Raises:
        Unreachable, RemoteFault, SlurmUnavailable: they cannot be had.
    """
    kept = session.store.facts(session.profile.name)
    if kept and not fresh:
        lasting = PARTIAL_SECONDS if kept.partial else FACTS_SECONDS
        if 0 <= time.time() - kept.asked < lasting:
            return kept, False
    outcome = await session.call(facts_call(session.profile.setup))
    _check(outcome, "asking the cluster for its partitions")
    try:
        facts = parse_facts(outcome.stdout.decode("utf-8", "replace"), time.time())
    except ValueError as error:
        raise SlurmUnavailable(
            "Slurm could not be asked for its partitions",
            why=str(error),
            fix="The controller may be restarting; try again in a while.",
        ) from None
    session.store.save_facts(session.profile.name, facts)
    return facts, True


async def poll(session: Session, records: Sequence[JobRecord]) -> tuple[JobRecord, ...]:
    """Look at these jobs once and write what is known now into the store; those that ended are passed over.

    Returns:
        The jobs as they are known now, in the order given.

    One round trip; one more for jobs that were requeued since, whose newest attempt has files of its own, for arrays of
    which tasks have failed or have left the queue, and for jobs that had the Slurm id of another one before it. What is
    seen of a single task is told and not kept.

    Raises:
        Unreachable, OutcomeUnknown, WaitTimedOut, RemoteFault: nothing was learnt, and nothing changed.
    """
    return (await look(session, records)).records


@dataclasses.dataclass(frozen=True)
class Look:
    """What one look has shown.

    Attributes:
        records: the jobs as they are known now, in the order in which they were given.
        answer: what the queue said; None when there was nothing to ask for.
    """

    records: tuple[JobRecord, ...]
    answer: PollAnswer | None = None


async def look(session: Session, records: Sequence[JobRecord]) -> Look:
    """The same as `poll`, with what the queue said besides."""
    once = {record.reference: record for record in records}.values()
    alive = [_open(record) for record in once if not record.state.ended or _unseen(record)]
    if not alive:
        return Look(tuple(records))
    mark, begun = session.store.newest_change(), time.time()
    groups = apart([(_target(record, begun), record) for record in alive])
    seen = [await _seen(session, group, begun) for group in groups]
    written, _ = session.store.changed_since(session.profile.name, mark)
    known = {reference: record for each, _ in seen for reference, record in each.items()}
    known |= {record.reference: record for record in written}
    return Look(tuple(_of(record, known.get(record.reference, record)) for record in records), seen[0][1])


async def _seen(
    session: Session, wanted: Sequence[tuple[PollTarget, JobRecord]], begun: float
) -> tuple[dict[str, JobRecord], PollAnswer]:
    """What one answer has told of these jobs, and the answer."""
    alive = [record for _, record in wanted]
    answer = await ask(session, [target for target, _ in wanted])
    moved = [record for record in alive if not waits_on(record, answer) or is_held(record)]
    grown = [with_new_attempts(record, evidence_of(answer, record), begun) for record in moved]
    requeued = [new for old, new in zip(moved, grown, strict=True) if new is not old]
    same = [new for old, new in zip(moved, grown, strict=True) if new is old]
    known = await _learn(session, same, answer, begun)
    if requeued:
        targets = [_target(record, begun) for record in requeued]
        known |= await _learn(session, requeued, await ask(session, targets), begun)
    return known, answer


def _of(before: JobRecord, after: JobRecord) -> JobRecord:
    """What is known after a look; a task that ended stays ended when there is nothing of it to be seen any more."""
    return before if after is not before and before.state.ended and not after.state.ended else after


def _unseen(record: JobRecord) -> bool:
    """Whether this is a task of which nothing but its state is known: arrays keep no more of most of theirs."""
    return record.task is not None and not record.last.slurm_state


def _open(record: JobRecord) -> JobRecord:
    return dataclasses.replace(record, state=JobState.RUNNING) if record.state.ended else record


async def ask(
    session: Session, targets: Sequence[PollTarget], accounts: Mapping[SlurmId, str] | None = None
) -> PollAnswer:
    """What Slurm and the job directories say of these attempts; nothing is written down.

    Of a job whose id Slurm has given to another one accounting is asked in a second round trip.

    Args:
        session: the cluster.
        targets: the attempts.
        accounts: arrays of which accounting is asked for every task, and the ids of the jobs that they are.

    Raises:
        Unreachable, OutcomeUnknown, WaitTimedOut, RemoteFault: there was no whole answer.
    """
    arrays_of = {(slurm.cluster, slurm.id): job for slurm, job in (accounts or {}).items()}
    owners = {**arrays_of, **owners_of(targets)}
    answer, taken = split_strangers(await _asked(session, targets, accounts or ()), owners)
    if not taken:
        return answer
    files = [each._replace(slurm=None, lazy=False) for each in targets if asks_for(each, taken)]
    more, _ = split_strangers(await _asked(session, files, past=taken), owners)
    return dataclasses.replace(
        answer,
        queries=(*answer.queries, *more.queries),
        accounting={**answer.accounting, **more.accounting},
        attempts={**answer.attempts, **more.attempts},
    )


async def _asked(
    session: Session, targets: Sequence[PollTarget], accounts: Iterable[SlurmId] = (), past: Iterable[SlurmId] = ()
) -> PollAnswer:
    call = poll_call(session.profile.root, targets, session.profile.setup, accounts, past)
    outcome = await session.call(call)
    _check(outcome, "asking for the state of the jobs")
    answer = parse_poll(outcome.stdout.decode("utf-8", "replace"))
    if not answer.complete:
        raise RemoteFault(
            f"the answer of {outcome.host} about the jobs broke off",
            why=last_words(outcome.stderr) or "Its end was missing.",
            fix="Try again; if it stays so, look for space in the login host's temporary directory.",
        )
    return answer


def _target(record: JobRecord, now: float) -> PollTarget:
    attempt = record.last
    slurm = SlurmId(attempt.slurm_id, attempt.slurm_cluster) if attempt.slurm_id else None
    array = record.tasks is not None
    return PollTarget(record.id, attempt.number, slurm, record.task, array, _only_waits(record, now))


def _only_waits(record: JobRecord, now: float) -> bool:
    """Whether a job's files tell nothing while it waits on: it was seen before, never began, and awaits no import."""
    last = record.last
    seen = last.slurm_state == "PENDING" and last.submitted is not None and bool(last.reason)
    alone = record.task is None and record.tasks is None and len(record.attempts) == 1
    settled = now - record.created > _SETTLED_SECONDS
    return seen and alone and settled and not last.reason.startswith("Dependency")


async def _learn(
    session: Session, records: Sequence[JobRecord], answer: PollAnswer, begun: float
) -> dict[str, JobRecord]:
    """Write down what is known now; the result is the jobs by what names them."""
    found = [(record, evidence_of(answer, record)) for record in records]
    known = [(await _concluded(session, record, evidence, answer), evidence) for record, evidence in found]
    known = [
        (await go_on(session, record, after, evidence, answer.now), evidence)
        for record, (after, evidence) in zip(records, known, strict=True)
    ]
    remember_bad_nodes(session, [record for record, _ in known])
    # A job that has ended is not looked at again, so this comes first.
    kept = await _forget_secrets(
        session, [record for record, evidence in known if evidence.files.secrets and record.task is None]
    )
    explained = await with_reasons(session, [record for record, _ in known])
    contested = {record.id for record, evidence in known if evidence.files.contested and record.task is None}
    now = {record.reference: record for record in explained}
    jobs = [dataclasses.replace(each, note=_with_kept(each, kept)) for each in explained if each.task is None]
    for job in session.store.save(*jobs, seen=begun):
        now[job.id] = await _settled(session, job, contested=job.id in contested)
    return now


async def _concluded(session: Session, record: JobRecord, evidence: Evidence, answer: PollAnswer) -> JobRecord:
    slurm = slurm_id_of(record.last, evidence.files)
    if record.tasks is not None and slurm is not None:
        return await _count_tasks(session, record, slurm, answer)
    record = conclude(with_told_ends(record, evidence.history), evidence, time.time())
    judged = failed_by_report(record, evidence.files)
    if judged is not record and record.task is None and session.store.spec(record.id).status_decides:
        return judged
    return record


async def _settled(session: Session, record: JobRecord, *, contested: bool) -> JobRecord:
    """The job as the store has it, when it is not known yet whether Slurm has it, or two jobs of it were made."""
    if record.state is JobState.SUBMITTING:
        await recover(session, record)
    elif contested and not record.state.ended:
        await settle_contest(session, record)
    else:
        return record
    return session.store.job(record.id) or record


async def _count_tasks(session: Session, record: JobRecord, slurm: SlurmId, answer: PollAnswer) -> JobRecord:
    """An array after a poll, with a closer look at tasks that failed or that Slurm has forgotten."""
    query = answer.asked("squeue", slurm)
    if query is None or not query.answered:
        return record
    files = evidence_of(answer, record).files
    found = arrays.count(record, slurm, answer, files)
    missing, stale = found.missing, found.stale
    if missing:
        told = await ask(session, (), {slurm: record.id})
        found = arrays.count(found.record, slurm, told, files)
        stale |= found.stale & missing
        if answer.task_rows(slurm) and arrays.accounted(told, slurm):
            found = arrays.without_missing(found, files)
    looks = list(arrays.to_look_at(found.record))
    if time.time() - record.created > GRACE_SECONDS:
        looks += sorted(found.missing | stale)[:LOOKS]
    if not looks:
        return found.record
    seen = await poll(session, [_open(arrays.task_of(found.record, task)) for task in looks])
    return arrays.with_looks(found.record, seen, cancelled=files.cancelled)


async def _forget_secrets(session: Session, records: Sequence[JobRecord]) -> tuple[str, ...]:
    """Take away the secrets of jobs that have ended without doing it themselves; the result is what is still there.

    A job's supervisor does it, unless it was killed, or Slurm ended it for a reason that only Slurm knows.
    """
    over = [record.directory for record in records if record.state.ended]
    if not over:
        return ()
    outcome = await session.call(forget_call(over))
    return parse_forgotten(expect_done(outcome, "removing the secrets of ended jobs").decode("utf-8", "replace"))


def _with_kept(record: JobRecord, kept: Sequence[str]) -> str:
    path = f"{record.directory}/secrets"
    if path not in kept:
        return record.note
    return "; ".join(part for part in (record.note, f"{path} could not be removed: remove it yourself") if part)


def _check(outcome: Outcome, doing: str) -> None:
    check_ending(outcome, doing)
    if outcome.exit_code:
        said = last_words(outcome.stderr)
        raise environment_error(outcome.exit_code, said) or RemoteFault(
            f"{outcome.host} failed with exit code {outcome.exit_code} while {doing}",
            why=said,
            fix="Log in there and try Slurm's commands by hand.",
        )
