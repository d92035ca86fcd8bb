"""What came of a submission (`scripts/stage.sh`, `scripts/submit.sh`), and what a user should read about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum

from towline.models.errors import (
    AccessRefused,
    ConfigError,
    OutcomeUnknown,
    PlanRefused,
    RemoteFault,
    SlurmRefused,
    SlurmUnavailable,
    StagingFailed,
    TowlineError,
)
from towline.slurm.parse import SlurmId, parse_sbatch
from towline.slurm.refusals import Refusal, RefusalKind, classify_refusal
from towline.slurm.space import Space, parse_space, says_full


class ScriptExit(IntEnum):
    """Exit codes of the scripts; `scripts/common.sh` has the same list."""

    OK = 0
    SETUP_FAILED = 39
    NO_SLURM = 40
    BAD_ROOT = 41
    UNSAFE = 42
    PATHS_MISSING = 43
    NO_SPACE = 44
    STAGING = 45
    CANCELLED = 46
    IN_FLIGHT = 47
    REFUSED = 48
    UNCLEAR = 49
    NO_JOB = 50
    WITHDRAWN = 51
    SPENT = 52
    """No further attempt is due; the line `why=…` says why."""
    NOT_RUNNING = 60
    NO_RANK = 61
    STRANGER = 62


class Came(str, Enum):
    """How the id was learnt; the words are those that the script prints."""

    SUBMITTED = "submitted"
    RECORDED = "recorded"
    """An earlier call had the answer written down."""
    CLAIMED = "claimed"
    """The job itself wrote its id when it started."""
    QUEUE = "queue"
    ACCOUNTING = "accounting"


@dataclass(frozen=True)
class SubmitAnswer:
    """What is known after a submission.

    Attributes:
        exit: how the script ended; None for an exit code that is none of its own.
        slurm: Slurm's id; None when there is no job, or it is not known.
        came: how the id was learnt; None without an id.
        refusal: what sbatch's error means; None unless `exit` is REFUSED or UNCLEAR.
        missing: required paths that do not exist.
        unreadable: required files that cannot be read.
        no_images: required images that are no squashfs files.
        no_pythons: required images without the Python that the command needs.
        no_ngcs: required images with nothing that brings data of NGC, which the command needs.
        space: what limits writing where it failed for lack of room; None for any other end.
        why: why no further attempt is due (SPENT).
        excluded: nodes that a further attempt leaves out.
        notices: what the script, sbatch and the site printed beside the answer, for people.
    """

    exit: ScriptExit | None
    slurm: SlurmId | None = None
    came: Came | None = None
    refusal: Refusal | None = None
    missing: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    no_images: tuple[str, ...] = ()
    no_pythons: tuple[str, ...] = ()
    no_ngcs: tuple[str, ...] = ()
    space: Space | None = None
    why: str = ""
    excluded: str = ""
    notices: str = ""


def parse_submission(exit_code: int, stdout: str, stderr: str) -> SubmitAnswer:
    """Read how a submission's script ended."""
    ending = ScriptExit(exit_code) if exit_code in list(ScriptExit) else None
    came, slurm = _came(stdout), _slurm(stdout)
    if ending is ScriptExit.OK and slurm is None:
        ending = ScriptExit.UNCLEAR
    return SubmitAnswer(
        exit=ending,
        slurm=slurm,
        came=came if slurm else None,
        refusal=classify_refusal(stderr) if ending in (ScriptExit.REFUSED, ScriptExit.UNCLEAR) else None,
        missing=_listed(stdout, "missing "),
        unreadable=_listed(stdout, "unreadable "),
        no_images=_listed(stdout, "no-image "),
        no_pythons=_listed(stdout, "no-python "),
        no_ngcs=_listed(stdout, "no-ngc "),
        space=parse_space(stdout) if ending is ScriptExit.NO_SPACE else None,
        why=_value(stdout, "why"),
        excluded=_value(stdout, "exclude"),
        notices=stderr.strip(),
    )


def submission_error(answer: SubmitAnswer) -> TowlineError | None:
    """The answer as the error that a user should see; None when the job is in Slurm's hands."""
    if answer.exit is ScriptExit.OK:
        return None
    if answer.exit is ScriptExit.PATHS_MISSING:
        return _paths_error(answer)
    if answer.exit is ScriptExit.REFUSED and answer.refusal:
        return _refusal_error(answer.refusal)
    kind, what, fix = _ERRORS.get(answer.exit, _UNEXPECTED)
    return kind(what, why=_no_room(answer) if answer.exit is ScriptExit.NO_SPACE else answer.notices, fix=fix)


def _no_room(answer: SubmitAnswer) -> str:
    """The words of the first write that failed, and what is full."""
    first = next((line for line in answer.notices.splitlines() if says_full(line)), answer.notices)
    return "; ".join(filter(None, [first, answer.space.tightest if answer.space else ""]))


