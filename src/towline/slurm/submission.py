"""What came of a submission (`scripts/stage.sh`, `scripts/submit.sh`)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum

from towline.models.errors import TowlineError
from towline.slurm.parse import SlurmId
from towline.slurm.refusals import Refusal


class ScriptExit(IntEnum):
    """Exit codes of the scripts; `scripts/common.sh` names them."""

    OK = 0
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


class Came(str, Enum):
    """How the answer came about; the words are those that `submit.sh` prints."""

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
        notices: what sbatch and the site printed beside the answer, for people.
    """

    exit: ScriptExit | None
    slurm: SlurmId | None = None
    came: Came | None = None
    refusal: Refusal | None = None
    missing: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    notices: str = ""


def parse_submission(exit_code: int, stdout: str, stderr: str) -> SubmitAnswer:
    """Read the script's ending."""
    raise NotImplementedError


def submission_error(answer: SubmitAnswer) -> TowlineError | None:
    """The answer as the error that a user should see; None when the job is in Slurm's hands."""
    raise NotImplementedError
