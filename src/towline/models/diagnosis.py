"""`Diagnosis`: why an attempt ended, with the evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

FaultClass = Literal[
    "user",
    "infrastructure",
    "node",
    "time",
    "memory",
    "preempted",
    "image",
    "filesystem",
    "idle-reaper",
    "ambiguous",
]
"""Whose fault an end was: `user` is the command's own, `infrastructure` the cluster's without a guilty node, `node` one
node's, `time` the walltime's, `memory` that of a host's memory limit, `ambiguous` cannot be told from what is there."""

FAULT_CLASSES: tuple[FaultClass, ...] = get_args(FaultClass)

Retry = Literal["yes", "no", "resume"]
"""Whether another attempt makes sense; `resume` only for a job that goes on where it was."""


@dataclass(frozen=True)
class Diagnosis:
    """Why an attempt ended.

    Attributes:
        kind: whose fault it was.
        rule: name of the rule that says so, see docs/why.md; empty when none did.
        means: what happened, one sentence for a person.
        advice: what to do, for a person.
        evidence: the line that shows it, or the fact of Slurm's.
        file: the log file of the attempt that has the line, relative to its directory; empty for a fact.
        offset: where in the file the line begins, in bytes; None when not known.
        rank: the rank that it is about; None when not known.
        node: the node that it is about; empty when not known.
        retry: whether another attempt makes sense.
        blames: whether the node is at fault and better left out the next time.
        partial: whether logs were too long to be read whole.
    """

    kind: FaultClass
    rule: str = ""
    means: str = ""
    advice: str = ""
    evidence: str = ""
    file: str = ""
    offset: int | None = None
    rank: int | None = None
    node: str = ""
    retry: Retry = "no"
    blames: bool = False
    partial: bool = False

    @property
    def summary(self) -> str:
        """What happened in one sentence, with the line that shows it."""
        where = self.where
        told = self.means[:1].lower() + self.means[1:].rstrip(".")
        return f"{told}{f' ({where})' if where else ''}{f': {self.evidence}' if self.file else ''}"

    @property
    def where(self) -> str:
        """Rank and node, as far as they are known: `rank 3 on node2`."""
        rank = "" if self.rank is None else f"rank {self.rank}"
        node = f"on {self.node}" if self.node else ""
        return " ".join(filter(None, (rank, node)))
