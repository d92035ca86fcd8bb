"""A whole tree brought home: what is here already stays, what was begun goes on, and each file appears whole.

A round looks at the tree and brings what is missing; another follows when the connection was cut or a file changed
while it was read. Large files come one by one and go on by offset; small ones come together as a tar stream, or by
rsync where that is better (`towline.remote.files.rsync`). Until a file is whole it is a part in a directory of the
transfer's own at the destination, which is removed in the end; what a killed transfer leaves there is used or removed
by the next.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from towline.models.errors import TransferFailed
from towline.models.tree import Tree, TreeFile
from towline.remote.base import Lends
from towline.remote.files import rsync
from towline.remote.files.batch import batches, fetch
from towline.remote.files.meter import Meter, Progress
from towline.remote.files.parts import Parts, check_room, claimed, is_here, put
from towline.remote.files.transfer import SourceChanged, SourceUnreadable, Transfers

FOLDER = ".towline-pull"
"""The directory at the destination for what is not whole yet."""
_ALONE = 32 << 20
"""Bytes from which on a file comes by itself."""
_RESUMED = 1 << 20
"""Bytes of a part that are worth a call of their own to go on."""
_TRIES = 5
"""Rounds in a row that may be cut without a byte of progress."""
_CHANGES = 3
"""Rounds that may end with files that changed while they were read."""
_GOES_ON = "Try again; it goes on where it was."


@dataclass(frozen=True)
class TreeReport:
    """A tree that is here now.

    Attributes:
        tree: the tree as it was looked at last.
        received: bytes that came over the network in this call.
        kept: files that were here already, with the same size and time.
        grown: files that became longer while they were read; they are here as they were at the beginning.
        unreadable: path → why it could not be read on the other side.
        way: which way the files came, and why.
    """

    tree: Tree
    received: int
    kept: int
    grown: tuple[str, ...]
    unreadable: Mapping[str, str]
    way: str


class TreePull:
    """Brings one tree home.

    Args:
        transfers: the way to the other side.
        root: the tree's directory there, absolute, as the cluster calls it.
        dest: the directory here; made if it is missing.
        progress: see `Progress`.
    """

    def __init__(self, transfers: Transfers, root: str, dest: Path, progress: Progress | None = None) -> None:
        dest.mkdir(parents=True, exist_ok=True)
        # That the destination itself may be a link is the caller's own wish; below it no link is followed.
        self._dest = dest.resolve()
        self._transfers = transfers
        self._root = root
        self._parts = Parts(self._dest / FOLDER)
        self._meter = Meter(progress)
        self._begun: dict[str, int] = {}
        self._copies: list[tuple[TreeFile, TreeFile]] = []
        self._kept: int | None = None
        self._received = 0
        self._grown: set[str] = set()
        self._unreadable: dict[str, str] = {}
        self._doubts: dict[str, str] = {}
        self._doubted: set[str] = set()
        self._rsync_failed = ""
        self._way = "nothing was missing"
        self._lock = -1

    async def run(self, look: Callable[[], Awaitable[Tree]]) -> TreeReport:
        """Bring it.

        Args:
            look: lists the tree; what it leaves out does not come.

        Raises:
            TransferFailed: the connection was lost again and again, or files changed again and again.
            OSError: it could not be written here.
            Whatever `look` raises.
        """
        async with claimed(self._dest) as self._lock:
            try:
                tree = await self._rounds(look)
                await asyncio.to_thread(self._finish, tree)
            finally:
                with contextlib.suppress(OSError):
                    self._parts.folder.rmdir()  # if there is nothing in it to go on with
        grown = tuple(sorted(self._grown))
        return TreeReport(tree, self._received, self._kept or 0, grown, self._unreadable, self._way)

    async def _rounds(self, look: Callable[[], Awaitable[Tree]]) -> Tree:
        idle = changes = 0
        while True:
            tree = await look()
            missing = await asyncio.to_thread(self._missing, tree)
            before, self._doubts = self._received, {}
            cut = await self._fetch(missing, tree) if missing else ""
            await asyncio.to_thread(self._make_copies)
            if not cut and not self._doubts:
                return tree
            idle = idle + 1 if cut and self._received == before else 0
            changes += bool(self._doubts)
            self._doubted |= set(self._doubts)
            if idle >= _TRIES:
                raise TransferFailed("the connection was lost again and again", why=cut, fix=_GOES_ON)
            if changes >= _CHANGES:
                why = "\n".join(f"{path}: {why}" for path, why in sorted(self._doubts.items())[:20])
                raise SourceChanged("some files changed while they were read, again and again", why=why, fix=_GOES_ON)

    # --- What is here ---

    def _missing(self, tree: Tree) -> list[TreeFile]:
        """What has to be brought; parts that are whole get their names, and those of no use are removed."""
        self._parts.folder.mkdir(exist_ok=True)
        found = {entry.name: entry.stat().st_size for entry in os.scandir(self._parts.folder) if entry.is_file()}
        missing: list[TreeFile] = []
        first: dict[str, TreeFile] = {}
        self._begun, self._copies, kept = {}, [], 0
        self._meter.start(len(tree.files), sum(file.state.size for file in tree.files))
        for file in tree.files:
            part = self._parts.of(self._source(file), file.state).name
            if is_here(self._place(file.path), file.state):
                kept += 1
                self._meter.have(file.state.size, 1)
            elif file.path in self._grown or file.path in self._unreadable:
                self._meter.have(file.state.size, 1)
            elif file.state.size and found.get(part) == file.state.size:
                self._put(file)
                self._meter.have(file.state.size, 1)
                del found[part]
            elif file.inode and file.inode in first:
                self._copies.append((first[file.inode], file))
            else:
                missing.append(file)
                if size := found.pop(part, 0):
                    self._begun[file.path] = size
                    self._meter.have(size)
            first.setdefault(file.inode, file)
        for name in found:
            (self._parts.folder / name).unlink()
        self._kept = kept if self._kept is None else self._kept
        self._meter.add(0)
        check_room(self._dest, self._meter.left)
        return missing

    def _place(self, path: str) -> Path:
        """The place for a path, after a look that no part of the way is a link."""
        place = self._dest
        for part in path.split("/")[:-1]:
            place = place / part
            if place.is_symlink():
                raise OSError(f"{place} is a link; the files below it cannot be put there")
        return self._dest / path

    def _source(self, file: TreeFile) -> str:
        return f"{self._root}/{file.path}"

    def _put(self, file: TreeFile) -> None:
        place = self._place(file.path)
        place.parent.mkdir(parents=True, exist_ok=True)
        put(self._parts.of(self._source(file), file.state), place, file.state, mode=file.mode)

    def _make_copies(self) -> None:
        """Further names of a file that is here now come from that file."""
        for original, file in self._copies:
            if is_here(self._dest / original.path, original.state):
                shutil.copyfile(self._dest / original.path, self._parts.of(self._source(file), file.state))
                self._put(file)
                self._meter.add(file.state.size, 1)
            elif original.path not in self._unreadable:
                self._doubts.setdefault(file.path, f"it is another name of {original.path}, which changed")

    def _finish(self, tree: Tree) -> None:
        for folder in tree.folders:
            self._place(f"{folder}/x").parent.mkdir(parents=True, exist_ok=True)
        for path, target in tree.links:
            place = self._place(path)
            if place.is_symlink() and os.readlink(place) == target:
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            place.unlink(missing_ok=True)
            place.symlink_to(target)
        shutil.rmtree(self._parts.folder)

    # --- What is not ---

    async def _fetch(self, missing: list[TreeFile], tree: Tree) -> str:
        """Bring files; what stayed behind is in `_doubts` or `_unreadable`. Gives the reason when it was cut."""
        older = {file.path for file in missing if self._older_is_here(file)}
        lender = self._transfers.remote
        choice = rsync.choose(lender, tree.rsync, files=len(missing), older=len(older), failed=self._rsync_failed)
        self._way = str(choice)
        by_rsync = choice.rsync and isinstance(lender, Lends)
        alone = [file for file in missing if self._comes_alone(file) and not (by_rsync and file.path in older)]
        taken = {file.path for file in alone}
        others = [file for file in missing if file.path not in taken]
        if by_rsync and isinstance(lender, Lends):
            cut = await self._by_rsync(lender, others)
        else:
            cut = await self._together(others)
        for file in alone if not cut else ():
            await self._by_offset(file)
        return cut

    def _older_is_here(self, file: TreeFile) -> bool:
        place = self._dest / file.path
        return file.state.size >= rsync.OLDER and place.is_file() and place.stat().st_size >= rsync.OLDER

    def _comes_alone(self, file: TreeFile) -> bool:
        return file.state.size >= _ALONE or self._begun.get(file.path, 0) >= _RESUMED

    async def _by_offset(self, file: TreeFile) -> None:
        place = self._place(file.path)
        known = self._begun.get(file.path, 0)

        def progress(done: int, _total: int) -> None:
            nonlocal known
            self._meter.add(done - known)
            known = done

        try:
            done = await self._transfers.download(
                self._source(file), place, parts=self._parts, mode=file.mode, progress=progress
            )
        except (SourceChanged, SourceUnreadable) as error:
            if isinstance(error, SourceUnreadable) and file.path in self._doubted:
                self._unreadable[file.path] = error.why
            else:
                self._doubts[file.path] = error.what
            return
        self._received += done.received
        self._grown |= {file.path} if done.grown else set()
        self._meter.add(0, 1)

    async def _together(self, files: list[TreeFile]) -> str:
        def written(count: int, whole: int) -> None:
            self._received += count
            self._meter.add(count, whole)

        for batch in batches(files):
            brought = await fetch(self._transfers, self._root, batch, self._parts, written)
            await asyncio.to_thread(self._take, brought.whole)
            self._grown |= brought.grown
            self._doubts.update(brought.doubts)
            self._unreadable.update(brought.unreadable)
            if brought.cut:
                return brought.cut
        return ""

    def _take(self, files: list[TreeFile]) -> None:
        for file in files:
            self._put(file)

    async def _by_rsync(self, lender: Lends, files: list[TreeFile]) -> str:
        progress = self._meter.of_another()
        before = {file.path: _inode(self._place(file.path)) for file in files}
        root = self._transfers.there(self._root)
        names = [file.path for file in files]
        scratch = self._parts.folder
        done = await rsync.pull(lender, root, self._dest, names, scratch=scratch, lock=self._lock, progress=progress)
        self._received += done.moved
        left = await asyncio.to_thread(_left_by_rsync, self._dest, files, before)
        if left:
            # The stream tells better why; and it gets through where rsync does not.
            self._rsync_failed = done.failure or "it left files behind"
            self._doubts.update({} if done.failure else dict.fromkeys(left, "it changed or could not be read"))
        return done.failure if left else ""


def _left_by_rsync(dest: Path, files: list[TreeFile], before: Mapping[str, int]) -> list[str]:
    """What was not brought, neither as it was looked at nor as it became since."""
    return [
        file.path
        for file in files
        if not is_here(dest / file.path, file.state) and _inode(dest / file.path) == before[file.path]
    ]


def _inode(place: Path) -> int:
    """Tells one file of a name from the next; 0 when there is none."""
    try:
        return place.lstat().st_ino
    except OSError:
        return 0
