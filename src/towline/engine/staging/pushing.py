"""`towline push`: local files and directories brought to the cluster's shared file system."""

from __future__ import annotations

import asyncio
import os
import posixpath
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from towline.engine.events import Progress
from towline.engine.outcomes import expect_done
from towline.engine.reaching import open_transfers
from towline.engine.session import Session
from towline.engine.staging import room
from towline.engine.staging.trees import whole_tree
from towline.models.errors import NotFound, StagingFailed, TransferFailed, UsageError
from towline.models.parts import shared_path
from towline.models.tree import FileState, Tree, TreeFile
from towline.remote.base import Operation
from towline.remote.files.batch import TOGETHER
from towline.remote.files.push import SCRATCH, PushReport, TreePush
from towline.remote.files.transfer import Transfers
from towline.slurm.space import Space, parse_space, says_full
from towline.storage.results import parse_tree, safe_link
from towline.storage.scripts import script

_NO_PLACE = 45


@dataclass(frozen=True)
class Pushed:
    """What a push brought to the cluster.

    Attributes:
        place: the file or directory on the cluster, absolute.
        files: number of files.
        bytes: their size in all.
        sent: bytes that went over the network in this call.
        kept: files that were there already.
        left_out: what stayed here: links that lead out of the directory, and what is no file.
        way: which way the files went (`rsync` or `tar`), and why.
    """

    place: str
    files: int
    bytes: int
    sent: int
    kept: int
    left_out: tuple[str, ...]
    way: str


def place_on_cluster(session: Session, text: str) -> str:
    """A path on the cluster: absolute, `lustre://…`, or below `<root>/data`.

    Raises:
        UsageError: it is none.
    """
    if "://" in text:
        path = shared_path(text)
    else:
        path = text if text.startswith("/") else f"{session.profile.root}/data/{text}"
    if not path or not path.strip("/.") or ".." in path.split("/") or "\0" in path or "\n" in path:
        raise UsageError(
            f"{text!r} is no place on the cluster's shared file system",
            fix=f"Give an absolute path there, or a name below {session.profile.root}/data.",
        )
    return posixpath.normpath(path)


async def push(session: Session, local: Path, remote: str, progress: Callable[[Progress], None] | None) -> Pushed:
    """Bring a file, or what a directory holds, to the cluster.

    Args:
        session: the cluster.
        local: the file or directory.
        remote: the file or directory that it shall be, see `place_on_cluster`; empty for its own name.
        progress: called now and then, in another thread.

    Raises:
        NotFound, UsageError: there is no such file, or the place is none.
        StagingFailed, TransferFailed: not everything arrived.
    """
    local = await asyncio.to_thread(_existing, local)
    is_file = await asyncio.to_thread(local.is_file)
    place = place_on_cluster(
        session, f"{remote}{local.name}" if is_file and remote.endswith("/") else remote or local.name
    )
    if is_file:
        source, root, only = local.parent, posixpath.dirname(place), posixpath.basename(place)
        if only != local.name:
            raise UsageError(
                f"a file keeps its name, so {local.name} cannot become {only}",
                fix=f"Give its directory, with a slash at the end: {place}/",
            )
        tree, left_out = await asyncio.to_thread(_tree, source, (local.name,))
    else:
        source, root, only = local, place, ""
        tree, left_out = await asyncio.to_thread(lambda: _tree(source, whole_tree(source).paths))
    transfers = open_transfers(session.profile, session.remote)
    try:
        report = await _sent(transfers, source, tree, root, only, progress)
    except OSError as error:
        raise TransferFailed(f"{local} cannot be sent", why=str(error), fix="Mend that, then push again.") from None
    finally:
        await transfers.close()
    total = sum(file.state.size for file in tree.files)
    return Pushed(place, len(tree.files), total, report.sent, report.kept, left_out, report.way)


async def _sent(
    transfers: Transfers, source: Path, tree: Tree, root: str, only: str, progress: Callable[[Progress], None] | None
) -> PushReport:
    first = True

    async def look() -> Tree:
        nonlocal first
        pattern = f"./{_plain(only)}" if only else ""
        operation = Operation("list target", script("list-target"), (transfers.there(root), pattern), timeout=None)
        outcome = await transfers.remote.run(operation)
        words = outcome.stderr.decode(errors="replace").strip()
        if outcome.exit_code == _NO_PLACE and says_full(words):
            raise await room.no_room(transfers.remote, transfers.there(root), words)
        refused = StagingFailed(f"{root} cannot be made on the cluster", why=words, fix="Choose a place that is yours.")
        space, _, listed = expect_done(outcome, "looking at what is there", {_NO_PLACE: refused}).partition(b"\0")
        there = parse_tree(listed)
        if first:
            _check_room(root, tree, there, parse_space(space.decode(errors="replace")))
            first = False
        return there

    def told(files: int, files_total: int, count: int, total: int) -> None:
        if progress:
            progress(Progress(files, files_total, count, total))

    try:
        return await TreePush(transfers, source, tree, root, told).run(look)
    except TransferFailed as failed:
        if not says_full(failed.why):
            raise
        raise await room.no_room(transfers.remote, transfers.there(root), failed.why, scratch=SCRATCH) from failed


def _check_room(root: str, tree: Tree, there: Tree, space: Space | None) -> None:
    """New bytes must fit; a file is written whole before it takes an older one's place."""
    known = {(file.path, file.state.size) for file in there.files}
    begun = sum(file.state.size for file in there.files if file.path.startswith(f"{SCRATCH}/"))
    sizes = [file.state.size for file in tree.files if (file.path, file.state.size) not in known]
    folders = {parent for file in tree.files for parent in _above(file.path)} - set(there.folders)
    spare = min(sum(sizes), TOGETHER) - begun  # what comes together lies there once packed and once unpacked
    room.check_room(space, root, sizes, folders=len(folders), spare=spare)


def _above(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path


def _existing(local: Path) -> Path:
    found = Path(os.path.abspath(local.expanduser()))
    if not found.exists():
        raise NotFound(f"there is no file or directory {found}", fix="Give what is to be brought to the cluster.")
    return found


def _tree(source: Path, paths: tuple[str, ...]) -> tuple[Tree, tuple[str, ...]]:
    files: list[TreeFile] = []
    links: list[tuple[str, str]] = []
    left_out: list[str] = []
    for path in paths:
        status = (source / path).lstat()
        if stat.S_ISREG(status.st_mode):
            files.append(TreeFile(path, FileState(status.st_size, status.st_mtime_ns), status.st_mode & 0o777))
        elif stat.S_ISLNK(status.st_mode) and safe_link(path, target := os.readlink(source / path)):
            links.append((path, target))
        else:
            left_out.append(path)
    return Tree(tuple(files), (), tuple(links)), tuple(left_out)


def _plain(name: str) -> str:
    """A name that `find -path` takes for itself."""
    return "".join(f"\\{char}" if char in "*?[\\" else char for char in name)
