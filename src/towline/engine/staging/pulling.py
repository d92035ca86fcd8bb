"""`towline pull`: files and directories of the cluster's shared file system brought home."""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Callable
from pathlib import Path

from towline.engine.events import Progress, PullReport
from towline.engine.homecoming import Origin, bring_home
from towline.engine.outcomes import expect_done
from towline.engine.reaching import open_transfers
from towline.engine.session import Session
from towline.engine.staging.pushing import place_on_cluster
from towline.models.errors import NotFound, TransferFailed
from towline.remote.base import Operation

_MISSING = 44


async def pull(
    session: Session, remote: str, local: Path | None, progress: Callable[[Progress], None] | None
) -> PullReport:
    """Bring a file, or what a directory holds, home.

    Args:
        session: the cluster.
        remote: the file or directory there, see `place_on_cluster`.
        local: the file or directory that it shall be; by its own name in the working directory when not given.
        progress: called now and then, in another thread.

    Raises:
        NotFound, UsageError: there is no such file, or the place is none.
        TransferFailed: not everything arrived.
    """
    path = place_on_cluster(session, remote)
    dest = (local or Path(posixpath.basename(path))).absolute()
    missing = NotFound(
        f"{path} cannot be found on the cluster",
        why="It is not there, or may not be read.",
        fix="Give a file or a directory of the cluster that you can read.",
    )
    if await _is_directory(session, path, missing):
        return await bring_home(session, Origin(path, path, missing.fix), dest, progress=progress)
    return await _file(session, path, dest, progress)


async def _is_directory(session: Session, path: str, missing: NotFound) -> bool:
    transfers = open_transfers(session.profile, session.remote)
    try:
        text = f'if [ -d "$1" ]; then echo d; elif [ ! -f "$1" ] || [ ! -r "$1" ]; then exit {_MISSING}; fi'
        outcome = await transfers.remote.run(Operation("kind", text, (transfers.there(path),)))
        return bool(expect_done(outcome, f"looking at {path}", {_MISSING: missing}))
    finally:
        await transfers.close()


async def _file(session: Session, path: str, dest: Path, progress: Callable[[Progress], None] | None) -> PullReport:
    place = await asyncio.to_thread(lambda: dest / posixpath.basename(path) if dest.is_dir() else dest)

    def told(count: int, total: int) -> None:
        if progress:
            progress(Progress(0, 1, count, total))

    transfers = open_transfers(session.profile, session.remote)
    try:
        done = await transfers.download(path, place, progress=told)
    except OSError as failed:
        raise TransferFailed(f"{place} could not be written", why=str(failed)) from None
    finally:
        await transfers.close()
    return PullReport(1, done.bytes, place.parent, received=done.received, grown=(path,) if done.grown else ())
