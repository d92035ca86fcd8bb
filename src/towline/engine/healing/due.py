"""Whether a job that Slurm says has ended gets another attempt. Pure: evidence in, a decision out."""

from __future__ import annotations

from dataclasses import dataclass

from towline.engine.watching.endings import own_decision
from towline.engine.watching.verdict import Evidence
from towline.launch.records import end_record
from towline.models.job import JobRecord, JobState
from towline.models.spec import JobSpec
from towline.slurm.poll import AttemptFiles

SETTLING_SECONDS = 30
"""How long after its end a job's files are waited for: a network file system shows them late."""

_CAUSES = {"NODE_FAIL": "node", "BOOT_FAIL": "node", "PREEMPTED": "preempted"}
"""What Slurm's words for ends mean that nobody inside the job could see."""

_HELD = "launch failed requeued held"


@dataclass(frozen=True)
class Due:
    """A next attempt is due.

    Attributes:
        cause: class of the failure.
        nodes: nodes that are to be left out, as Slurm lists them.
    """

    cause: str
    nodes: str = ""


def next_due(record: JobRecord, evidence: Evidence, spec: JobSpec) -> Due | None:
    """The attempt that is due after a job has ended as `record` says; None for a job that is over for good.

    The budget is not looked at here, for it is counted from the files on the cluster (`slurm/scripts/again.sh`).
    """
    files = evidence.files
    if not record.state.ended or record.state in (JobState.SUCCEEDED, JobState.REFUSED):
        return None
    if files.cancelled or not files.present or record.tasks is not None or record.task is not None:
        return None
    if decision := own_decision(files):
        return Due(decision.cause, decision.nodes) if decision.next else None
    if spec.restart == "never":
        return None
    return _after(record, evidence, spec)


def _after(record: JobRecord, evidence: Evidence, spec: JobSpec) -> Due | None:
    """After an end that nobody in the job has judged."""
    files, attempt = evidence.files, record.last
    word = attempt.slurm_state
    if word in _CAUSES:
        return Due(_CAUSES[word])
    if word == "TIMEOUT":
        return Due("time") if spec.resume else None
    if evidence.absent:
        # Told to end, it was cancelled or preempted, and nobody says which; without a word it went down with its node.
        return Due("ambiguous") if files.start and not files.signal and not files.end else None
    if word == "FAILED" and not _has_end(files):
        return Due("ambiguous", "" if files.start else attempt.nodes)
    return None


def _has_end(files: AttemptFiles) -> bool:
    return files.end is not None and end_record(files.end) is not None


def is_settling(record: JobRecord, evidence: Evidence, now: int | None) -> bool:
    """Whether the files of a job that failed just now may still come.

    Args:
        record: the job.
        evidence: what the poll saw.
        now: the time on the cluster's clock.
    """
    files = evidence.files
    if record.state is not JobState.FAILED or record.last.slurm_state != "FAILED" or _has_end(files):
        return False
    ended = record.last.ended
    return files.start is not None and now is not None and ended is not None and now - ended < SETTLING_SECONDS


def is_held(record: JobRecord) -> bool:
    """Whether Slurm has put the job back and holds it, because a node could not start it (a prolog failed, say)."""
    return record.state is JobState.PENDING and record.last.reason == _HELD


def was_put_back(before: JobRecord, after: JobRecord, evidence: Evidence) -> bool:
    """Whether Slurm has put the job back before anything of it ran, as when a cloud node does not boot.

    A job that is put back has a new time of submission.
    """
    was, now = before.last, after.last
    same = (was.number, was.slurm_id, was.slurm_cluster) == (now.number, now.slurm_id, now.slurm_cluster)
    if not same or after.state is not JobState.PENDING or evidence.files.start is not None or after.tasks is not None:
        return False
    return was.submitted is not None and now.submitted is not None and now.submitted > was.submitted
