"""Why a job failed, in the shape that TAO's SDK documents."""

from __future__ import annotations

from typing import Any

from towline.models.diagnosis import Diagnosis, FaultClass
from towline.models.job import Attempt, JobRecord, JobState

PROGRAM, INFRASTRUCTURE = "ERR_PROGRAM", "ERR_INFRA"

_NOT_THE_PROGRAMS: frozenset[FaultClass] = frozenset({"infrastructure", "node", "preempted", "filesystem", "image"})
_OF_SLURM = frozenset({"NODE_FAIL", "BOOT_FAIL", "LAUNCH_FAILED", "RECONFIG_FAIL", "PREEMPTED", "REQUEUED"})
"""Ends of Slurm's that say whose fault they are; it puts jobs back for its own reasons."""
_NO_FAILURES = frozenset({"", "COMPLETED", "COMPLETING", "PENDING", "RUNNING", "CONFIGURING", "CANCELLED"})


def failure_of(record: JobRecord, found: Diagnosis | None) -> dict[str, Any] | None:
    """What is known of a job's failures; None for one of which no attempt failed.

    Args:
        record: the job.
        found: why it ended, or why an attempt before the newest one did; None when nothing shows it.
    """
    failed = [attempt for attempt in record.attempts if attempt.slurm_state not in _NO_FAILURES]
    if record.state is JobState.FAILED or (found and not failed):
        failed = failed or [record.last]
    if not failed:
        return None
    last = failed[-1]
    if found is None:
        infrastructure = last.cause in _NOT_THE_PROGRAMS or (not last.cause and last.slurm_state in _OF_SLURM)
        found = Diagnosis(
            "infrastructure" if infrastructure else "ambiguous",
            advice="Submit it again." if infrastructure else "Look at the end of the log.",
            retry="yes" if infrastructure else "no",
        )
    return {
        "err_class": INFRASTRUCTURE if found.kind in _NOT_THE_PROGRAMS else PROGRAM,
        "suggestion": found.advice,
        "reason": found.means or record.note or last.slurm_state,
        "kind": found.kind,
        "pattern": found.rule,
        "match": found.evidence,
        "rank": found.rank,
        "node": found.node,
        "exit_code": last.exit_code,
        "retriable": found.retry != "no",
        "job_failure_by_node_event": [_event(each) for each in failed],
    }


def _event(attempt: Attempt) -> dict[str, Any]:
    name = attempt.slurm_state or "REFUSED"
    code = "" if attempt.exit_code is None else f", exit code {attempt.exit_code}"
    rank = "" if attempt.failed_rank is None else f", rank {attempt.failed_rank}"
    why = attempt.evidence or (attempt.diagnosis.evidence if attempt.diagnosis else "")
    told = f"attempt {attempt.number} (Slurm job {attempt.slurm_id}): {name}{code}{rank}"
    return {
        "node_event_name": name,
        "node": attempt.bad_nodes or attempt.nodes,
        "message": f"{told}: {why}" if why else told,
    }
