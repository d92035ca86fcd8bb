"""Job records for the engine's tests."""

from __future__ import annotations

import dataclasses

from towline.models.job import Attempt, JobRecord, JobState
from towline.models.spec import JobSpec

SPEC = JobSpec.build(command=["true"], image="/i.sqsh")


def record(job_id: str = "a00000001", **changes: object) -> JobRecord:
    base = JobRecord(
        id=job_id,
        name="train",
        cluster="lab",
        state=JobState.SUBMITTING,
        directory=f"/lustre/jobs/{job_id}",
        created=1.5,
        attempts=(Attempt(),),
        command="true",
    )
    return dataclasses.replace(base, **changes)  # pyright: ignore[reportArgumentType]
