"""Slurm's state words, 20.11 to 25.11, and what each means for a job.

The base words are those of `job_state_string` in Slurm's sources. In text output a flag such as COMPLETING replaces
the base word; JSON and `%T` of some versions list both (`CANCELLED,COMPLETING`).
"""

from __future__ import annotations

from towline.models.job import JobState

STATES: dict[str, JobState] = {
    "PENDING": JobState.PENDING,
    "RUNNING": JobState.RUNNING,
    "SUSPENDED": JobState.SUSPENDED,
    "COMPLETED": JobState.SUCCEEDED,
    "CANCELLED": JobState.CANCELLED,
    "FAILED": JobState.FAILED,
    "TIMEOUT": JobState.FAILED,
    "NODE_FAIL": JobState.FAILED,
    "PREEMPTED": JobState.CANCELLED,
    "BOOT_FAIL": JobState.FAILED,
    "DEADLINE": JobState.FAILED,
    "OUT_OF_MEMORY": JobState.FAILED,
    "COMPLETING": JobState.RUNNING,
    "STAGE_OUT": JobState.PENDING,
    "CONFIGURING": JobState.PENDING,
    "EXPEDITING": JobState.PENDING,
    "RESIZING": JobState.PENDING,
    "REQUEUED": JobState.PENDING,
    "REQUEUE_FED": JobState.PENDING,
    "REQUEUE_HOLD": JobState.PENDING,
    "REQUEUED_CRON": JobState.PENDING,
    "SPECIAL_EXIT": JobState.PENDING,
    "STOPPED": JobState.SUSPENDED,
    "REVOKED": JobState.CANCELLED,
    "RESV_DEL_HOLD": JobState.PENDING,
    "SIGNALING": JobState.RUNNING,
    "LAUNCH_FAILED": JobState.FAILED,
    "RECONFIG_FAIL": JobState.FAILED,
    "POWER_UP_NODE": JobState.PENDING,
    "UPDATE_DB": JobState.UNKNOWN,
}
"""What each word means; the words of JSON lists only come last."""

_BASES = tuple(STATES)[:12]
_REMARKS = frozenset({"LAUNCH_FAILED", "RECONFIG_FAIL", "POWER_UP_NODE", "UPDATE_DB"})
"""Words that stand beside a base state in lists and do not change it."""


def state_word(text: str) -> str:
    """The one word that decides, in full: `CANCELLED by 1000` → `CANCELLED`, `OUT_OF_ME+` → `OUT_OF_MEMORY`.

    A word that is not known, or is cut so short that its meaning is open, comes back as it is.
    """
    words = [_whole(word) for word in text.strip().upper().partition(" ")[0].split(",") if word]
    flags = [word for word in words if word in STATES and word not in _BASES and word not in _REMARKS]
    bases = [word for word in words if word not in _REMARKS]
    return (flags or bases or words or [""])[0]


def _whole(word: str) -> str:
    if not word.endswith("+"):
        return word
    found = [name for name in STATES if name.startswith(word[:-1])]
    return found[0] if len({STATES[name] for name in found}) == 1 else word


def job_state(text: str) -> JobState:
    """Towline's word for Slurm's; `UNKNOWN` for a word that no version up to 25.11 uses."""
    return STATES.get(state_word(text), JobState.UNKNOWN)
