"""`Waiting`: why a job waits, with what is known about when it will start."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Waiting:
    """Why a job waits.

    Attributes:
        reason: Slurm's word or text.
        sentence: what it means.
        blocked: whether the job can never start unless somebody acts.
        way_out: what to do; empty when waiting is all there is to do.
        facts: what is behind it, in sentences: free nodes, jobs in front, limits, dependencies, reservations.
        start_in: seconds until Slurm expects to start it; None when it does not say.
        nodes: where that would be; may be empty.
        sooner: what would let it start sooner, in sentences.
    """

    reason: str
    sentence: str
    blocked: bool = False
    way_out: str = ""
    facts: tuple[str, ...] = ()
    start_in: int | None = None
    nodes: str = ""
    sooner: tuple[str, ...] = ()
