"""What came of a cancel (`scripts/cancel.sh`)."""

from __future__ import annotations

from dataclasses import dataclass

from towline.slurm.parse import SlurmId


@dataclass(frozen=True)
class CancelAnswer:
    """What a cancel did; an unknown or ended job is no failure.

    Attributes:
        marked: whether the job directory says `cancelled` now; False when there is no such directory.
        told: ids that scancel was told to end.
        failed: what Slurm said when it could not be told; empty when all went well.
        looked_up: whether jobs were also looked for by token; if not, one may exist whose id is not known.
    """

    marked: bool
    told: tuple[SlurmId, ...]
    failed: str = ""
    looked_up: bool = True


def parse_cancel(stdout: str) -> CancelAnswer:
    """Read the answer of the cancel script."""
    raise NotImplementedError
