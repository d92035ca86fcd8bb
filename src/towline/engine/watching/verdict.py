"""From what one poll saw to what is known about a job. Pure: evidence in, record out.

Slurm's own row of the allocation decides the life cycle; the files that the job wrote give its exit code.
A query that failed changes nothing. A Slurm id is believed only together with the attempt's own records.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from towline.engine.watching.endings import described, own_decision, own_end, with_decision, with_own_code
from towline.launch.diagnosis.words import end_of, failure_of
from towline.launch.records import BY_CANCEL, DUPLICATE, EndRecord, end_record
from towline.models.job import Attempt, Component, JobRecord, JobState
from towline.models.parts import is_remote
from towline.models.units import duration, size
from towline.slurm.parse import AccountingRow, JobHistory, QueueRow, SlurmId
from towline.slurm.poll import AttemptFiles, Awaited, PollAnswer
from towline.slurm.reasons import explain_reason
from towline.storage.reports import parse_report

GRACE_SECONDS = 300.0
"""How long a job may be in neither queue nor accounting before its end is inferred; accounting lags by seconds."""

_LAUNCH_FAILED = 53
"""The "signal" that slurmd reports when it could not start a batch script, for example for want of a log directory."""

_AFTER_ALL = frozenset({"TIMEOUT", "DEADLINE", "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY"})
"""Slurm's words for what may befall an allocation when the command is done, until slurmctld hears of the script's end.
One that was away says TIMEOUT of a job that outlasted its walltime meanwhile, even if its script had ended with 0.
OUT_OF_MEMORY says that the kernel has ended some process of the batch step, whatever became of the command."""


@dataclass(frozen=True)
class Evidence:
    """What one poll saw of one attempt.

    Attributes:
        files: what lies in the attempt's directory.
        row: its row in the queue.
        history: its rows in accounting.
        absent: whether queue and accounting both answered and neither has it.
        components: those of a heterogeneous job.
        later: what lies in the directories of the attempts after this one, in order.
    """

    files: AttemptFiles
    row: QueueRow | None = None
    history: JobHistory | None = None
    absent: bool = False
    components: tuple[Component, ...] = ()
    later: tuple[AttemptFiles, ...] = ()


_NOT_LOOKED_AT = Evidence(AttemptFiles())


def evidence_of(answer: PollAnswer, record: JobRecord) -> Evidence:
    """The part of a poll's answer that is about one job's newest attempt."""
    files = answer.attempts.get((record.id, record.last.number, record.task), AttemptFiles())
    following = range(record.last.number + 1, files.newest + 1)
    later = tuple(answer.attempts.get((record.id, number, record.task), AttemptFiles()) for number in following)
    slurm = slurm_id_of(record.last, files)
    if slurm is None:
        return Evidence(files, later=later)
    row, history = answer.row(slurm), answer.history(slurm)
    queries = [answer.asked(command, slurm) for command in ("squeue", "sacct")]
    told = all(query is not None and (query.answered or query.accounting_off) for query in queries)
    # Accounting that missed an end has the job run for ever (sacctmgr(1), runawayjobs); its own record tells more.
    runaway = history is not None and not history.newest.state.ended and own_end(record.last, files) is not None
    absent = row is None and (history is None or runaway) and told
    return Evidence(files, row, history, absent, answer.components(slurm), later)


def slurm_id_of(attempt: Attempt, files: AttemptFiles) -> SlurmId | None:
    """Slurm's id of the attempt: the recorded one, else sbatch's answer, else the one the job itself wrote.

    Of two jobs the one that has the attempt counts.
    """
    if files.contested and files.claim.isdigit():
        return SlurmId(files.claim, attempt.slurm_cluster)
    if attempt.slurm_id:
        return SlurmId(attempt.slurm_id, attempt.slurm_cluster)
    if files.slurm:
        return files.slurm
    return SlurmId(files.claim) if files.claim.isdigit() else None


def conclude(record: JobRecord, evidence: Evidence, now: float) -> JobRecord:
    """The job as it is known after a poll.

    Args:
        record: the job as it was known before.
        evidence: what the poll saw.
        now: seconds since 1970 on this machine's clock.
    """
    slurm = slurm_id_of(record.last, evidence.files)
    if record.state.ended or slurm is None:
        return record
    attempt = dataclasses.replace(record.last, slurm_id=slurm.id, slurm_cluster=slurm.cluster)
    attempt, state = _from_slurm(attempt, evidence, record.state)
    if evidence.components:
        attempt = _with_components(attempt, record.last.components, evidence.components)
    if state.ended and _is_duplicate(record, attempt, evidence):
        attempt, state = Attempt(attempt.number, evidence.files.claim), JobState.PENDING
    elif state.ended:
        attempt, state = _with_end(attempt, state, evidence)
    elif evidence.absent and (now - record.created > GRACE_SECONDS or _never_began(record, evidence)):
        return _vanished(record, attempt, evidence)
    state = JobState.PENDING if state is JobState.SUBMITTING else state
    record = dataclasses.replace(
        record,
        state=state,
        attempts=(*record.attempts[:-1], attempt),
        progress=parse_report(evidence.files.report) or record.progress,
    )
    return dataclasses.replace(record, note=note_of(record, evidence))


def waits_on(record: JobRecord, answer: PollAnswer) -> bool:
    """Whether a job waits in the queue just as it is known to, so that there is nothing to conclude from this poll.

    Its files were of no interest then (`PollTarget.lazy`). With thousands of jobs this is what most are found to do.
    """
    last = record.last
    row = answer.queue.get((last.slurm_cluster, last.slurm_id))
    if row is None or record.state is not JobState.PENDING or record.tasks is not None or record.task is not None:
        return False
    same = row.word == last.slurm_state == "PENDING" and row.reason == last.reason and row.submitted == last.submitted
    if not same or last.nodes or last.started or last.ended or last.components:
        return False
    return (record.id, last.number, None) not in answer.attempts and record.note == note_of(record, _NOT_LOOKED_AT)


def failed_by_report(record: JobRecord, files: AttemptFiles) -> JobRecord:
    """A job that ended well for Slurm, but says itself that it failed: TAO's container exits with 0 then.

    What an earlier attempt has written does not count.
    """
    said = record.progress
    if record.state is not JobState.SUCCEEDED or not files.reported or said is None or said.word != "FAILURE":
        return record
    attempt = dataclasses.replace(record.last, exit_code=None, exit_source="")
    note = f"its status.json says FAILURE{f': {said.message}' if said.message else ''}"
    return dataclasses.replace(record, state=JobState.FAILED, note=note, attempts=(*record.attempts[:-1], attempt))


def _with_components(attempt: Attempt, before: Sequence[Component], now: Sequence[Component]) -> Attempt:
    """The attempt with what its components say; one that completes keeps the nodes that it ran on."""
    known = {each.slurm_id: each.nodes for each in before}
    parts = tuple(dataclasses.replace(each, nodes=each.nodes or known.get(each.slurm_id, "")) for each in now)
    waiting = [each.reason for each in parts if each.reason]
    return dataclasses.replace(
        attempt,
        components=parts,
        nodes=",".join(each.nodes for each in parts if each.nodes),
        reason=attempt.reason or (waiting[0] if waiting and attempt.slurm_state == "PENDING" else ""),
    )


def _from_slurm(attempt: Attempt, evidence: Evidence, state: JobState) -> tuple[Attempt, JobState]:
    """What the queue says, and accounting where the queue has nothing (left) to say."""
    row, newest = evidence.row, evidence.history.newest if evidence.history else None
    known, begun = attempt.submitted, evidence.files.start is not None
    if row:
        attempt, state = _from_queue(attempt, row, newest), row.state
    elif newest:
        attempt, state = _from_accounting(attempt, newest), newest.state
    # A requeue gives the job a new time of submission, which is the next attempt's (slurmctld's job_requeue).
    return dataclasses.replace(attempt, submitted=known or attempt.submitted) if begun else attempt, state


def _from_queue(attempt: Attempt, row: QueueRow, accounted: AccountingRow | None) -> Attempt:
    pending = row.state is JobState.PENDING
    # A job that completes is listed with the nodes that are not free yet, fewer and fewer.
    nodes = attempt.nodes if attempt.nodes and "COMPLETING" in row.word else row.nodes
    attempt = dataclasses.replace(
        attempt,
        slurm_state=row.word,
        reason=row.reason,
        nodes="" if pending else nodes,
        submitted=row.submitted,
        started=None if pending or _never_ran(row) else row.started,
        ended=row.ended if row.state.ended else None,
    )
    if row.state.ended and accounted and accounted.exit and accounted.state.ended:
        return _with_slurm_code(attempt, accounted)
    return attempt


def _never_ran(row: QueueRow | AccountingRow) -> bool:
    """Whether the job was cancelled while it waited: Slurm gives its end as the start, too, and no nodes."""
    return row.state is JobState.CANCELLED and not row.nodes and row.started == row.ended


def _from_accounting(attempt: Attempt, row: AccountingRow) -> Attempt:
    attempt = dataclasses.replace(
        attempt,
        slurm_state=row.word,
        reason=attempt.reason if end_of(attempt.reason) else "",
        nodes=row.nodes,
        submitted=row.submitted,
        started=None if _never_ran(row) else row.started,
        ended=row.ended if row.state.ended else None,
    )
    return _with_slurm_code(attempt, row) if row.state.ended else attempt


def _with_slurm_code(attempt: Attempt, row: AccountingRow) -> Attempt:
    """Accounting's code, as a fallback where the job left none: only a command that ended has one of its own."""
    told = row.exit
    if row.word not in ("COMPLETED", "FAILED") or told is None or told.signal == _LAUNCH_FAILED:
        return attempt
    if row.word == "FAILED" and told.status == 0:
        return attempt
    return dataclasses.replace(attempt, exit_code=told.status, exit_source="slurm")


