"""The operations on a login host as values: which script, with which arguments and files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from towline.models.values import check_token
from towline.slurm.accounting import ASSOCIATION_FIELDS, QOS_FIELDS
from towline.slurm.commands import FREE_FORMAT, SACCT_FIELDS, SINFO_FORMAT, SQUEUE_FORMAT
from towline.slurm.parse import SlurmId
from towline.slurm.poll import PollTarget, build_poll_input
from towline.slurm.scripts import script

Files = Mapping[str, "bytes | Path"]


@dataclass(frozen=True)
class Call:
    """What the remote room needs for one operation; the fields are those of `remote.base.Operation`.

    Attributes:
        name: a word for messages.
        script: POSIX sh.
        args: positional parameters.
        files: relative path → content, or a local file to send.
        survives: whether the script goes on when the connection is lost.
        repeats: whether running it twice does no harm.
    """

    name: str
    script: str
    args: tuple[str, ...] = ()
    files: Files = field(default_factory=dict[str, "bytes | Path"], repr=False)
    survives: bool = False
    repeats: bool = False


@dataclass(frozen=True)
class Submission:
    """One attempt that shall become exactly one Slurm job.

    Attributes:
        root: absolute path of Towline's directory on the shared file system.
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

    @property
    def directory(self) -> str:
        """The job directory."""
        return f"{self.root}/jobs/{self.job_id}"


@dataclass(frozen=True)
class WhyTarget:
    """An attempt whose end shall be explained.

    Attributes:
        attempt: number of the attempt.
        task: number of an array's task, when it is about one.
        slurm: Slurm's id, when Slurm shall be asked for its steps.
        names: log files and directories of such in the attempt's directory.
    """

    attempt: int
    task: int | None
    slurm: SlurmId | None
    names: tuple[str, ...]


@dataclass(frozen=True)
class Budget:
    """What a search may take at most.

    Attributes:
        seconds: time.
        bytes: of logs that are read.
    """

    seconds: int
    bytes: int


@dataclass(frozen=True)
class RequiredPath:
    """A path that must be there before anything is written.

    Attributes:
        path: absolute path on the cluster.
        image: whether it must be a squashfs image that the user can read.
        python: whether that image must hold a Python.
        ngc: whether it must hold what brings data of NGC, too.
    """

    path: str
    image: bool = False
    python: bool = False
    ngc: bool = False


def facts_call(setup: str = "") -> Call:
    """Ask what the cluster is; read the answer with `towline.slurm.site.parse_facts`."""
    fields = (SINFO_FORMAT, ASSOCIATION_FIELDS, QOS_FIELDS)
    return Call("facts", script("facts"), fields, setup_files(setup), repeats=True)


def look_call(root: str, batch: bytes, required: Sequence[RequiredPath], setup: str = "") -> Call:
    """See whether the paths are there, what sbatch says of the script and which nodes are free; nothing is changed.

    Read the answer with `towline.slurm.look.parse_look`.
    """
    files = {**setup_files(setup), "required": _required(required), "batch": batch}
    return Call("look", script("look"), (root, FREE_FORMAT), files, repeats=True)


def stage_call(
    submission: Submission,
    files: Files,
    required: Sequence[RequiredPath] = (),
    setup: str = "",
) -> Call:
    """Check the paths, write the job directory, submit; read the answer with `towline.slurm.submission`.

    Args:
        submission: what to submit.
        files: path below the job directory → content.
        required: what must exist before anything is written.
        setup: the profile's shell line, run before Slurm's commands.

    Raises:
        ValueError: a path or a name could not be passed on unchanged.
    """
    sent = {f"files/{_relative(name)}": content for name, content in files.items()}
    return Call(
        "submit",
        script("stage"),
        (submission.root, submission.job_id, *_attempt(submission)),
        {**setup_files(setup), **sent, "required": _required(required)},
        survives=True,
    )


def submit_call(submission: Submission, setup: str = "") -> Call:
    """Submit an attempt whose directory is staged, or find out what became of it."""
    args = (submission.directory, *_attempt(submission))
    return Call("submit", script("submit"), args, setup_files(setup), survives=True)


def preparation_call(place: str, name: str, submission: Submission, files: Files, setup: str = "") -> Call:
    """Have one job make something, however many ask for it; read the answer with `towline.slurm.submission`.

    Args:
        place: the directory that it is made in, for example the cache of images.
        name: its name there.
        submission: the attempt; its directory is `<place>/imports/<name>`.
        files: name → content, for `script/` of that directory.
        setup: the profile's shell line.
    """
    sent = {f"files/{_relative(path)}": content for path, content in files.items()}
    args = (place, name, *_attempt(submission))
    return Call("prepare", script("prepare"), args, {**setup_files(setup), **sent}, survives=True)


def again_call(submission: Submission, end: Mapping[str, str], setup: str = "") -> Call:
    """Submit the next attempt of a job whose last one has ended; read the answer with `towline.slurm.submission`.

    Args:
        submission: the next attempt; its command is `sbatch` with options only.
        end: how the last one ended and what the budget is, see `scripts/again.sh`.
        setup: the profile's shell line.
    """
    lines = "".join(f"{key}={_line(value)}\n" for key, value in end.items())
    args = (submission.directory, *_attempt(submission))
    return Call("again", script("again"), args, {**setup_files(setup), "end": lines.encode()}, survives=True)


