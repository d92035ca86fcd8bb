"""Having images made by jobs: one for each, whoever asks."""

from __future__ import annotations

from towline.container.cache import image_file
from towline.container.reference import enroot_form
from towline.engine import preparing
from towline.engine.images.preparing import cache_of
from towline.engine.session import Session
from towline.models.image import Image
from towline.models.plan import Plan, PlannedImage
from towline.slurm.calls import Call
from towline.slurm.preparation import Preparation, state_call
from towline.slurm.scripts import script


async def import_jobs(session: Session, plan: Plan) -> list[str]:
    """Slurm's ids of the jobs that make a plan's images, as far as they are not there.

    Raises:
        SlurmRefused, StagingFailed, AccessRefused: an import could not be submitted; nothing else was.
        Unreachable, OutcomeUnknown, WaitTimedOut, RemoteFault: the cluster did not answer.
    """
    return [await import_job(session, image, plan.spec.account) for image in plan.images if not image.ready]


def image_name(image: PlannedImage) -> str:
    """The image's name in the cache."""
    return image.path.rpartition("/")[2].removesuffix(".sqsh")


async def import_job(session: Session, image: PlannedImage, account: str | None = None) -> str:
    """Slurm's id of the one job that makes the image; empty when the image is there.

    Args:
        session: the cluster.
        image: what is to be made.
        account: of the job that needs it; the profile's `import_account` wins.

    Raises:
        SlurmRefused, StagingFailed, AccessRefused: it could not be submitted.
        Unreachable, OutcomeUnknown, WaitTimedOut, RemoteFault: the cluster did not answer.
    """
    name, reference = image_name(image), Image.parse(image.reference)
    making = preparing.Making(
        kind="import",
        place=cache_of(session.profile),
        name=name,
        command_line=f"enroot import {enroot_form(reference)}",
        time=session.profile.import_time,
        files={
            "image": image_file(reference, name, image.arch, image.digest),
            "supervisor": script("image-job").encode(),
        },
        account=account,
    )
    return await preparing.job_for(session, making, _state(session, image))


async def look(session: Session, image: PlannedImage) -> Preparation:
    """How an image and its import are doing.

    Raises:
        Unreachable, OutcomeUnknown, WaitTimedOut, RemoteFault: the cluster did not answer.
    """
    return await preparing.look(session, image_name(image), _state(session, image))


def _state(session: Session, image: PlannedImage) -> Call:
    return state_call(cache_of(session.profile), [image_name(image)], session.profile.setup)
