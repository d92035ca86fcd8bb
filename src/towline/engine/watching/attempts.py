"""The attempts that a job has had since it was last looked at. Pure."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

from towline.engine.watching.endings import described
from towline.engine.watching.verdict import Evidence, conclude, slurm_id_of
from towline.models.job import Attempt, JobRecord
from towline.slurm.parse import AccountingRow, JobHistory, SlurmId
from towline.slurm.poll import AttemptFiles

_PUT_BACK = "REQUEUED"
"""The state of an attempt that was followed by another one under the same id, until accounting says why."""


def with_new_attempts(record: JobRecord, evidence: Evidence, now: float) -> JobRecord:
    """The job with the attempts that came since: started again by Slurm under the same id, or submitted by the job.

    An attempt that was started again has ended as accounting says, if it says so already; one with a job of its own as
    that job has.

    Args:
        record: the job as it was known before.
        evidence: what the poll saw of the attempt that was its newest.
        now: seconds since 1970 on this machine's clock.
    """
    last, newest = record.last, evidence.files.newest
    if newest <= last.number or record.tasks is not None:  # the tasks of an array are started again one by one
        return record
    files = dict(zip(range(last.number, newest + 1), (evidence.files, *evidence.later), strict=False))
    attempts = _identified(last, newest, files, record.task)
    again = [each.number for each, following in pairwise(attempts) if _same(each, following)]
    rows = evidence.history.earlier if evidence.history else ()
    runs = dict(zip(again, rows[-len(again) :], strict=False)) if again else {}
    ended: list[Attempt] = []
    for attempt in attempts[:-1]:
        own = files.get(attempt.number, AttemptFiles())
        if attempt.number in again:
            over = _put_back(attempt, own, runs.get(attempt.number))
        elif attempt.number == last.number:
            over = _of_own_job(record, evidence, now)
        else:
            over = dataclasses.replace(attempt, slurm_state="FAILED")
        ended.append(described(over, own))
    return dataclasses.replace(record, attempts=(*record.attempts[:-1], *ended, attempts[-1]))


def with_told_ends(record: JobRecord, history: JobHistory | None) -> JobRecord:
    """The job with accounting's words for attempts that Slurm has put back, of which nobody knew why when it did.

    Accounting is asked only of jobs that are not alive in the queue: of one that a lost node has sent back there, at
    its end. Slurm has a row for each run before a requeue.
    """
    last = record.last
    again = [each for each in record.attempts[:-1] if _same(each, last)]
    rows = history.earlier[-len(again) :] if history and again else ()
    if not rows or all(each.slurm_state != _PUT_BACK for each in again):
        return record
    told = {each.number: row for each, row in zip(again[-len(rows) :], rows, strict=True)}
    attempts = tuple(_told(each, told.get(each.number)) for each in record.attempts)
    return dataclasses.replace(record, attempts=attempts)


def _put_back(attempt: Attempt, own: AttemptFiles, row: AccountingRow | None) -> Attempt:
    """The attempt as it ended when Slurm put its job back: what was seen of that id since may be the next one's."""
    start = own.start or {}
    attempt = dataclasses.replace(
        attempt,
        slurm_state=_PUT_BACK,
        reason="",
        nodes="" if "nodes" in start else attempt.nodes,
        started=None if "time" in start else attempt.started,
        ended=None,
    )
    attempt = described(attempt, own)
    return _with_run(attempt, row) if row else attempt


def _told(attempt: Attempt, row: AccountingRow | None) -> Attempt:
    return attempt if row is None or attempt.slurm_state != _PUT_BACK else _with_run(attempt, row)


def _with_run(attempt: Attempt, row: AccountingRow) -> Attempt:
    attempt = dataclasses.replace(
        attempt,
        slurm_state=row.word,
        nodes=attempt.nodes or row.nodes,
        started=attempt.started or row.started,
        ended=attempt.ended or row.ended,
    )
    return described(attempt, AttemptFiles())


def _identified(last: Attempt, newest: int, files: dict[int, AttemptFiles], task: int | None) -> list[Attempt]:
    """The attempts with Slurm's ids: what their files say, else that of the one before.

    The files of a task of an array tell the array's id; a task is only ever started again under its own.
    """
    found: list[Attempt] = []
    slurm = SlurmId("")
    for number in range(last.number, newest + 1):
        attempt = last if number == last.number else Attempt(number, task=task)
        if task is None or number == last.number:
            slurm = slurm_id_of(attempt, files.get(number, AttemptFiles())) or slurm
        found.append(dataclasses.replace(attempt, slurm_id=slurm.id, slurm_cluster=slurm.cluster))
    return found


def _same(one: Attempt, other: Attempt) -> bool:
    return (one.slurm_id, one.slurm_cluster) == (other.slurm_id, other.slurm_cluster)


def _of_own_job(record: JobRecord, evidence: Evidence, now: float) -> Attempt:
    """The attempt as its Slurm job says; it has failed, even if Slurm has not noticed yet."""
    over = conclude(record, evidence, now)
    if over.state.ended:
        return over.last
    return dataclasses.replace(over.last, slurm_state="FAILED", reason="")
