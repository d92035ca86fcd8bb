"""What an error of sbatch means: never, later, or perhaps done."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class RefusalKind(str, Enum):
    """Whether the same request may succeed."""

    PERMANENT = "permanent"
    TEMPORARY = "temporary"
    AMBIGUOUS = "ambiguous"
    """The job may exist although an error was printed: look it up before sending it again."""


@dataclass(frozen=True)
class Refusal:
    """One error of sbatch, understood.

    Attributes:
        kind: whether the same request may succeed later.
        code: a stable word, for example `account`, `queue-full`, `controller-away`.
        said: Slurm's own line.
        remedy: what to do, in one sentence.
    """

    kind: RefusalKind
    code: str
    said: str
    remedy: str


def classify_refusal(stderr: str) -> Refusal:
    """Understand what sbatch printed on stderr; what is not known counts as permanent, with Slurm's own words."""
    raise NotImplementedError
