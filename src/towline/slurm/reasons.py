"""Why a job waits, in plain words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reason:
    """A pending reason, explained.

    Attributes:
        word: Slurm's word or text.
        sentence: what it means, for people.
        blocked: whether the job can never start unless somebody acts.
        way_out: what to do; empty when waiting is all there is to do.
    """

    word: str
    sentence: str
    blocked: bool = False
    way_out: str = ""


def explain_reason(reason: str) -> Reason:
    """Explain what `squeue` gives as a pending job's reason; an unknown word is passed on as it is."""
    raise NotImplementedError
