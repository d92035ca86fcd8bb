"""Having images made: one job for each, whoever asks, or the login host where the profile says so."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from towline.container.cache import image_file
from towline.container.imports import failure_of
from towline.container.reference import enroot_form
from towline.engine import preparing
from towline.engine.events import Held
from towline.engine.images.diagnosis import explained
from towline.engine.images.preparing import cache_of
from towline.engine.session import Session
from towline.engine.watching.pace import Pace
from towline.models.errors import StagingFailed
from towline.models.image import Image
from towline.models.job import JobRecord, JobState
from towline.models.plan import Plan, PlannedImage
from towline.models.units import size
from towline.slurm.calls import Call
from towline.slurm.preparation import Preparation, state_call
from towline.slurm.scripts import script

_LAG = 10.0
"""Seconds by which a network file system may show a node's files late."""


@dataclass(frozen=True)
class ImportNews:
    """How an import is doing.

    Attributes:
        image: what is made.
        found: what is known of it.
        slurm_id: of its job; `engine.preparing.HERE` on a login host.
        seconds: since it was asked for.
    """

    image: PlannedImage
    found: Preparation
    slurm_id: str
    seconds: float


async def import_jobs(session: Session, plan: Plan, told: Callable[[ImportNews], None] | None = None) -> list[str]:
    """Slurm's ids of the jobs that make a plan's images, as far as they are not there.

    What the login host makes is waited for: nothing could wait for it in Slurm's hands.

    Raises:
        SlurmRefused, StagingFailed, AccessRefused: an import could not be submitted, or failed; nothing else was.
        Unreachable, OutcomeUnknown, WaitTimedOut, RemoteFault: the cluster did not answer.
    """
    missing = [image for image in plan.images if not image.ready]
    if session.profile.import_on == "login":
        for image in missing:
            await made(session, image, told or _unheard)
        return []
    return [await import_job(session, image, plan.spec.account) for image in missing]


def import_told(
    session: Session, plan: Plan, told: Callable[[Held], None] | None
) -> Callable[[ImportNews], None] | None:
    """Passes news of imports on to who is told that a submission waits."""
    if told is None:
        return None
    record = JobRecord(plan.job_id, plan.spec.name, session.profile.name, JobState.SUBMITTING, plan.directory, 0.0)

    def hear(news: ImportNews) -> None:
        found = news.found
        made = f", {size(found.bytes)}" if found.bytes else ""
        reason = f"{news.image.reference} is being imported: {found.doing or found.stage or 'it begins'}{made}"
        told(Held(record, reason, 5.0))

    return hear


def _unheard(_news: ImportNews) -> None:
    return


async def made(session: Session, image: PlannedImage, told: Callable[[ImportNews], None]) -> None:
    """Have an image made, and wait for it.

    Raises:
        StagingFailed: the import failed.
        SlurmRefused, AccessRefused: it could not be submitted.
        Unreachable, OutcomeUnknown, WaitTimedOut, RemoteFault: the cluster did not answer.
    """
    begin, pace = time.monotonic(), Pace(0.5, 5.0)
    job = await import_job(session, image)
    heard = begin
    while job:
        found = await look(session, image)
        if found.ready:
            return
        if found.running or found.end:
            heard = time.monotonic()
        failure = failure_of(Image.parse(image.reference), found)
        if failure and (found.end or time.monotonic() - heard > _LAG):  # its last record may be on its way
            failure = await explained(session, image.reference, failure)
            where = "on the login host" if job == preparing.HERE else f"Slurm job {found.slurm_id or job}"
            raise StagingFailed(f"the import of {image.reference} failed ({where})", why=failure.why, fix=failure.fix)
        told(ImportNews(image, found, job, time.monotonic() - begin))
        await asyncio.sleep(pace.quiet())


def image_name(image: PlannedImage) -> str:
    """The image's name in the cache."""
    return image.path.rpartition("/")[2].removesuffix(".sqsh")


async def import_job(session: Session, image: PlannedImage, account: str | None = None) -> str:
    """Slurm's id of the one job that makes the image, or `HERE`; empty when the image is there.

    Args:
        session: the cluster.
        image: what is to be made.
        account: of the job that needs it; the profile's `import_account` wins.

    Raises:
        SlurmRefused, StagingFailed, AccessRefused: it could not be submitted.
        Unreachable, OutcomeUnknown, WaitTimedOut, RemoteFault: the cluster did not answer.
    """
    name, reference = image_name(image), Image.parse(image.reference)
    target = {"target": cache_of(session.profile).encode()} if image.place else {}
    making = preparing.Making(
        kind="import",
        place=_place(session, image),
        name=name,
        command_line=f"enroot import {enroot_form(reference)}",
        time=session.profile.import_time,
        files={
            "image": image_file(reference, name, image.arch, image.digest),
            "supervisor": script("image-job").encode(),
            **target,
        },
        account=account,
        here=session.profile.import_on == "login",
    )
    return await preparing.job_for(session, making, _state(session, image))


async def look(session: Session, image: PlannedImage) -> Preparation:
    """How an image and its import are doing.

    Raises:
        Unreachable, OutcomeUnknown, WaitTimedOut, RemoteFault: the cluster did not answer.
    """
    return await preparing.look(session, image_name(image), _state(session, image))


def _state(session: Session, image: PlannedImage) -> Call:
    return state_call(_place(session, image), [image_name(image)], session.profile.setup)


def _place(session: Session, image: PlannedImage) -> str:
    return image.place or cache_of(session.profile)
