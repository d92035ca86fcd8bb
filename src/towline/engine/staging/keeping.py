"""`results --pull --follow`: what a job makes comes home while it runs, each file once nothing writes to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from towline.engine.events import NoAnswer, Progress, PullReport
from towline.engine.homecoming import bring_home, origin_of
from towline.engine.session import Session
from towline.engine.watching import observation
from towline.engine.watching.pace import pace_of_queue
from towline.models.errors import OutcomeUnknown, Unreachable, WaitTimedOut
from towline.models.job import JobRecord
from towline.models.tree import FileState, Tree, TreeFile
from towline.storage.results import is_appended, is_begun, select


async def keep_pulling(
    session: Session,
    record: JobRecord,
    dest: Path,
    only: Sequence[str] = (),
    progress: Callable[[Progress], None] | None = None,
) -> AsyncIterator[PullReport | NoAnswer]:
    """Pull what is new again and again until the job has ended, and then the rest.

    A file comes when two looks, `poll_interval` apart, found it with the same size and time; what is only added to
    (event files, logs) comes as far as it is written. At the end all come.

    Args:
        session: the cluster.
        record: the job.
        dest: the local directory.
        only: patterns, see `towline.storage.results.select`; all files when empty.
        progress: called now and then, in another thread.

    Raises:
        TransferFailed: something could not be read there or written here.
        NotFound: the job's directory is gone.
    """
    seen: dict[str, FileState] = {}
    pace, silent = pace_of_queue(session.profile.poll_interval), False
    while True:
        earlier = dict(seen)
        try:
            (record,) = await observation.poll(session, [record])

            def choose(tree: Tree, *, ended: bool = record.state.ended) -> Tree:
                chosen = select(tree, only)
                seen.clear()
                seen.update({file.path: file.state for file in chosen.files})
                return chosen if ended else _quiet(chosen, earlier)  # noqa: B023  used within the round

            report = await bring_home(session, origin_of(record), dest, progress=progress, choose=choose)
        except (Unreachable, OutcomeUnknown, WaitTimedOut) as error:
            if not silent:
                yield NoAnswer(error.why or error.what)
            silent = True
        else:
            silent = False
            if report.files > report.kept or record.state.ended:
                yield report
            if record.state.ended:
                return
        await asyncio.sleep(pace.quiet())


def _quiet(tree: Tree, earlier: Mapping[str, FileState]) -> Tree:
    """Without the files that were others, or not there, at the look before; what is only added to comes anyway."""

    def whole(file: TreeFile) -> bool:
        return is_appended(file.path) or (earlier.get(file.path) == file.state and not is_begun(file.path))

    return replace(tree, files=tuple(file for file in tree.files if whole(file)))
