"""Jobs that this machine has not seen before: their directory on the cluster is the truth, and says all there is."""

from __future__ import annotations

import json
from typing import Any, cast

from towline.engine.outcomes import expect_done
from towline.engine.session import Session
from towline.models.errors import NotFound, SpecError
from towline.models.ids import is_job_id
from towline.models.job import Attempt, JobRecord, JobState, Tasks
from towline.models.spec import JobSpec
from towline.remote.base import Operation
from towline.slurm.parse import parse_sbatch
from towline.storage.scripts import script

_MISSING = 44


async def adopt(session: Session, job_id: str) -> JobRecord:
    """Take a job of the user's own into the store, in one round trip; a later look says how it is.

    What the directory says was written by a job that nobody has to trust: it is read as a spec of anybody's would be.

    Raises:
        NotFound: the cluster has no job of that id.
    """
    missing = NotFound(
        f"no job {job_id!r} is known here, or on cluster {session.profile.name!r}",
        fix="See the known jobs with `towline ps -a`.",
    )
    if not is_job_id(job_id):
        raise missing
    directory = f"{session.profile.root}/jobs/{job_id}"
    operation = Operation("adopt", script("adopt"), (directory,), repeats=True)
    answer = expect_done(await session.run(operation), f"looking for job {job_id}", {_MISSING: missing})
    head, _, about = answer.decode("utf-8", "replace").partition("\n\n")
    try:
        spec = _spec(about, job_id)
        record = _record(session, job_id, head, spec)
    except (ValueError, KeyError, TypeError, SpecError) as error:
        raise NotFound(f"{directory} is no directory of a job", why=str(error)) from None
    session.store.intend(record, spec)
    return record


def _spec(text: str, job_id: str) -> JobSpec:
    about = cast("dict[str, Any]", json.loads(text))
    if about["id"] != job_id:
        raise ValueError(f"its job.json is of job {about['id']}")
    return JobSpec.model_validate(about["spec"])


def _record(session: Session, job_id: str, head: str, spec: JobSpec) -> JobRecord:
    made, *lines = head.splitlines()
    attempts = tuple(_attempt(*line.split(" ")[1:3]) for line in lines) or (Attempt(),)
    return JobRecord(
        id=job_id,
        name=spec.name,
        cluster=session.profile.name,
        state=JobState.PENDING if attempts[-1].slurm_id else JobState.SUBMITTING,
        directory=f"{session.profile.root}/jobs/{job_id}",
        created=float(made.split(" ")[1]),
        attempts=attempts,
        command=spec.command_line,
        roles=tuple(role.name for role in spec.roles),
        tasks=Tasks.of(spec.array) if spec.array else None,
    )


def _attempt(number: str, answer: str = "") -> Attempt:
    slurm = parse_sbatch(answer) if answer else None
    return Attempt(int(number), slurm.id, slurm.cluster) if slurm else Attempt(int(number))