def pause_call(directory: str, wish: str, slurm: SlurmId, *, waits: bool, resumes: bool, setup: str = "") -> Call:
    """Pause a job, or let it go on (`wish` is `pause` or `resume`); see `scripts/pause.sh`."""
    words = ("yes" if waits else "no", "yes" if resumes else "no", slurm.id)
    return Call("pause", script("pause"), (directory, wish, *words), setup_files(setup))


def release_call(slurm: SlurmId, directory: str, setup: str = "") -> Call:
    """Let a job into the queue again that Slurm holds because a node could not start it."""
    return Call("release", script("release"), (slurm.id, directory), setup_files(setup), repeats=True)


def find_call(submission: Submission, setup: str = "", *, withdraw: bool = False) -> Call:
    """Find out what became of an attempt whose answer was lost; nothing is submitted, and a second job of it ended.

    Read the answer with `towline.slurm.submission`: `NO_JOB` says that there is none, `IN_FLIGHT` that another
    process is at it.

    Args:
        submission: the attempt.
        setup: the profile's shell line.
        withdraw: when there is no job, see to it that none comes any more, whoever is still at it; `WITHDRAWN` says
            that this was done.
    """
    args = (submission.directory, *_attempt(replace(submission, sbatch=("yes" if withdraw else "no",))))
    return Call("find", script("find"), args, setup_files(setup))


def poll_call(
    root: str,
    targets: Sequence[PollTarget],
    setup: str = "",
    accounts: Iterable[SlurmId] = (),
    past: Iterable[SlurmId] = (),
) -> Call:
    """Look at any number of attempts; read the answer with `towline.slurm.poll.parse_poll`.

    Args:
        root: absolute path of Towline's directory on the shared file system.
        targets: the attempts.
        setup: the profile's shell line.
        accounts: arrays of which accounting is asked for every task, for the queue has forgotten some.
        past: jobs that accounting is asked for, though the queue has their ids, which are other jobs' there.
    """
    args = (root, SQUEUE_FORMAT, SACCT_FIELDS, *build_poll_input(targets, accounts, past))
    return Call("poll", script("poll"), args, setup_files(setup), repeats=True)


def queue_call(slurm: SlurmId, directory: str, setup: str = "") -> Call:
    """See what a waiting job has in front of it; read the answer with `towline.slurm.queue.parse_queue`."""
    args = (slurm.id, slurm.cluster or "-", directory, FREE_FORMAT)
    return Call("queue", script("queue"), args, setup_files(setup), repeats=True)


def cancel_call(
    directory: str, token: str, ids: Sequence[SlurmId] = (), setup: str = "", task: int | None = None
) -> Call:
    """Cancel a job: by the ids known here, by those in its directory, and by its token (empty for none).

    With `task` only this task of the array that has these ids is cancelled.
    """
    which = "-" if task is None else str(task)
    return Call("cancel", script("cancel"), (directory, token, which, *map(str, ids)), setup_files(setup), repeats=True)


def why_call(directory: str, targets: Sequence[WhyTarget], files: Files, budget: Budget, setup: str = "") -> Call:
    """Search the logs of a job's attempts for what ended them.

    Args:
        directory: the job directory.
        targets: the attempts.
        files: `facts-1` and so on for each of them, `rules` and `search.sh`, see `launch.diagnosis`.
        budget: most time and bytes for all of them.
        setup: the profile's shell line.
    """
    lines = "".join(f"{' '.join(_words(each))}\n" for each in targets)
    args = (directory, str(budget.seconds), str(budget.bytes))
    return Call("why", script("why"), args, {**setup_files(setup), **files, "targets": lines.encode()}, repeats=True)


def _words(target: WhyTarget) -> tuple[str, ...]:
    task = "-" if target.task is None else str(target.task)
    slurm = (target.slurm.id, target.slurm.cluster or "-") if target.slurm else ("-", "-")
    return (str(target.attempt), task, *slurm, *target.names)


def forget_call(directories: Sequence[str]) -> Call:
    """Take away the secrets of jobs that are over for good; read the answer with `parse_forgotten`."""
    return Call("forget", script("forget"), tuple(directories), repeats=True)


def parse_forgotten(stdout: str) -> tuple[str, ...]:
    """The files that could not be removed."""
    return tuple(line.removeprefix("kept ") for line in stdout.splitlines() if line.startswith("kept "))


def _attempt(submission: Submission) -> tuple[str, ...]:
    return (
        str(submission.attempt),
        check_token(submission.token),
        str(submission.message_timeout),
        str(int(submission.intent)),
        _line(submission.owner),
        *submission.sbatch,
    )


def _required(paths: Sequence[RequiredPath]) -> bytes:
    kinds = ("n" if each.ngc else "y" if each.python else "i" if each.image else "p" for each in paths)
    return "".join(f"{kind} {_line(path.path)}\n" for kind, path in zip(kinds, paths, strict=True)).encode()


def setup_files(line: str) -> dict[str, bytes | Path]:
    """The profile's shell line as the file that `common.sh` reads."""
    return {"setup": f"{line}\n".encode()} if line.strip() else {}


def _line(text: str) -> str:
    if "\n" in text or "\0" in text:
        raise ValueError(f"{text!r} must be one line")
    return text


def _relative(name: str) -> str:
    if name.startswith("/") or ".." in name.split("/") or not name:
        raise ValueError(f"{name!r} is not a path below the job directory")
    return name
