"""Why a job failed, in the shape that TAO's SDK documents."""

from __future__ import annotations

from typing import Any

from towline.models.job import Attempt, JobRecord, JobState

PROGRAM, INFRASTRUCTURE = "ERR_PROGRAM", "ERR_INFRA"

_OF_SLURM: dict[str, tuple[str, str]] = {
    "NODE_FAIL": (INFRASTRUCTURE, "A node was lost; the job can start again as it is."),
    "BOOT_FAIL": (INFRASTRUCTURE, "A node did not boot; the job can start again as it is."),
    "LAUNCH_FAILED": (INFRASTRUCTURE, "Slurm could not start the job; submit it again."),
    "RECONFIG_FAIL": (INFRASTRUCTURE, "Slurm could not prepare the nodes; submit it again."),
    "PREEMPTED": (INFRASTRUCTURE, "The job made room for a more important one; submit it again."),
    "OUT_OF_MEMORY": (PROGRAM, "It needed more of the host's memory than it had; ask for more, or use fewer workers."),
    "TIMEOUT": (PROGRAM, "It ran out of time; ask for more, or let it go on from its checkpoints."),
    "DEADLINE": (PROGRAM, "It could not end before its deadline."),
}
_ENDED_WELL = frozenset({"", "COMPLETED", "COMPLETING", "PENDING", "RUNNING", "CONFIGURING", "REQUEUED"})


def failure_of(record: JobRecord, lines: str = "") -> dict[str, Any] | None:
    """What is known of a job's failures; None for a job of which no attempt failed.

    Args:
        record: the job.
        lines: the last lines of its log.
    """
    failed = [attempt for attempt in record.attempts if attempt.slurm_state not in _ENDED_WELL]
    if record.state is not JobState.FAILED and (not failed or record.state.ended):
        return None
    last = record.last if record.state.ended else failed[-1]
    err_class, suggestion = _OF_SLURM.get(last.slurm_state, (PROGRAM, "Look at the end of the log."))
    return {
        "err_class": err_class,
        "suggestion": suggestion,
        "reason": record.note if record.state.ended else last.slurm_state,
        "exit_code": last.exit_code,
        "retriable": err_class == INFRASTRUCTURE,
        "log_tail": lines,
        "job_failure_by_node_event": [_event(each) for each in failed or [record.last]],
    }


def _event(attempt: Attempt) -> dict[str, Any]:
    name = attempt.slurm_state or "FAILED"
    code = "" if attempt.exit_code is None else f", exit code {attempt.exit_code}"
    rank = "" if attempt.failed_rank is None else f", rank {attempt.failed_rank}"
    return {
        "node_event_name": name,
        "node": attempt.nodes,
        "message": f"attempt {attempt.number} (Slurm job {attempt.slurm_id}): {name}{code}{rank}",
    }
