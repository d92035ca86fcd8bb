"""How an attempt ended by its own files. Pure."""

from __future__ import annotations

import dataclasses

from towline.launch.records import Decision, EndRecord, decision_record, end_record
from towline.models.job import Attempt
from towline.slurm.poll import AttemptFiles

_NEVER_RAN = frozenset({"no-container", "launch", "check", "torn", "spent"})
"""Reasons of ends that leave the job without a code of its own: the command never ran."""

_BY_SIGNAL = 143
"""What the supervisor writes for a command that ended on the warning before the walltime, without a code to tell."""

_CAUSES = {
    "NODE_FAIL": "node",
    "BOOT_FAIL": "node",
    "PREEMPTED": "preempted",
    "TIMEOUT": "time",
    "OUT_OF_MEMORY": "memory",
}
"""What Slurm's words for ends mean where nobody in the job had the time to say it."""

_NO_FAILURE = frozenset({"done", "cancelled", "stopped", "paused"})


def own_end(attempt: Attempt, files: AttemptFiles) -> EndRecord | None:
    """The job's own record of its end, when it is this attempt's and says how the command ended."""
    end = end_record(files.end) if files.end else None
    stopped = end is not None and end.verdict in ("stopped", "cancelled")
    foreign = files.claim not in ("", attempt.slurm_id.partition("_")[0])
    return None if end is None or stopped or foreign else end


def own_decision(files: AttemptFiles) -> Decision | None:
    """What the supervisor, or a client, made of the end; None when nobody has."""
    found = decision_record(files.decision) if files.decision else None
    return None if found is None or found.cause == "stopped" else found


def with_own_code(attempt: Attempt, end: EndRecord) -> Attempt:
    """The command's code; there is none when the command never ran, or was ended before it was done."""
    if end.reason in _NEVER_RAN or (end.reason == "time" and end.code == _BY_SIGNAL):
        return dataclasses.replace(attempt, exit_code=None, exit_source="", failed_role=end.role)
    return dataclasses.replace(
        attempt, exit_code=end.code, exit_source="job", failed_rank=end.rank, failed_role=end.role
    )


def with_decision(attempt: Attempt, files: AttemptFiles) -> Attempt:
    """The attempt with the class of its end, and the nodes that were found bad."""
    found = own_decision(files)
    if found is None:
        return dataclasses.replace(attempt, cause=attempt.cause or _CAUSES.get(attempt.slurm_state, ""))
    if found.cause in _NO_FAILURE:
        return attempt
    return dataclasses.replace(attempt, cause=found.cause, evidence=found.evidence, bad_nodes=found.nodes)


def described(attempt: Attempt, files: AttemptFiles) -> Attempt:
    """An attempt that is over, with what its files say; its job may be the next attempt's in Slurm's records."""
    start, end = files.start or {}, files.end or {}
    attempt = dataclasses.replace(
        attempt,
        nodes=attempt.nodes or start.get("nodes", ""),
        started=attempt.started or _seconds(start.get("time")),
        ended=attempt.ended or _seconds(end.get("time")),
    )
    if found := own_end(attempt, files):
        attempt = with_own_code(attempt, found)
    return with_decision(attempt, files)


def _seconds(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 12 else None
