"""Submitting: the intent is recorded, everything goes in one stream, and the store says what became of it.

While Slurm says "later", or nobody knows whether it has the job, the same stream is sent again: the script on the
other side finds what an earlier one has made.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from towline.engine.events import Held
from towline.engine.outcomes import unreachable
from towline.engine.session import Session
from towline.engine.submitting.intent import LOST, submission_of
from towline.engine.submitting.presence import submitting
from towline.engine.submitting.recovery import look_up, taken_over
from towline.launch.conventions import NEEDS_NGC, NEEDS_PYTHON
from towline.launch.files import SECRETS, secrets_file
from towline.models.errors import ConfigError, OutcomeUnknown, SlurmUnavailable, TowlineError
from towline.models.image import Image
from towline.models.job import Attempt, JobRecord, JobState, Tasks
from towline.models.plan import Plan
from towline.models.secrets import Secret
from towline.remote.base import Ending, Outcome
from towline.slurm.calls import Call, RequiredPath, forget_call, stage_call
from towline.slurm.refusals import RefusalKind
from towline.slurm.submission import ScriptExit, SubmitAnswer, parse_submission, submission_error

PATIENCE = 60.0
"""Seconds to hold a job that Slurm does not take now, when nobody says how long."""
_FIRST_PAUSE, _LONGEST_PAUSE, _GROWTH = 2.0, 60.0, 1.6
_NOTHING_STARTED = frozenset(ScriptExit) - {ScriptExit.OK, ScriptExit.IN_FLIGHT, ScriptExit.UNCLEAR}
"""Ends of the submission script after which there is certainly no job of this call."""
_SETTLES = frozenset({ScriptExit.REFUSED, ScriptExit.CANCELLED})
"""Ends that also say that there is none of the earlier calls."""


async def submit(
    session: Session,
    plan: Plan,
    secrets: Mapping[str, Secret],
    *,
    patience: float | None = PATIENCE,
    told: Callable[[Held], None] | None = None,
) -> JobRecord:
    """Stage and submit a plan whose checks passed.

    Args:
        session: the cluster.
        plan: what is sent.
        secrets: the values of the spec's secrets, see `engine.secrets`; they are sent beside the plan's files.
        patience: seconds to go on while Slurm takes no jobs, or it is not known whether it has this one; None for
            ever, 0 for one try.
        told: called before each pause.

    Raises:
        TowlineError: the job was refused, or (`OutcomeUnknown`) the answer was lost and the job is looked up
            by the next poll. The store says which.
    """
    files = {**plan.files, SECRETS: secrets_file(secrets)} if secrets else plan.files
    with submitting(session.store.directory, plan.job_id):
        record = _intended(session, plan)
        call = stage_call(
            submission_of(session, record, plan.sbatch), files, _required_now(plan), session.profile.setup
        )
        return await _Sending(session, record, call, told).until_settled(patience)


def _intended(session: Session, plan: Plan) -> JobRecord:
    record = JobRecord(
        id=plan.job_id,
        name=plan.spec.name,
        cluster=session.profile.name,
        state=JobState.SUBMITTING,
        directory=plan.directory,
        created=time.time(),
        attempts=(Attempt(),),
        command=plan.spec.command_line,
        roles=tuple(role.name for role in plan.spec.roles),
        tasks=Tasks.of(plan.spec.array) if plan.spec.array else None,
    )
    try:
        session.store.intend(record, plan.spec)
    except ConfigError as error:
        raise ConfigError(f"{error.what}, so nothing was submitted", why=error.why, fix=error.fix) from error
    return record


def required_paths(plan: Plan) -> tuple[RequiredPath, ...]:
    """What must be on the cluster before the plan's job is sent there."""
    images = image_paths(plan)
    python = _needs_python_of_image(plan)
    ngc = python and plan.spec.shell.startswith(f"{NEEDS_PYTHON}{NEEDS_NGC}")
    return tuple(
        RequiredPath(path, True, python, ngc) if path in images else RequiredPath(path) for path in plan.required_paths
    )


_PROGRAMS = ("/usr", "/opt", "/bin", "/sbin", "/home", "/root")
"""Where images have programs, and mounts may."""


def _needs_python_of_image(plan: Plan) -> bool:
    """Whether the command needs a Python that only the image can have: no variable and no mount leads elsewhere."""
    spec, own = plan.spec, f"{plan.directory}/"
    others = [each for each in spec.mounts if not each.source.startswith(own)]
    plain = all(each.source == each.target and not f"{each.target}/".startswith(_PROGRAMS) for each in others)
    return plain and "PATH" not in spec.env and spec.shell.startswith(NEEDS_PYTHON)


def _required_now(plan: Plan) -> tuple[RequiredPath, ...]:
    """The same, with the code, which was sent meanwhile."""
    return (*required_paths(plan), *([RequiredPath(plan.code.place)] if plan.code else []))


def image_paths(plan: Plan) -> frozenset[str]:
    """The squashfs files among the paths that the job needs."""
    named = (image.path for text in plan.spec.images if not (image := Image.parse(text)).is_sif)
    return frozenset([*filter(None, named), *(image.path for image in plan.images)])


@dataclass(frozen=True)
class _Reply:
    """What one call says of the job.

    Attributes:
        error: what a user should read; None when Slurm has the job.
        answer: the script's answer, when there is one.
        sure: whether it is certain that this call made no job.
        later: whether another call may bring more.
    """

    error: TowlineError | None
    answer: SubmitAnswer | None = None
    sure: bool = True
    later: bool = False


