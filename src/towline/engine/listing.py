"""Looking at a path of the cluster's shared file system: whether it is there, and what a directory holds."""

from __future__ import annotations

from dataclasses import dataclass

from towline.engine.outcomes import expect_done
from towline.engine.session import Session
from towline.engine.staging.pushing import place_on_cluster
from towline.models.errors import NotFound, RemoteFault
from towline.remote.base import Operation
from towline.storage.scripts import script

_MISSING, _CLOSED = 44, 45


@dataclass(frozen=True)
class Listing:
    """A path of the cluster.

    Attributes:
        path: the absolute path.
        is_directory: whether it is a directory.
        names: what the directory holds, sorted; the file's own name for a file; empty when it was not asked for.
    """

    path: str
    is_directory: bool
    names: tuple[str, ...] = ()


async def list_path(session: Session, path: str, *, names: bool = True) -> Listing:
    """What is at a path, in one round trip.

    Args:
        session: the cluster.
        path: a path there, see `place_on_cluster`.
        names: whether what a directory holds is wanted.

    Raises:
        NotFound: there is nothing of that name.
        RemoteFault: the directory may not be listed.
    """
    place = place_on_cluster(session, path)
    errors = {
        _MISSING: NotFound(f"{place} is not on the cluster", why="It is not there, or may not be seen."),
        _CLOSED: RemoteFault(f"{place} cannot be listed", why="It may not be read."),
    }
    operation = Operation("list path", script("list-path"), (place, "all" if names else "no"), repeats=True)
    answer = expect_done(await session.run(operation), f"looking at {place}", errors)
    kind, *found = answer.decode("utf-8", "surrogateescape").removesuffix("\0").split("\0")
    if kind == "directory":
        return Listing(place, True, tuple(found))
    return Listing(place, False, (place.rpartition("/")[2],))
