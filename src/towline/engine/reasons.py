"""Why a job was cancelled that waited for what is made for it: its image, or data from elsewhere."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from towline.container import imports
from towline.engine.images.diagnosis import explained
from towline.engine.session import Session
from towline.launch.diagnosis.words import end_of
from towline.models.errors import TowlineError
from towline.models.image import Image
from towline.models.job import JobRecord, JobState
from towline.models.parts import is_remote
from towline.remote.base import Ending
from towline.slurm.preparation import Preparation, needs_call, parse_preparations
from towline.storage import remote


async def with_reasons(session: Session, records: Sequence[JobRecord]) -> list[JobRecord]:
    """The jobs, those cancelled for what could not be made with its maker's words; a round trip for each."""
    return [await _with_reason(session, record) for record in records]


async def _with_reason(session: Session, record: JobRecord) -> JobRecord:
    if record.state is not JobState.CANCELLED or end_of("DependencyNeverSatisfied") not in record.note:
        return record
    try:
        needs = await needs_of(session, record)
    except (TowlineError, ValueError):  # the reason is a help, and must not stand in the way of the end
        return record
    failures = [sentence for each in needs if (sentence := await failure(session, each))]
    return dataclasses.replace(record, note="; ".join(failures)) if failures else record


async def needs_of(session: Session, record: JobRecord) -> tuple[Preparation, ...]:
    """How the things are doing that are made for a job.

    Raises:
        TowlineError, ValueError: they could not be looked at.
    """
    outcome = await session.call(needs_call(record.directory, session.profile.setup))
    if outcome.ending is not Ending.DONE:
        raise ValueError("the cluster did not answer")
    found = parse_preparations(outcome.stdout.decode("utf-8", "replace"))
    return tuple(each for each in found.values() if each.reference)


async def failure(session: Session, found: Preparation) -> str:
    """Why something could not be made and what to do, for a person; empty when that did not fail."""
    name = found.reference
    if is_remote(name):
        why = remote.failure_of(found)
        return f"its input {name} could not be staged: {why.why} ({why.fix})" if why else ""
    failed = imports.failure_of(Image.parse(name), found)
    if failed is None:
        return ""
    failed = await explained(session, name, failed)
    return f"its image {name} could not be imported: {failed.why} ({failed.fix})"
