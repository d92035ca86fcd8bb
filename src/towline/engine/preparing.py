"""Jobs that prepare what another job needs: one for each thing, whoever asks; the job waits in Slurm's hands."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from towline.engine.outcomes import check_ending, last_words
from towline.engine.session import Session
from towline.engine.submitting.intent import owner
from towline.models.errors import OutcomeUnknown, RemoteFault, SlurmUnavailable, TowlineError
from towline.models.ids import attempt_token
from towline.models.plan import Plan
from towline.slurm.batch import BatchJob, render_batch
from towline.slurm.calls import Call, Submission, preparation_call
from towline.slurm.commands import sbatch
from towline.slurm.preparation import Preparation, parse_preparations
from towline.slurm.submission import environment_error, parse_submission, submission_error

PATIENCE = 120.0
"""Seconds to go on while somebody else's submission of the same job is under way, or Slurm does not answer."""
_PAUSE = 0.5
HERE = "here"
"""In place of Slurm's id: the login host makes it."""


@dataclass(frozen=True)
class Making:
    """One thing that a job of its own makes.

    Attributes:
        kind: what that is called, for example `import`; part of the job's name.
        place: the directory that it is made in.
        name: its name there.
        command_line: what the job does, for its script's head.
        time: the job's walltime in seconds.
        files: name → content, for `script/` of its directory; `supervisor` is what the batch script runs.
        secrets: sh text with values that the job reads from `script/secrets-<attempt>`; empty for none.
        account: of the job that needs it; the profile's `import_account` wins.
        key: what tells its job's name from others; made of its directory when empty (caches may be several).
        after: what the job itself waits for, as `sbatch --dependency` takes it.
        here: whether the login host makes it, and no job.
    """

    kind: str
    place: str
    name: str
    command_line: str
    time: int
    files: Mapping[str, bytes] = field(repr=False)
    secrets: bytes = field(default=b"", repr=False)
    account: str | None = None
    key: str = ""
    after: str = ""
    here: bool = False


def waiting_for(plan: Plan, jobs: Sequence[str]) -> Plan:
    """The plan as a submission that waits until these jobs have succeeded.

    One that fails makes the dependency one that can never come true, and Slurm cancels the waiting job itself
    (sbatch(1), `--kill-on-invalid-dep`).
    """
    terms = ",".join(filter(None, [plan.waits_for, *(f"afterok:{job}" for job in dict.fromkeys(jobs) if job)]))
    return plan if terms == plan.waits_for else dataclasses.replace(plan, sbatch=sbatch(plan.sbatch[-1], terms))


async def job_for(session: Session, making: Making, state: Call) -> str:
    """Slurm's id of the one job that makes the thing, or `HERE`; empty when it is there.

    Args:
        session: the cluster.
        making: what is to be made.
        state: asks how it is doing, see `look`.

    Raises:
        SlurmRefused, StagingFailed, AccessRefused: it could not be submitted.
        Unreachable, OutcomeUnknown, WaitTimedOut, RemoteFault: the cluster did not answer.
    """
    until = time.monotonic() + PATIENCE
    while True:
        found = await look(session, making.name, state)
        if found.ready:
            return ""
        slurm_id, error = await _submit(session, making, found.next_number)
        if error is None:
            return slurm_id
        if time.monotonic() > until:
            raise error
        if not isinstance(error, (OutcomeUnknown, SlurmUnavailable)):
            raise error
        await asyncio.sleep(_PAUSE)


async def look(session: Session, name: str, state: Call) -> Preparation:
    """How a thing and the newest job that makes it are doing.

    Args:
        session: the cluster.
        name: the thing's.
        state: a call whose answer `parse_preparations` reads.

    Raises:
        Unreachable, OutcomeUnknown, WaitTimedOut, RemoteFault: the cluster did not answer.
    """
    outcome = await session.call(state)
    check_ending(outcome, "looking for what is prepared")
    if error := environment_error(outcome.exit_code or 0, last_words(outcome.stderr)):
        raise error
    found = parse_preparations(outcome.stdout.decode("utf-8", "replace"))
    if name not in found:
        raise RemoteFault(f"{name} could not be looked at", why=last_words(outcome.stderr), fix="Try again.")
    return found[name]


async def _submit(session: Session, making: Making, number: int) -> tuple[str, TowlineError | None]:
    """Slurm's id, empty when the thing is there by now; or why there is none."""
    outcome = await session.call(_call(session, making, number))
    check_ending(outcome, f"submitting the {making.kind}")
    out, err = (text.decode("utf-8", "replace") for text in (outcome.stdout, outcome.stderr))
    if outcome.exit_code == 0 and out.strip() in ("there", HERE):
        return out.strip().replace("there", ""), None
    answer = parse_submission(outcome.exit_code or 0, out, err)
    return (answer.slurm.id if answer.slurm else ""), submission_error(answer)


def _call(session: Session, making: Making, number: int) -> Call:
    profile = session.profile
    directory = f"{making.place}/imports/{making.name}"
    key = making.key or hashlib.sha256(directory.encode()).hexdigest()[:10]
    batch = BatchJob(
        directory=directory,
        job_id=key,
        token=attempt_token(f"towline-{making.kind}", key, number),
        command_line=making.command_line,
        attempt=number,
        cpus_per_task=profile.import_cpus,
        memory=profile.import_memory,
        time=making.time,
        partition=(profile.import_partition,),
        account=profile.import_account or making.account or profile.account or "",
        comment=profile.comment,
        export_all=profile.export == "all",
    )
    facts = session.store.facts(profile.name)
    submission = Submission(
        root=making.place,
        job_id=making.name,
        attempt=number,
        token=batch.token,
        sbatch=(HERE,) if making.here else sbatch(f"{directory}/script/batch-{number}", making.after),
        intent=time.time(),
        message_timeout=facts.message_timeout if facts else 10,
        owner=owner(),
    )
    files = {f"batch-{number}": render_batch(batch).encode(), **making.files}
    if making.secrets:
        files[f"secrets-{number}"] = making.secrets
    return preparation_call(making.place, making.name, submission, files, profile.setup)
