"""TAO's words for what becomes of a job."""

from __future__ import annotations

from typing import Literal, get_args

from towline.models.job import JobRecord, JobState

Word = Literal["Pending", "Running", "Paused", "Complete", "Error", "Canceled", "Canceling", "Unknown"]
WORDS: tuple[Word, ...] = get_args(Word)
TERMINAL = frozenset({"Complete", "Error", "Canceled"})
"""The words of ends. Unknown is none of them: it says that nothing is known, and nothing more."""

_OF_STATES: dict[JobState, Word] = {
    JobState.SUBMITTING: "Pending",
    JobState.REFUSED: "Error",
    JobState.PENDING: "Pending",
    JobState.RUNNING: "Running",
    JobState.SUSPENDED: "Paused",
    JobState.SUCCEEDED: "Complete",
    JobState.FAILED: "Error",
    JobState.CANCELLED: "Canceled",
}
_TAKEN_AWAY = frozenset({"PREEMPTED", "REVOKED"})
"""Ends of Slurm's that TAO counts as cancelled when no attempt follows."""
_STOPPED = frozenset({"STOPPED", "SUSPENDED"})


def word_of(record: JobRecord, before: str = "") -> str:
    """The word for a job as it is known now.

    Args:
        record: the job.
        before: the word that was known before. It stays where nothing is known now; `Canceling` stays until the end.
    """
    if record.state is JobState.FAILED and record.last.slurm_state in _TAKEN_AWAY:
        return "Canceled"
    if record.last.slurm_state in _STOPPED and not record.state.ended:
        return "Paused"
    found = _OF_STATES.get(record.state)
    if found is None:
        return before or "Pending"
    return before if before == "Canceling" and not record.state.ended else found
