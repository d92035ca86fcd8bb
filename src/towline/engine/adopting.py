"""Jobs that this machine has not seen before: their directory on the cluster is the truth, and says all there is."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from typing import Any, cast

from towline.engine.outcomes import expect_done
from towline.engine.session import Session
from towline.engine.watching import observation
from towline.models.errors import AccessRefused, NotFound, RemoteFault, SpecError
from towline.models.ids import is_job_id
from towline.models.job import Attempt, JobRecord, JobState, Tasks
from towline.models.spec import JobSpec
from towline.slurm.adopt import Found, Kept, adopt_call, parse_found


@dataclass(frozen=True)
class Adopted:
    """What came of it.

    Attributes:
        jobs: the jobs that are known from now on, as they are now.
        notes: what was passed over, and why.
    """

    jobs: tuple[JobRecord, ...]
    notes: tuple[str, ...] = ()


async def adopt(session: Session, job_id: str) -> JobRecord:
    """Take a job of the user's own into the store, in one round trip; a later look says how it is.

    What the directory says was written by a job that nobody has to trust: it is read as a spec of anybody's would be.

    Raises:
        NotFound: the cluster has no job of that id.
    """
    found = await _found(session, job_id) if is_job_id(job_id) else None
    if found is None or job_id not in found.jobs:
        raise NotFound(
            f"no job {job_id!r} is known here, or on cluster {session.profile.name!r}",
            fix="See the known jobs with `towline ps -a`.",
        )
    try:
        record, spec = _described(session, job_id, found.jobs[job_id])
    except (ValueError, KeyError, TypeError, SpecError) as error:
        raise NotFound(f"{job_id} is no directory of a job", why=str(error)) from None
    session.store.intend(record, spec, adopted=True)
    return record


async def adopt_all(session: Session) -> Adopted:
    """Take over the jobs below the profile's root that the store does not know, with their attempts.

    Raises:
        AccessRefused: the root's `jobs` directory is not safely the user's own.
        Unreachable, WaitTimedOut, OutcomeUnknown, RemoteFault: the cluster could not be asked.
    """
    root, found = session.profile.root, await _found(session)
    if "jobs" in found.strange:
        raise AccessRefused(
            f"{root}/jobs is not safely yours, so that nothing in it is taken over",
            why="It is missing, belongs to somebody else, or others may write to it.",
            fix="Set `root` in the cluster profile to your own directory there.",
        )
    notes = [f"{name} is not safely yours and was passed over" for name in found.strange]
    taken: list[JobRecord] = []
    for job_id, kept in found.jobs.items():
        if session.store.job(job_id) is not None:
            continue
        try:
            record, spec = _described(session, job_id, kept)
            session.store.intend(record, spec, adopted=True)
        except (ValueError, KeyError, TypeError, SpecError):  # another version's, or a job has written there
            notes.append(f"the description of job {job_id} cannot be read; it was passed over")
        except sqlite3.IntegrityError:  # another process was faster
            continue
        else:
            taken.append(record)
    return Adopted(await observation.poll(session, taken), tuple(notes))


async def _found(session: Session, job_id: str = "") -> Found:
    outcome = await session.call(adopt_call(session.profile.root, job_id))
    found = parse_found(expect_done(outcome, "looking for jobs").decode("utf-8", "replace"))
    if not found.complete:
        raise RemoteFault(f"the answer of {outcome.host} about the jobs broke off", fix="Try again.")
    return found


def _described(session: Session, job_id: str, kept: Kept) -> tuple[JobRecord, JobSpec]:
    about = cast("dict[str, Any]", json.loads(kept.description))
    if about["id"] != job_id:
        raise ValueError(f"its job.json is of job {about['id']}")
    spec = JobSpec.read(about["spec"])
    record = JobRecord(
        id=job_id,
        name=spec.name,
        cluster=session.profile.name,
        state=JobState.PENDING,
        directory=f"{session.profile.root}/jobs/{job_id}",
        created=kept.made,
        # The look that follows finds those after it.
        attempts=(Attempt(1, kept.slurm.id, kept.slurm.cluster),),
        command=spec.command_line,
        roles=tuple(role.name for role in spec.roles),
        tasks=Tasks.of(spec.array) if spec.array else None,
    )
    return record, spec
