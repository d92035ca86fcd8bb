"""`towline rm` and `towline gc`: what is not needed any more is removed from the cluster, never what is in use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from towline.engine.data.preparing import place_of
from towline.engine.images.preparing import cache_of
from towline.engine.outcomes import expect_done
from towline.engine.session import Session
from towline.engine.watching import observation
from towline.models.errors import NotFound, SlurmUnavailable, UsageError
from towline.models.job import JobRecord
from towline.remote.base import Operation
from towline.storage.scripts import script
from towline.storage.usage import Item as Item
from towline.storage.usage import Usage, may_go, parse_usage
from towline.storage.usage import Wish as Wish

_NO_QUEUE, _NO_ROOT = 43, 44
_AT_ONCE = 500
"""Names in one call."""


@dataclass(frozen=True)
class Removed:
    """What became of what should go.

    Attributes:
        gone: paths below the root that are removed.
        used: paths that somebody uses after all.
    """

    gone: tuple[str, ...]
    used: tuple[str, ...]


async def usage(session: Session) -> Usage:
    """What lies below the root; takes a while where there is much.

    Raises:
        NotFound: there is no such directory.
    """
    profile = session.profile
    places = (cache_of(profile), place_of(profile))
    operation = Operation("usage", script("usage"), (profile.root, profile.setup, *places), timeout=None)
    return parse_usage(expect_done(await session.run(operation), "measuring", _errors(session)).decode())


async def candidates(session: Session, wish: Wish) -> tuple[Item, ...]:
    """What may go of what is wished to; nothing is removed.

    Raises:
        SlurmUnavailable: the queue could not be asked, so nobody knows what is in use.
        NotFound: there is no root.
    """
    records = session.store.jobs(session.profile.name, everything=True)
    if alive := [record for record in records if not record.state.ended]:
        await observation.poll(session, alive)
        records = session.store.jobs(session.profile.name, everything=True)
    found = await usage(session)
    if found.alive is None:
        raise _no_queue()
    states = {record.id: record.state.value for record in records}
    return may_go(found, states, {record.id for record in records if not record.state.ended}, wish)


async def remove(session: Session, paths: Sequence[str]) -> Removed:
    """Remove what `candidates` named, and logs or results alone (`logs/ID`, `results/ID`), what is still not in use.

    Raises:
        SlurmUnavailable: the queue could not be asked; what was removed before that is gone.
    """
    gone: list[str] = []
    used: list[str] = []
    profile = session.profile
    for start in range(0, len(paths), _AT_ONCE):
        args = (profile.root, profile.setup, *paths[start : start + _AT_ONCE])
        outcome = await session.run(Operation("remove", script("remove"), args, timeout=None))
        for line in expect_done(outcome, "removing", _errors(session)).decode().splitlines():
            word, _, path = line.partition(" ")
            (gone if word == "removed" else used).append(path)
        session.store.remove([path.partition("/")[2] for path in gone if path.startswith("jobs/")])
    return Removed(tuple(gone), tuple(used))


async def remove_jobs(session: Session, records: Sequence[JobRecord]) -> Removed:
    """Remove jobs that have ended, with logs and results.

    Raises:
        UsageError: one has not ended, or is a task of an array.
    """
    for record in records:
        if record.task is not None:
            raise UsageError(
                f"task {record.reference} cannot be removed alone",
                fix=f"Remove the array with `towline rm {record.id}`.",
            )
    for record in await observation.poll(session, records):
        if not record.state.ended:
            raise UsageError(
                f"job {record.id} is still {record.state}",
                fix=f"Wait for its end, or cancel it with `towline cancel {record.id}`; nothing was removed.",
            )
    return await remove(session, [f"jobs/{record.id}" for record in records])


def _errors(session: Session) -> dict[int, NotFound | SlurmUnavailable]:
    missing = NotFound(
        f"{session.profile.root} is not there", fix="Nothing was submitted yet, or `root` is another one."
    )
    return {_NO_ROOT: missing, _NO_QUEUE: _no_queue()}


def _no_queue() -> SlurmUnavailable:
    return SlurmUnavailable(
        "Slurm could not be asked which jobs it has, so nothing was removed",
        fix="The controller may be restarting; try again in a while.",
    )