def _with_end(attempt: Attempt, state: JobState, evidence: Evidence) -> tuple[Attempt, JobState]:
    """The job's own record of its end, when it is this attempt's; a failed rank is never a success."""
    attempt = with_decision(attempt, evidence.files)
    end = own_end(attempt, evidence.files)
    if end is None:
        return attempt, JobState.CANCELLED if state is JobState.FAILED and _was_cancelled(evidence.files) else state
    told = own_decision(evidence.files)
    if state is JobState.FAILED and evidence.files.cancelled and told and (told.next or told.why == BY_CANCEL):
        return with_own_code(attempt, end), JobState.CANCELLED  # between two attempts
    if state is JobState.SUCCEEDED and end.code:
        state = JobState.FAILED
    elif end.verdict == "done" and attempt.slurm_state in _AFTER_ALL:
        state = JobState.SUCCEEDED
    return with_own_code(attempt, end), state


def _is_duplicate(record: JobRecord, attempt: Attempt, evidence: Evidence) -> bool:
    """Whether another Slurm job has the attempt, so that this one left without running anything."""
    files, newest = evidence.files, evidence.history.newest if evidence.history else None
    left = newest is None or newest.exit is None or newest.exit.status == DUPLICATE
    plain = record.task is None and record.tasks is None
    return left and plain and files.claim.isdigit() and files.claim != attempt.slurm_id and files.start is not None


