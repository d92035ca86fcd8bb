"""A command or a shell inside a running job: on the node of one of its ranks, and in that rank's container.

It is a step of the job (`srun --overlap`), so nobody logs in to compute nodes, which sites forbid (pam_slurm_adopt).
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from towline.engine.outcomes import check_ending, expect_done, last_words
from towline.engine.session import Session
from towline.launch.inside import files_inside
from towline.models.errors import NotFound, RemoteFault, TowlineError, UsageError
from towline.models.job import JobRecord
from towline.remote.base import HandsOver, Operation, Sink
from towline.slurm.inside import GpuReading as GpuReading
from towline.slurm.inside import Place as Place
from towline.slurm.inside import gpus_call, inside_call, parse_gpus
from towline.slurm.submission import ScriptExit, environment_error

_SAFE = re.compile(r"[\w./ +@:=,%-]+")
_LONGEST_GPUS = 60.0
_WHEN_LOST = "It was told to end, and may have done a part of its work: look at that before you run it again."


@dataclass(frozen=True)
class Ran:
    """What a command left that ran inside a job.

    Attributes:
        code: its exit code.
        stdout, stderr: what it wrote; stdout is empty when a sink took it.
    """

    code: int
    stdout: bytes
    stderr: bytes


async def run_inside(
    session: Session, record: JobRecord, command: Sequence[str], place: Place, sink: Sink | None = None
) -> Ran:
    """Run a command, without stdin.

    Raises:
        NotFound: the job does not run, or no such rank.
        Unreachable, OutcomeUnknown: the connection failed.
    """
    path = await _prepare(session, record, command, place)
    operation = Operation("inside", 'exec /bin/sh "$1"', (path,), timeout=None)
    outcome = await session.run(operation, sink=sink)
    check_ending(outcome, "running a command inside the job", when_lost=_WHEN_LOST)
    return Ran(outcome.exit_code or 0, outcome.stdout, outcome.stderr)


async def attend(session: Session, record: JobRecord, command: Sequence[str], place: Place, *, terminal: bool) -> int:
    """Run a command, or a shell when there is none, with this process's terminal or pipes; gives its exit code.

    Raises:
        NotFound: the job does not run, or no such rank.
        UsageError: the cluster cannot be reached in this way.
        Unreachable, OutcomeUnknown: the connection failed.
    """
    remote = session.remote
    if not isinstance(remote, HandsOver):
        raise UsageError("this way to the cluster has no terminals", fix="Use a profile with `transport = ssh`.")
    path = await _prepare(session, record, command, place)
    if not _SAFE.fullmatch(path):
        raise UsageError(f"{path!r} cannot be named to every login shell", fix="Choose a root with a plain name.")
    return await remote.hand_over(f"exec /bin/sh '{path}'{' pty' if terminal else ''}", terminal=terminal)


async def read_gpus(session: Session, record: JobRecord) -> tuple[GpuReading, ...]:
    """What every GPU of the job does now.

    Raises:
        NotFound: the job does not run.
        RemoteFault: no node tells about GPUs; the reason is with it.
    """
    call = gpus_call(record.last.slurm_id, record.directory, session.profile.setup)
    outcome = await session.run(Operation(call.name, call.script, call.args, call.files, _LONGEST_GPUS, repeats=True))
    check_ending(outcome, "asking for GPUs")
    readings = parse_gpus(outcome.stdout.decode(errors="replace"))
    if error := environment_error(outcome.exit_code or 0, last_words(outcome.stderr)):
        raise error
    if outcome.exit_code == ScriptExit.NOT_RUNNING:
        raise _errors(record, Place())[ScriptExit.NOT_RUNNING]
    if not readings:
        said = (outcome.stderr or outcome.stdout).decode(errors="replace").strip()
        raise RemoteFault(
            f"the nodes of job {record.reference} tell of no GPUs",
            why=said or "nvidia-smi printed nothing.",
            fix=f"See whether the job has any: towline status {record.reference}",
        )
    return readings


async def _prepare(session: Session, record: JobRecord, command: Sequence[str], place: Place) -> str:
    """Bring the command there; gives the path of the script that runs it."""
    if record.state.ended or not record.last.slurm_id:
        raise _errors(record, place)[ScriptExit.NOT_RUNNING]
    if place.role and place.role not in record.roles:
        raise UsageError(f"job {record.reference} has no role {place.role}")
    call = inside_call(
        record.directory,
        record.task,
        record.last.slurm_id,
        place,
        secrets.token_hex(8),
        files_inside(command, secrets=place.secrets),
        session.profile.setup,
    )
    outcome = await session.run(Operation(call.name, call.script, call.args, call.files))
    if error := environment_error(outcome.exit_code or 0, last_words(outcome.stderr)):
        raise error
    return expect_done(outcome, "going into the job", _errors(record, place)).decode().rstrip("\n")


def _errors(record: JobRecord, place: Place) -> dict[int, TowlineError]:
    named = "" if place.rank is None else f" {place.rank}"
    where = f" on {place.node}" if place.node else ""
    return {
        ScriptExit.NOT_RUNNING: NotFound(
            f"job {record.reference} does not run",
            why=f"It is {record.state}.",
            fix=f"`towline status {record.reference}` says what it waits for, or how it ended.",
        ),
        ScriptExit.NO_RANK: NotFound(
            f"no rank{named} of job {record.reference} runs{where}",
            why="It has not begun yet, or has ended already.",
            fix="Try again once its log has a line, or name another with --rank, --node or --role.",
        ),
        ScriptExit.STAGING: RemoteFault(
            f"nothing can be written to {record.directory}",
            why="The command is brought there first.",
            fix="See whether the disk or your quota there is full: towline doctor",
        ),
    }