def environment_error(exit_code: int, stderr: str) -> TowlineError | None:
    """The error behind an exit code with which any script says that it could not begin; None for other codes."""
    if exit_code not in (ScriptExit.SETUP_FAILED, ScriptExit.NO_SLURM):
        return None
    kind, what, fix = _ERRORS[ScriptExit(exit_code)]
    return kind(what, why=stderr.strip(), fix=fix)


_UNEXPECTED = (
    OutcomeUnknown,
    "the submission broke off on the cluster, and whether there is a job is not known",
    "Ask for the job's status: the attempt is looked up before anything is sent again.",
)
_ERRORS: dict[ScriptExit | None, tuple[type[TowlineError], str, str]] = {
    ScriptExit.SETUP_FAILED: (
        ConfigError,
        "the setup line of the cluster's profile failed on the login host",
        "Try the line there by hand, and correct `setup` in the profile.",
    ),
    ScriptExit.NO_SLURM: (
        RemoteFault,
        "Slurm's commands were not found on the login host",
        "If the site provides them by a module, give the cluster profile a `setup` line that loads it.",
    ),
    ScriptExit.BAD_ROOT: (
        StagingFailed,
        "Towline's directory on the cluster cannot be used",
        "Set `root` in the cluster profile to a directory on the shared file system that you may write to.",
    ),
    ScriptExit.UNSAFE: (
        AccessRefused,
        "a directory of Towline's on the cluster is not safely yours",
        "It must belong to you, and nobody else may write to it: correct that, or set another `root` in the profile.",
    ),
    ScriptExit.NO_SPACE: (
        StagingFailed,
        "the cluster's file system is full, or your quota is used up; nothing was submitted",
        "Make room there (`towline gc` says what could go), or set another `root` in the profile; submit again.",
    ),
    ScriptExit.STAGING: (
        StagingFailed,
        "the job's files could not be written on the cluster; nothing was submitted",
        "Look at the reason, and submit again.",
    ),
    ScriptExit.CANCELLED: (SlurmRefused, "the job was cancelled before it was submitted", ""),
    ScriptExit.IN_FLIGHT: (
        OutcomeUnknown,
        "another submission of this job is going on",
        "Ask for the job's status in a moment.",
    ),
    ScriptExit.NO_JOB: (SlurmRefused, "the submission ended before Slurm had the job", "Submit it again."),
    ScriptExit.WITHDRAWN: (SlurmRefused, "the submission was withdrawn before Slurm had the job", "Submit it again."),
    ScriptExit.SPENT: (SlurmRefused, "no further attempt is due", ""),
    ScriptExit.UNCLEAR: (
        OutcomeUnknown,
        "Slurm did not say whether it has the job",
        "Ask for the job's status: the attempt is looked up before anything is sent again.",
    ),
}


def lacking_error(no_pythons: Sequence[str], no_ngcs: Sequence[str]) -> tuple[str, str] | None:
    """What images lack that the command needs, and what to do; None when they lack nothing."""
    if no_pythons:
        words = f"{' and '.join(no_pythons)} holds no Python, and the job's command needs one"
        return words, "Take an image that has Python 3.8 or later."
    if no_ngcs:
        words = f"{' and '.join(no_ngcs)} holds neither the Python module ngcsdk nor the program ngc"
        return f"{words}, and the job's command brings data of ngc:// with one of them", (
            "Take an image that has one, or bring the model to the cluster once and name its path."
        )
    return None


def _paths_error(answer: SubmitAnswer) -> TowlineError:
    lines = [f"{path} does not exist on the cluster, or cannot be reached there" for path in answer.missing]
    lines += [f"{path} is not a file that you can read" for path in answer.unreadable]
    lines += [f"{path} is not a squashfs image" for path in answer.no_images]
    if not lines and (lacking := lacking_error(answer.no_pythons, answer.no_ngcs)):
        return PlanRefused(f"{lacking[0]}; nothing was changed on the cluster", fix=lacking[1])
    return PlanRefused(
        "paths that the job needs are missing on the cluster; nothing was changed there",
        why="\n".join(lines),
        fix="Correct the paths and submit again.",
    )


def _refusal_error(refusal: Refusal) -> TowlineError:
    if refusal.kind is RefusalKind.PERMANENT:
        return SlurmRefused("Slurm refused the job", why=refusal.said, fix=refusal.remedy)
    return SlurmUnavailable("Slurm does not take the job now", why=refusal.said, fix=refusal.remedy)


def _value(stdout: str, key: str) -> str:
    return next((line.partition("=")[2] for line in stdout.splitlines() if line.startswith(f"{key}=")), "")


def _came(stdout: str) -> Came | None:
    word = _value(stdout, "came")
    return Came(word) if word in [item.value for item in Came] else None


def _slurm(stdout: str) -> SlurmId | None:
    answer = _value(stdout, "slurm")
    return parse_sbatch(answer) if answer else None


def _listed(stdout: str, mark: str) -> tuple[str, ...]:
    return tuple(line[len(mark) :] for line in stdout.splitlines() if line.startswith(mark))