def _was_cancelled(files: AttemptFiles) -> bool:
    """Whether a job that Slurm counts as failed found itself cancelled, or was ended for that."""
    end = end_record(files.end) if files.end else None
    return files.cancelled and (end is None or end.verdict in ("stopped", "cancelled"))


def _never_began(record: JobRecord, evidence: Evidence) -> bool:
    """Whether this is an array's task that was cancelled while it waited: Slurm keeps no record of such a one."""
    return record.task is not None and evidence.files.cancelled and evidence.files.start is None


def _vanished(record: JobRecord, attempt: Attempt, evidence: Evidence) -> JobRecord:
    """A job that neither queue nor accounting has any more: its own record, else cancelled by inference."""
    end = own_end(attempt, evidence.files)
    if end is None:
        note = "cancelled (inferred: Slurm has forgotten the job and it left no end)"
        state, note = JobState.CANCELLED, "" if evidence.files.cancelled else note
    else:
        state = JobState.FAILED if end.code else JobState.SUCCEEDED
        note = "Slurm has forgotten the job; this is its own record"
        attempt = described(attempt, evidence.files)
    return dataclasses.replace(record, state=state, attempts=(*record.attempts[:-1], attempt), note=note)


def blocked_for_ever(record: JobRecord) -> str:
    """Why the job can never start unless somebody acts, with Slurm's word and the way out; empty when it only waits."""
    if record.state is not JobState.PENDING or not record.last.reason:
        return ""
    reason = explain_reason(record.last.reason)
    return f"{reason.sentence} ({reason.word}) {reason.way_out}" if reason.blocked else ""


