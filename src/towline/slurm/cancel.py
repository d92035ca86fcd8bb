"""What came of a cancel (`scripts/cancel.sh`)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from towline.slurm.frames import Frame, is_complete, parse_frames, plain_id
from towline.slurm.parse import SlurmId

_NO_FAILURE = re.compile(r"invalid job id|already (?:completing|completed|finished)|job/step already", re.IGNORECASE)


@dataclass(frozen=True)
class CancelAnswer:
    """What a cancel did; an unknown or ended job is no failure.

    Attributes:
        marked: whether the job directory says `cancelled` now; False when there is no such directory.
        told: ids that scancel was told to end, of tasks like `12_3`.
        failed: what Slurm or the file system said when it could not be done; empty when all went well.
        looked_up: whether jobs were also looked for by token; if not, one may exist whose id is not known.
    """

    marked: bool
    told: tuple[SlurmId, ...]
    failed: str = ""
    looked_up: bool = True


def parse_cancel(stdout: str) -> CancelAnswer:
    """Read the answer of the cancel script."""
    frames = parse_frames(stdout)
    marks = [frame.head[1] for frame in frames if frame.kind == "mark" and len(frame.head) > 1]
    queries = [frame for frame in frames if frame.kind == "query" and len(frame.head) == 5]
    scancels = [frame for frame in queries if frame.head[2] == "scancel"]
    failures = [said for frame in scancels if (said := _failure(frame))]
    if "failed" in marks:
        failures.append("the job directory could not be marked as cancelled")
    if not is_complete(frames):
        failures.append("the answer broke off")
    return CancelAnswer(
        marked="done" in marks,
        told=tuple(slurm for frame in scancels for slurm in _ids(frame)),
        failed="\n".join(failures),
        looked_up=all(frame.head[1] == "0" for frame in queries if frame.head[2] == "squeue"),
    )


def _ids(frame: Frame) -> tuple[SlurmId, ...]:
    return tuple(SlurmId(word, plain_id(frame.head[3])) for word in frame.head[4].split(",") if word)


def _failure(frame: Frame) -> str:
    lines = [line for line in frame.err.splitlines() if line.strip() and not _NO_FAILURE.search(line)]
    if frame.head[1] == "0":
        return ""
    if frame.err.strip() and not lines:
        return ""
    return "\n".join(lines) or f"scancel ended with exit code {frame.head[1]}"
