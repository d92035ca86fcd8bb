"""Images that another user has put into a shared cache: compared with what that user recorded, before they are used."""

from __future__ import annotations

from towline.container.housekeeping import images_call, parse_images
from towline.engine.images.preparing import cache_of
from towline.engine.outcomes import check_ending
from towline.engine.session import Session
from towline.models.errors import RemoteFault, StagingFailed
from towline.models.plan import Plan
from towline.remote.base import Operation

SECONDS = 1800.0
"""Time limit of reading images whole."""


async def check_shared(session: Session, plan: Plan) -> None:
    """Read images of other users whole, each once as long as it does not change, and compare their checksums.

    Raises:
        StagingFailed: one is not what was recorded.
        Unreachable, OutcomeUnknown, WaitTimedOut, RemoteFault: the cluster did not answer.
    """
    others = {image.path.rpartition("/")[2].removesuffix(".sqsh"): image for image in plan.images if image.owner}
    if not others:
        return
    profile = session.profile
    call = images_call(profile.root, cache_of(profile), list(others), read="once", setup=profile.setup)
    outcome = await session.run(Operation(call.name, call.script, call.args, call.files, SECONDS))
    check_ending(outcome, "comparing images with their records")
    try:
        found = {each.image.name: each for each in parse_images(outcome.stdout.decode("utf-8", "replace"))}
    except ValueError as error:
        raise RemoteFault("the images could not be looked at", why=str(error), fix="Try again in a while.") from None
    for name, image in others.items():
        shelved = found.get(name)
        if shelved is None or not shelved.whole or not shelved.intact:
            raise StagingFailed(
                f"{image.path} is not what {image.owner} has recorded of it",
                why="Its checksum is another one, so it was changed or damaged; nothing was submitted.",
                fix=f"Ask {image.owner} to remove it (`towline images rm {name}`); then it is made anew.",
            )
