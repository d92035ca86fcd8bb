"""Why a job was cancelled that waited for its image."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from towline.container.imports import Failure, failure_of, imports_of_call
from towline.container.registry import check_call, parse_manifest
from towline.engine.registry import problem
from towline.engine.session import Session
from towline.engine.watching.verdict import ENDS
from towline.models.errors import TowlineError, Unreachable
from towline.models.image import Image
from towline.models.job import JobRecord, JobState
from towline.remote.base import Ending
from towline.slurm.preparation import Preparation, parse_preparations

_WAITED_IN_VAIN = ENDS["DependencyNeverSatisfied"]


async def with_reasons(session: Session, records: Sequence[JobRecord]) -> list[JobRecord]:
    """The jobs, those cancelled for a failed import with Enroot's own line; one round trip for each of these."""
    return [await _with_reason(session, record) for record in records]


async def _with_reason(session: Session, record: JobRecord) -> JobRecord:
    if record.state is not JobState.CANCELLED or _WAITED_IN_VAIN not in record.note:
        return record
    try:
        imports = await imports_of(session, record)
    except (TowlineError, ValueError):  # the reason is a help, and must not stand in the way of the end
        return record
    failures = [(each.reference, found) for each in imports if (found := failure_of(Image.parse(each.reference), each))]
    if not failures:
        return record
    told = [sentence(reference, await explained(session, reference, failure)) for reference, failure in failures]
    return dataclasses.replace(record, note="; ".join(told))


async def imports_of(session: Session, record: JobRecord) -> tuple[Preparation, ...]:
    """How the imports are doing that a job waits for.

    Raises:
        TowlineError, ValueError: they could not be looked at.
    """
    outcome = await session.call(imports_of_call(record.directory, session.profile.setup))
    if outcome.ending is not Ending.DONE:
        raise ValueError("the cluster did not answer")
    return tuple(
        each for each in parse_preparations(outcome.stdout.decode("utf-8", "replace")).values() if each.reference
    )


async def explained(session: Session, reference: str, failure: Failure) -> Failure:
    """A failure with what the registry says now, where Enroot does not say enough.

    Enroot (4.1) names neither the file that has no line for a registry nor the tags that there are. One round trip.
    """
    if failure.kind not in ("credentials", "not-found"):
        return failure
    try:
        outcome = await session.call(check_call(Image.parse(reference), session.profile.setup))
        found = parse_manifest(outcome.stdout.decode("utf-8", "replace"))
    except (TowlineError, ValueError):
        return failure
    error = problem(found, reference) if found.curl else None
    if error is None or isinstance(error, Unreachable):
        return failure
    return dataclasses.replace(failure, why=f"{failure.why}; {error.why}", fix=error.fix)


def sentence(reference: str, failure: Failure) -> str:
    """A failed import for a person, with what to do."""
    return f"its image {reference} could not be imported: {failure.why} ({failure.fix})"
