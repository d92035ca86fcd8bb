"""Whether the cluster has room for what is to be brought there, and what a user reads when it had none."""

from __future__ import annotations

from collections.abc import Iterable

from towline.models.errors import StagingFailed
from towline.remote.base import Operation, Remote
from towline.slurm.space import Space, parse_space, says_full
from towline.storage.scripts import script

_FIX = "Free space (`towline gc` says what could go), ask the site for more, or choose another place"


def check_room(space: Space | None, place: str, sizes: Iterable[int], *, folders: int = 0, spare: int = 0) -> None:
    """Return when files of these sizes fit, as far as is known.

    Args:
        space: what the cluster says.
        place: where they are to be.
        sizes: bytes of each file.
        folders: directories that are made for them.
        spare: bytes that are needed only meanwhile.

    Raises:
        StagingFailed: they do not.
    """
    each = [(size + 1023) >> 10 for size in sizes]
    if not each or space is None:
        return
    if why := space.lacking(sum(each) + (spare >> 10), len(each) + folders):
        raise StagingFailed(
            f"{place} has no room for what is to be brought there", why=why, fix=f"{_FIX}; nothing was sent."
        )


async def no_room(remote: Remote, place: str, words: str, *, scratch: str = "") -> StagingFailed:
    """The error for a transfer that found no room, with what is full; nothing half-made is left of it.

    Args:
        remote: the way there.
        place: the directory, as the other side calls it.
        words: what the failure said.
        scratch: the name of the transfer's own directory in it.
    """
    outcome = await remote.run(Operation("room", script("room"), (place, scratch)))
    space = parse_space(outcome.stdout.decode(errors="replace")) if outcome.ok else None
    said = next((line.strip() for line in words.splitlines() if says_full(line)), words.strip())
    why = "; ".join(filter(None, [said, space.tightest if space else ""]))
    return StagingFailed(f"there is no room left in {place}", why=why, fix=f"{_FIX}; nothing half-made was left.")