def note_of(record: JobRecord, evidence: Evidence) -> str:
    """One sentence about the state for a person; empty when the state says it all."""
    attempt = record.last
    if record.state is JobState.PENDING and evidence.files.awaits:
        return "; ".join(waits_for(each) for each in evidence.files.awaits)
    if record.state is JobState.PENDING and attempt.reason:
        reason = explain_reason(attempt.reason)
        return " ".join(part for part in (reason.sentence, reason.way_out if reason.blocked else "") if part)
    if record.state is JobState.UNKNOWN:
        return f"Slurm calls its state {attempt.slurm_state}, which is not known here; watching goes on"
    if not record.state.ended:
        return ""
    return _end_note(record.state, attempt, evidence)


def waits_for(awaited: Awaited) -> str:
    """What is made for a job that waits, and how far it is."""
    done = "staged" if is_remote(awaited.what) else "imported"
    if not awaited.stage:
        job = f" (Slurm job {awaited.slurm_id})" if awaited.slurm_id else ""
        return f"{awaited.what} waits to be {done}{job}"
    made = f", {size(awaited.bytes)}" if awaited.bytes else ""
    rate = f", {size(awaited.rate)}/s" if awaited.rate else ""
    clock = f", {duration(awaited.seconds)}" if awaited.seconds else ""
    return f"{awaited.what} is being {done}: {awaited.doing or awaited.stage}{made}{rate}{clock}"


def _end_note(state: JobState, attempt: Attempt, evidence: Evidence) -> str:
    told = own_decision(evidence.files)
    why = told.why if told and told.cause not in ("user", "done") and not told.next else ""
    special = end_of(attempt.slurm_state) or end_of(attempt.reason)
    if state is JobState.SUCCEEDED:
        return f"{special}, but the command was done by then" if special else ""
    if special or why:
        failure = end_record(evidence.files.end) if evidence.files.end and not special else None
        return "; ".join(dict.fromkeys(filter(None, (special, _failure_note(failure) if failure else "", why))))
    if state is JobState.FAILED and attempt.slurm_state == "FAILED" and not evidence.files.end:
        return _unrecorded(evidence.files)
    end = end_record(evidence.files.end) if evidence.files.end else None
    return _failure_note(end) if end else ""


def _failure_note(end: EndRecord) -> str:
    if not end.role:
        return failure_of(end.reason)
    if end.reason == "exit" and end.code:
        return f"role {end.role} failed first, on its rank {end.rank}, and the others were ended"
    return f"role {end.role}: {failure_of(end.reason) or 'it failed first, and the others were ended'}"


def _unrecorded(files: AttemptFiles) -> str:
    """Why a job that failed may have left no record of it."""
    if not files.present:
        return "its directory is gone from the cluster, so that only Slurm's record is left"
    if not files.start:
        return "it failed before its first step; its log directory or nodes may not have been usable"
    return "it could not write down how it ended; the shared disk may have been full"
