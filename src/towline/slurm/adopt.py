"""The user's jobs on a cluster, from their directories (`scripts/adopt.sh`)."""

from __future__ import annotations

from dataclasses import dataclass

from towline.models.ids import is_job_id
from towline.slurm.calls import Call
from towline.slurm.frames import is_complete, parse_frames
from towline.slurm.parse import SlurmId, parse_sbatch
from towline.slurm.scripts import script


@dataclass(frozen=True)
class Kept:
    """What a job's directory keeps of it; jobs can write there, so it is not trusted.

    Attributes:
        made: when it was made, in seconds since 1970 on the cluster's clock.
        slurm: Slurm's id of the first attempt.
        description: text of `job.json`.
    """

    made: float
    slurm: SlurmId
    description: str


@dataclass(frozen=True)
class Found:
    """What lies below the root.

    Attributes:
        complete: whether the script came to its end.
        jobs: the jobs by id.
        strange: names of directories that are not safely the user's own; `jobs` for all of it.
    """

    complete: bool
    jobs: dict[str, Kept]
    strange: tuple[str, ...]


def adopt_call(root: str, job_id: str = "") -> Call:
    """Ask for the jobs below the root, or for one of them; read the answer with `parse_found`."""
    return Call("adopt", script("adopt"), (root, job_id), repeats=True)


def parse_found(stdout: str) -> Found:
    """Read the answer; a job whose name is no id, or that Slurm has never had, is passed over."""
    frames = parse_frames(stdout)
    jobs: dict[str, Kept] = {}
    for frame in frames:
        if frame.kind == "job" and len(frame.head) == 4 and is_job_id(frame.head[1]) and frame.head[2].isdecimal():
            try:
                jobs[frame.head[1]] = Kept(float(frame.head[2]), parse_sbatch(frame.head[3]), frame.out)
            except ValueError:
                continue
    strange = tuple(frame.head[1] for frame in frames if frame.kind == "strange" and len(frame.head) == 2)
    return Found(is_complete(frames), jobs, strange)