class _Sending:
    """One submission, sent until its end is known."""

    def __init__(self, session: Session, record: JobRecord, call: Call, told: Callable[[Held], None] | None) -> None:
        self._session = session
        self._record = record
        self._call = call
        self._told = told
        self._open = False  # a call's end is not known
        self._reached = False  # the cluster has answered
        self._calls = 0

    async def until_settled(self, patience: float | None) -> JobRecord:
        """The job as Slurm has it; raises what became of it otherwise."""
        started, pause = time.monotonic(), _FIRST_PAUSE
        while True:
            reply = await self._send()
            if reply.error is None and reply.answer:
                return self._accepted(reply.answer)
            error = reply.error or self._lost("")
            left = None if patience is None else started + patience - time.monotonic()
            if not reply.later or (left is not None and left <= 0):
                return await self._settle(error)
            await self._hold(error, pause if left is None else min(pause, left))
            pause = min(pause * _GROWTH, _LONGEST_PAUSE)

    def _accepted(self, answer: SubmitAnswer) -> JobRecord:
        accepted = taken_over(self._record, answer)
        try:
            self._session.store.save(accepted)
        except ConfigError as error:
            raise ConfigError(
                f"job {accepted.id} was submitted as Slurm job {accepted.last.slurm_id}, but that could not be kept",
                why=f"{error.what}: {error.why}",
                fix=f"Free the disk; then `towline status {accepted.id}` looks the job up.",
            ) from error
        return accepted

    async def _send(self) -> _Reply:
        self._calls += 1
        try:
            outcome = await self._session.call(self._call)
        except TowlineError as error:
            return _Reply(error)
        except asyncio.CancelledError:
            self._save(JobState.SUBMITTING, LOST)
            raise
        reply = self._understood(outcome)
        if not reply.sure:
            self._open = True
        elif reply.answer and reply.answer.exit in _SETTLES:
            self._open = False
        return reply

    def _understood(self, outcome: Outcome) -> _Reply:
        if outcome.ending is Ending.NOT_STARTED:
            return _Reply(unreachable(outcome), later=self._reached or self._open)
        self._reached = True
        if outcome.ending is not Ending.DONE or outcome.exit_code is None:
            return _Reply(self._lost(outcome.detail), sure=False, later=True)
        said = outcome.stderr.decode("utf-8", "replace")
        answer = parse_submission(outcome.exit_code, outcome.stdout.decode("utf-8", "replace"), said)
        if answer.slurm:
            return _Reply(None, answer)
        error = submission_error(answer)
        if answer.exit in _NOTHING_STARTED and error:
            later = answer.refusal is not None and answer.refusal.kind is RefusalKind.TEMPORARY
            return _Reply(error, answer, later=later)
        why = "\n".join(filter(None, [error.what, error.why])) if error else said
        killed = outcome.exit_code > 128
        return _Reply(self._lost(why), answer, sure=False, later=killed or answer.exit is not None)

    async def _hold(self, error: TowlineError, pause: float) -> None:
        """Wait before the next call, and say why; who breaks that off has no job, if that is certain."""
        reason = error.what if not error.why else f"{error.what}: {' '.join(error.why.split())}"
        self._save(JobState.SUBMITTING, f"held: {reason}")
        pause *= random.uniform(0.8, 1.2)  # noqa: S311  only spreads clients
        if self._told:
            self._told(Held(self._record, reason, pause))
        try:
            await asyncio.sleep(pause)
        except asyncio.CancelledError:
            self._save(*((JobState.SUBMITTING, LOST) if self._open else (JobState.REFUSED, GIVEN_UP)))
            raise

    async def _settle(self, error: TowlineError) -> JobRecord:
        """The last word, with one more look at the cluster when a call's end is not known."""
        if not self._open:
            await self._forget_secrets()
            self._save(JobState.REFUSED, error.what)
            raise error
        self._save(JobState.SUBMITTING, LOST)
        answer = await self._looked_up()
        if answer and answer.slurm:
            return self._accepted(answer)
        if answer and answer.exit is ScriptExit.WITHDRAWN:
            error = self._withdrawn(error) if isinstance(error, OutcomeUnknown) else error
            self._save(JobState.REFUSED, error.what)
            raise error
        raise error if isinstance(error, OutcomeUnknown) else self._lost(str(error))

    async def _forget_secrets(self) -> None:
        """A refused call takes back what it has placed, but not what an earlier one had."""
        if self._calls > 1 and f"files/{SECRETS}" in self._call.files:
            with contextlib.suppress(TowlineError):
                await self._session.call(forget_call([self._record.directory]))

    async def _looked_up(self) -> SubmitAnswer | None:
        try:
            return await look_up(self._session, submission_of(self._session, self._record), withdraw=True)
        except TowlineError:
            return None

    def _lost(self, why: str) -> OutcomeUnknown:
        return OutcomeUnknown(
            f"the answer to the submission of job {self._record.id} was lost; Slurm may have the job",
            why=why.strip(),
            fix=f"`towline status {self._record.id}` looks it up; submitting it again would make a second job.",
        )

    def _withdrawn(self, error: TowlineError) -> TowlineError:
        return SlurmUnavailable(
            f"the submission of job {self._record.id} was cut off before Slurm had it; nothing was submitted",
            why=error.why,
            fix="Submit it again.",
        )

    def _save(self, state: JobState, note: str) -> None:
        self._session.store.save(dataclasses.replace(self._record, state=state, note=note))


GIVEN_UP = "given up while Slurm took no jobs; nothing was submitted"
