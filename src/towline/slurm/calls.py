"""The operations on a login host as values: which script, with which arguments and files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from towline.slurm.parse import SlurmId


@dataclass(frozen=True)
class Call:
    """What the remote room needs for one operation; the fields are those of `remote.base.Operation`.

    Attributes:
        name: a word for messages.
        script: POSIX sh.
        args: positional parameters.
        files: relative path → content, or a local file to send.
        survives: whether the script goes on when the connection is lost.
    """

    name: str
    script: str
    args: tuple[str, ...] = ()
    files: Mapping[str, bytes | Path] = field(default_factory=dict[str, "bytes | Path"])
    survives: bool = False


@dataclass(frozen=True)
class Submission:
    """One attempt that shall become exactly one Slurm job.

    Attributes:
        root: Towline's directory on the shared file system.
        job_id: Towline's id of the job.
        attempt: number of the attempt, from 1.
        token: Slurm's job name of the attempt.
        sbatch: the command, from `towline.slurm.commands.sbatch`.
        intent: when the submission was decided, in seconds since 1970 on this machine's clock.
        message_timeout: Slurm's MessageTimeout in seconds; a claim is broken after twice that.
        owner: who submits, for the record in `attempts/<n>/submitter`.
    """

    root: str
    job_id: str
    attempt: int
    token: str
    sbatch: tuple[str, ...]
    intent: float
    message_timeout: int = 10
    owner: str = ""


@dataclass(frozen=True)
class RequiredPath:
    """A path that must be there before anything is written.

    Attributes:
        path: absolute path on the cluster.
        readable_file: whether it must be a regular file that the user can read (an image).
    """

    path: str
    readable_file: bool = False


@dataclass(frozen=True)
class PollTarget:
    """One attempt to look at.

    Attributes:
        job_id: Towline's id.
        attempt: number of the attempt.
        slurm: Slurm's id, None while it is not known.
    """

    job_id: str
    attempt: int
    slurm: SlurmId | None = None


def facts_call(setup: str = "") -> Call:
    """Ask what the cluster is; read the answer with `towline.slurm.site.parse_facts`."""
    raise NotImplementedError


def stage_call(
    submission: Submission,
    files: Mapping[str, bytes | Path],
    required: Sequence[RequiredPath] = (),
    setup: str = "",
) -> Call:
    """Check the paths, write the job directory, submit; read the answer with `towline.slurm.submission`.

    Args:
        submission: what to submit.
        files: path below the job directory → content.
        required: what must exist before anything is written.
        setup: the profile's shell line, run before Slurm's commands.
    """
    raise NotImplementedError


def submit_call(submission: Submission, setup: str = "") -> Call:
    """Submit an attempt whose directory is staged, or find out what became of it."""
    raise NotImplementedError


def poll_call(root: str, targets: Sequence[PollTarget], setup: str = "") -> Call:
    """Look at any number of attempts; read the answer with `towline.slurm.poll.parse_poll`."""
    raise NotImplementedError


def cancel_call(directory: str, token: str, ids: Sequence[SlurmId] = (), setup: str = "") -> Call:
    """Cancel a job: by the ids known here, by those in its directory, and by its token."""
    raise NotImplementedError
