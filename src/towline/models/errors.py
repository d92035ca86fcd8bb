"""Every error that a user can meet, as one tree with stable codes and exit statuses.

    TowlineError                     70  internal
    ├── UsageError                   64  usage
    ├── SpecError                    65  spec           a value in the job's spec cannot be right
    │   └── PlanRefused              65  plan-refused   the spec is sound, this cluster cannot run it
    ├── NotFound                     66  not-found      no such job, file or profile
    │   └── Ambiguous                66  ambiguous      several jobs answer to that name
    ├── Unreachable                  69  unreachable    no login host could be reached
    ├── RemoteFault                  71  remote-fault   reached, but the cluster's side cannot do it
    ├── OutcomeUnknown               72  unknown        the answer was lost; the store says what is known
    ├── TasksFailed                  72  tasks-failed   what was to be gathered was not made: tasks did not succeed
    ├── StagingFailed                73  staging        files could not be written (disk full, quota, rights)
    ├── TransferFailed               74  transfer       bytes could not be brought home or sent whole
    ├── WaitTimedOut                 75  timed-out      still going when the caller's patience ended
    ├── SlurmRefused                 76  slurm-refused  Slurm said no for good
    │   └── SlurmUnavailable         75  slurm-away     Slurm did not answer or said "later"
    ├── AccessRefused                77  access         key, host key or rights refused
    └── ConfigError                  78  config         a setting is missing or wrong

Exit statuses 64 to 78 are Towline's own; any other non-zero status is the job's own code.
"""

from __future__ import annotations

from typing import ClassVar

JOB_ENDED_WITHOUT_CODE = 72
"""Exit status of `run` and `wait` for a job that ended with no code of its own (cancelled, node lost …)."""

INTERRUPTED = 130
"""Exit status after Ctrl-C: 128 + SIGINT, as shells have it."""


class TowlineError(Exception):
    """What failed, why as far as is known, and what to do next.

    Attributes:
        what: the failure in one sentence.
        why: the cause in the words of whoever reported it; empty when not known.
        fix: the next step for the user; empty when there is none.
        code: a stable word for programs.
        exit_status: the command's exit status, 64 to 78.
    """

    code: ClassVar[str] = "internal"
    exit_status: ClassVar[int] = 70

    def __init__(self, what: str, *, why: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.fix = fix

    def __str__(self) -> str:
        return "\n".join(part for part in (self.what, self.why, self.fix) if part)

    def as_dict(self) -> dict[str, str | int]:
        """The error as the `--json` doors print it."""
        return {
            "code": self.code,
            "exit_status": self.exit_status,
            "what": self.what,
            "why": self.why,
            "fix": self.fix,
        }


class UsageError(TowlineError):
    """The command line or the call itself is wrong."""

    code = "usage"
    exit_status = 64


class SpecError(TowlineError):
    """A value in the job's spec cannot be right on any cluster."""

    code = "spec"
    exit_status = 65


class PlanRefused(SpecError):
    """The spec is sound, but this cluster cannot run it; nothing was changed."""

    code = "plan-refused"


class NotFound(TowlineError):
    """No such job, file or cluster profile."""

    code = "not-found"
    exit_status = 66


class Ambiguous(NotFound):
    """Several jobs answer to that name, and the call must not guess."""

    code = "ambiguous"


class Unreachable(TowlineError):
    """No login host could be reached; nothing ran there."""

    code = "unreachable"
    exit_status = 69


class RemoteFault(TowlineError):
    """A login host was reached, but something on its side is missing or broken."""

    code = "remote-fault"
    exit_status = 71


class OutcomeUnknown(TowlineError):
    """The answer was lost on the way; the operation may have happened."""

    code = "unknown"
    exit_status = 72


class TasksFailed(TowlineError):
    """Tasks of an array did not succeed, so that what they were to make is not there."""

    code = "tasks-failed"
    exit_status = 72


class StagingFailed(TowlineError):
    """Files could not be written on the shared file system."""

    code = "staging"
    exit_status = 73


class TransferFailed(TowlineError):
    """Bytes could not be brought home or sent whole."""

    code = "transfer"
    exit_status = 74


class WaitTimedOut(TowlineError):
    """The awaited thing was still going when the caller's patience ended."""

    code = "timed-out"
    exit_status = 75


class SlurmRefused(TowlineError):
    """Slurm refused, and the same request will be refused again."""

    code = "slurm-refused"
    exit_status = 76


class SlurmUnavailable(SlurmRefused):
    """Slurm did not answer or asked to come back later; the same request may succeed then."""

    code = "slurm-away"
    exit_status = 75


class AccessRefused(TowlineError):
    """A key, a host key or a right was refused."""

    code = "access"
    exit_status = 77


class ConfigError(TowlineError):
    """A setting is missing or wrong."""

    code = "config"
    exit_status = 78
