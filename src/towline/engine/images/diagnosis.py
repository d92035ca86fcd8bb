"""Why an image could not be imported, where Enroot itself does not say enough."""

from __future__ import annotations

import dataclasses

from towline.container.imports import Failure
from towline.container.registry import check_call, parse_manifest
from towline.engine.registry import problem
from towline.engine.session import Session
from towline.models.errors import TowlineError, Unreachable
from towline.models.image import Image


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
