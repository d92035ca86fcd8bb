"""Results: listed, and brought home."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from towline.engine.events import NOTHING_LEFT, Progress, PullReport, ResultFile
from towline.engine.outcomes import expect_done
from towline.engine.reaching import open_transfers
from towline.engine.session import Session
from towline.models.errors import NotFound, TransferFailed, Unreachable
from towline.models.job import JobRecord
from towline.models.tree import Tree
from towline.remote.base import Operation
from towline.remote.files.transfer import Transfers
from towline.remote.files.tree import FOLDER, TreePull, TreeReport
from towline.storage.results import admit, parse_tree, result_files, select, without_unfinished
from towline.storage.scripts import script

_MISSING = 44
_NAMED = 20
"""Files that an error names."""


async def list_results(session: Session, record: JobRecord) -> tuple[ResultFile, ...]:
    """The files below the job's results directory, sorted by path."""
    return result_files(await _listed(Transfers(session.remote), origin_of(record)))


@dataclass(frozen=True)
class Origin:
    """A directory on the cluster that is brought home.

    Attributes:
        path: the directory.
        name: what it holds, for messages.
        hint: what to do when it is not there.
        job: the directory of the job that may still write there; empty for none.
        task: the task that does.
    """

    path: str
    name: str
    hint: str
    job: str = ""
    task: int | None = None


def _whole(tree: Tree) -> Tree:
    return tree


async def pull(
    session: Session,
    record: JobRecord,
    dest: Path,
    *,
    only: Sequence[str] = (),
    progress: Callable[[Progress], None] | None,
) -> PullReport:
    """Bring the results home below `dest`; what is there already stays, and what was begun goes on.

    What the job is still writing, as far as names and times tell, stays there.
    """
    unfinished: tuple[str, ...] = ()
    empty = False

    def choose(tree: Tree) -> Tree:
        nonlocal unfinished, empty
        empty = not (tree.files or tree.links)
        whole, unfinished = without_unfinished(select(tree, only))
        return whole

    report = await bring_home(session, origin_of(record), dest, progress=progress, choose=choose)
    way = NOTHING_LEFT if empty and not report.refused else report.way
    return replace(report, unfinished=unfinished, way=way)


async def bring_home(
    session: Session,
    origin: Origin,
    dest: Path,
    *,
    progress: Callable[[Progress], None] | None,
    choose: Callable[[Tree], Tree] = _whole,
) -> PullReport:
    """Bring what a directory holds home below `dest`; what is there already stays, and what was begun goes on.

    Args:
        session: the cluster.
        origin: the directory.
        dest: the local directory; made when missing.
        progress: called now and then, in another thread.
        choose: what of each listing is to come.

    Raises:
        TransferFailed: not everything arrived, or it could not be written here.
    """
    transfers = open_transfers(session.profile, session.remote)
    try:
        return await _pulled(transfers, origin, dest, progress, choose)
    except Unreachable as error:
        if host := session.profile.transfer_host:
            raise _no_mover(host, error) from error
        raise
    finally:
        await transfers.close()


async def _pulled(
    transfers: Transfers,
    origin: Origin,
    dest: Path,
    progress: Callable[[Progress], None] | None,
    choose: Callable[[Tree], Tree],
) -> PullReport:
    refused: tuple[str, ...] = ()

    async def look() -> Tree:
        nonlocal refused
        tree, refused = admit(await _listed(transfers, origin), FOLDER)
        return choose(tree)

    def told(files: int, files_total: int, count: int, total: int) -> None:
        if progress:
            progress(Progress(files, files_total, count, total))

    try:
        report = await TreePull(transfers, origin.path, dest, told).run(look)
    except OSError as error:
        raise TransferFailed(
            f"{origin.name} could not be written to {dest}",
            why=str(error),
            fix="Free the place or choose another directory, then pull again; it goes on where it was.",
        ) from error
    _check(origin, report, refused)
    size = sum(file.state.size for file in report.tree.files)
    return PullReport(
        len(report.tree.files), size, dest, refused, report.received, report.kept, report.grown, report.way
    )


def origin_of(record: JobRecord) -> Origin:
    """Where the results of a job, or of a task, are."""
    hint = "See with `towline status` whether the job was ever submitted."
    job = "" if record.state.ended else record.directory
    return Origin(_place(record), f"the results of job {record.id}", hint, job, record.task)


def _place(record: JobRecord) -> str:
    """The directory of a job's results, or of one task's."""
    return f"{record.directory}/results" + ("" if record.task is None else f"/{record.task}")


async def _listed(transfers: Transfers, origin: Origin) -> Tree:
    directory = transfers.there(origin.path)
    job = transfers.there(origin.job) if origin.job else ""
    args = (directory, job, "" if origin.task is None else str(origin.task))
    outcome = await transfers.remote.run(Operation("list results", script("list-results"), args, repeats=True))
    return parse_tree(expect_done(outcome, "listing the results", {_MISSING: _gone(origin, directory)}))


def _check(origin: Origin, report: TreeReport, refused: Sequence[str]) -> None:
    folders = {f"{each.path or '.'}/": "it cannot be listed" for each in report.tree.unreadable}
    unreadable: Mapping[str, str] = {**folders, **report.unreadable}
    if unreadable:
        lines = [f"{name}: {why}" for name, why in sorted(unreadable.items())]
        lines += [f"{name} was left there, too: it leads out of the directory, or is no file" for name in refused]
        more = [f"and {len(lines) - _NAMED} more"] if len(lines) > _NAMED else []
        raise TransferFailed(
            f"some of {origin.name} could not be read on the cluster; the others were brought home",
            why="\n".join(lines[:_NAMED] + more),
            fix="Give yourself the right to read them there, then pull again.",
        )


def _gone(origin: Origin, directory: str) -> NotFound:
    mapped = "" if directory == origin.path else " Is `path_map` right for it?"
    return NotFound(
        f"{origin.name} cannot be found on the cluster",
        why=f"{directory} is not there or may not be read.{mapped}",
        fix=origin.hint,
    )


def _no_mover(host: str, error: Unreachable) -> Unreachable:
    return Unreachable(
        f"the host for transfers, {host}, could not be reached",
        why=error.why,
        fix="See that `ssh` to it works without questions; or take `transfer_host` out of the profile.",
    )
