"""A whole tree sent: what is there already stays, what was begun goes on, and each file appears whole and checked.

A round looks at what is there and sends what is missing; another follows when the connection was cut. Large files go in
pieces that are put together there; small ones go together as tar files, or by rsync where that is better
(`towline.remote.files.rsync`). What arrived is compared by SHA-256 before it gets its name (rsync compares by itself).
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import tarfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from towline.models.errors import TransferFailed
from towline.models.tree import FileState, Tree, TreeFile
from towline.remote.base import Ending, Lends, Operation, Outcome
from towline.remote.files import rsync
from towline.remote.files.batch import batches
from towline.remote.files.meter import Meter, Progress
from towline.remote.files.parts import Parts
from towline.remote.files.transfer import SourceChanged, Transfers

SCRATCH = ".towline-push"
"""The directory at the destination for what is not whole yet."""
_PIECE = 32 << 20
"""Bytes from which on a file goes by itself, in pieces of that size."""
_TRIES = 5
"""Rounds in a row that may be cut without a byte of progress."""
_CHANGES = 3
_NO_PLACE, _CHANGED, _BEHIND = 45, 46, 47
_GOES_ON = "Try again; it goes on where it was."

# Moved a directory at a time: a process for each file would take longer than the transfer.
_MOVE = b"""to=$1
shift
for folder; do
    mkdir -p -- "$to/$folder" || exit
    find "$folder" -mindepth 1 -maxdepth 1 ! -type d -exec sh -c 'to=$1; shift; exec mv -f -- "$@" "$to/"' sh \\
        "$to/$folder" {} + || exit
done
"""
_PLACE = f"""
mkdir new && tar -xpf tar -C new || exit {_NO_PLACE}
cd new
sha256sum -c ../sums >/dev/null 2>../differ || exit {_CHANGED}
find . -type d -exec sh ../move "$1" {{}} + || exit {_NO_PLACE}
"""
_APPEND = f"""
part=$1/{SCRATCH}/$2
mkdir -p "${{part%/*}}" && touch "$part" || exit {_NO_PLACE}
[ "$(stat -c %s "$part")" -ge "$3" ] || exit {_BEHIND}
truncate -s "$3" "$part" && cat piece >>"$part" || exit {_NO_PLACE}
"""
_NAME = f"""
part=$1/{SCRATCH}/$2 place=$1/$3
sum=$(sha256sum <"$part") || exit {_NO_PLACE}
[ "${{sum%% *}}" = "$4" ] || {{ rm -f "$part"; exit {_CHANGED}; }}
mkdir -p "${{place%/*}}" && chmod "$6" "$part" && touch -d "@$5" "$part" && mv -fT "$part" "$place" || exit {_NO_PLACE}
"""
_END = f"""
cd "$1" || exit {_NO_PLACE}
rm -rf {SCRATCH}
"""


@dataclass(frozen=True)
class PushReport:
    """A tree that is there now.

    Attributes:
        sent: bytes that went over the network in this call.
        kept: files that were there already, with the same size and time.
        way: which way the files went, and why.
    """

    sent: int
    kept: int
    way: str


class TreePush:
    """Sends one tree.

    Args:
        transfers: the way to the other side.
        source: the directory here.
        tree: what of it is to be there.
        root: the directory there, absolute, as the cluster calls it; it exists once `look` was called.
        progress: see `Progress`.
    """

    def __init__(
        self, transfers: Transfers, source: Path, tree: Tree, root: str, progress: Progress | None = None
    ) -> None:
        self._transfers = transfers
        self._source = source
        self._tree = tree
        self._root = transfers.there(root)
        self._parts = Parts(Path(SCRATCH))
        self._meter = Meter(progress)
        self._sent = 0
        self._kept: int | None = None
        self._way = "nothing was missing"
        self._rsync_failed = ""

    async def run(self, look: Callable[[], Awaitable[Tree]]) -> PushReport:
        """Send it.

        Args:
            look: makes the directory there and lists it.

        Raises:
            TransferFailed: something is in the way there, there is no room, files changed again and again while they
                were sent, or the connection was lost again and again.
            OSError: a file cannot be read here.
            Whatever `look` raises.
        """
        idle = changes = rounds = 0
        while True:
            there = await look()
            missing = self._missing(there)
            if not missing and self._rest(there):
                return PushReport(self._sent, self._kept or 0, self._way)
            if rounds >= _CHANGES:
                raise TransferFailed(
                    f"what is in {self._root} does not stay as it was sent",
                    why=f"For example {missing[0].path if missing else SCRATCH} is another one again.",
                    fix="See that nothing else writes there, then try again.",
                )
            before = self._sent
            try:
                await self._send(missing, there)
                rounds += 1
                continue
            except _Cut as cut:
                idle = idle + 1 if self._sent == before else 0
                if idle >= _TRIES:
                    raise TransferFailed(
                        "the connection was lost again and again", why=str(cut), fix=_GOES_ON
                    ) from None
            except SourceChanged:
                changes += 1
                if changes >= _CHANGES:
                    raise
            self._look_again()

    def _look_again(self) -> None:
        """The files here as they are now."""
        files = tuple(_now(self._source, file) for file in self._tree.files)
        self._tree = Tree(files, self._tree.folders, self._tree.links)

    def _missing(self, there: Tree) -> list[TreeFile]:
        found = {file.path: file.state for file in there.files}
        folders = set(there.folders)
        self._meter.start(len(self._tree.files), sum(file.state.size for file in self._tree.files))
        missing: list[TreeFile] = []
        for file in self._tree.files:
            if file.path in folders:
                raise TransferFailed(
                    f"{self._root}/{file.path} is a directory", why="A file of that name is to be put there."
                )
            if _same(found.get(file.path), file.state):
                self._meter.have(file.state.size, 1)
            else:
                missing.append(file)
        self._kept = len(self._tree.files) - len(missing) if self._kept is None else self._kept
        self._meter.add(0)
        return missing

    def _rest(self, there: Tree) -> bool:
        """Whether there is nothing left but files: no link to make, and no scratch directory."""
        return set(self._tree.links) <= set(there.links) and SCRATCH not in there.folders

    async def _send(self, missing: list[TreeFile], there: Tree) -> None:
        older = {file.path for file in missing if self._older_is_there(file, there)}
        lender = self._transfers.remote
        choice = rsync.choose(lender, there.rsync, files=len(missing), older=len(older), failed=self._rsync_failed)
        if missing:
            self._way = str(choice)
        by_rsync = choice.rsync and isinstance(lender, Lends)
        alone = [file for file in missing if file.state.size >= _PIECE and not (by_rsync and file.path in older)]
        taken = {file.path for file in alone}
        others = [file for file in missing if file.path not in taken]
        if others and by_rsync and isinstance(lender, Lends):
            await self._by_rsync(lender, others)
        else:
            for batch in batches(others):
                await self._together(batch)
        begun = {file.path: file.state.size for file in there.files if file.path.startswith(f"{SCRATCH}/")}
        for file in alone:
            await self._in_pieces(file, begun)
        if links := [link for link in self._tree.links if link not in there.links]:
            await self._call("links", await asyncio.to_thread(_tar_of_links, links))
        await self._do(Operation("end", _END, (self._root,), timeout=None), "")

    def _older_is_there(self, file: TreeFile, there: Tree) -> bool:
        sizes = {each.path: each.state.size for each in there.files} if file.state.size >= rsync.OLDER else {}
        return sizes.get(file.path, 0) >= rsync.OLDER

    async def _by_rsync(self, lender: Lends, files: list[TreeFile]) -> None:
        progress = self._meter.of_another()
        scratch = f"{self._root}/{SCRATCH}"
        names = [file.path for file in files]
        await self._do(Operation("scratch", 'mkdir -p "$1"', (scratch,)), "")
        done = await rsync.push(lender, self._source, self._root, names, scratch=scratch, progress=progress)
        self._sent += done.moved
        if done.failure:
            self._rsync_failed = done.failure
            raise _Cut(done.failure)

    async def _together(self, files: list[TreeFile]) -> None:
        tar, sums = await asyncio.to_thread(_tar_of, self._source, files)
        await self._call(f"{len(files)} files", tar, sums, files)

    async def _call(self, what: str, tar: bytes, sums: bytes = b"", files: list[TreeFile] | None = None) -> None:
        sizes = sum(file.state.size for file in files or ())
        told = 0

        def sent(count: int) -> None:
            nonlocal told
            self._sent += count
            self._meter.add(min(count, sizes - told))
            told += min(count, sizes - told)

        parcel: dict[str, bytes | Path] = {"tar": tar, "sums": sums or _NOTHING, "move": _MOVE}
        operation = Operation("push", _PLACE, (self._root,), parcel, None, where=self._root, sent=sent)
        await self._do(operation, what)
        self._meter.add(sizes - told, len(files or ()))

    async def _in_pieces(self, file: TreeFile, begun: dict[str, int]) -> None:
        place = self._source / file.path
        part = self._parts.of(file.path, file.state).name
        whole = await asyncio.to_thread(_sum, place)
        done = min(begun.get(f"{SCRATCH}/{part}", 0), file.state.size)
        self._meter.add(done)
        while done < file.state.size:
            piece = await asyncio.to_thread(_piece, place, done)
            if not piece:
                raise _changed(file.path)
            operation = Operation("push", _APPEND, (self._root, part, str(done)), {"piece": piece}, None)
            await self._do(operation, file.path)
            done += len(piece)
            self._sent += len(piece)
            self._meter.add(len(piece))
        seconds, nanoseconds = divmod(file.state.modified, 10**9)
        args = (self._root, part, file.path, whole, f"{seconds}.{nanoseconds:09d}", f"{file.mode & 0o755 | 0o600:o}")
        await self._do(Operation("push", _NAME, args, timeout=None), file.path)
        self._meter.add(0, 1)

    async def _do(self, operation: Operation, what: str) -> None:
        outcome = await self._transfers.remote.run(operation)
        if outcome.ok:
            return
        if outcome.ending in (Ending.UNKNOWN, Ending.NOT_STARTED) or outcome.exit_code == _BEHIND:
            raise _Cut(outcome.detail or _said(outcome))
        if outcome.exit_code == _CHANGED:
            raise _changed(what)
        raise TransferFailed(
            f"the files could not be put into {self._root}",
            why=_said(outcome),
            fix="Make room or choose another place, then try again; what is in place is whole.",
        )


# `sha256sum -c` fails when it is given nothing to compare.
_NOTHING = f"{hashlib.sha256().hexdigest()}  /dev/null\n".encode()


class _Cut(Exception):
    """The connection was lost; another round may go on."""


def _changed(path: str) -> SourceChanged:
    return SourceChanged(f"{path} changed while it was sent", fix="Try again once nothing writes to it any more.")


def _said(outcome: Outcome) -> str:
    return outcome.stderr.decode(errors="replace").strip() or outcome.detail


def _same(there: FileState | None, here: FileState) -> bool:
    """Whether size and time are the same; a file system there may keep whole seconds or microseconds only."""
    return there is not None and there.size == here.size and abs(there.modified - here.modified) < 10**9


def _now(source: Path, file: TreeFile) -> TreeFile:
    status = (source / file.path).lstat()
    return TreeFile(file.path, FileState(status.st_size, status.st_mtime_ns), status.st_mode & 0o777)


def _tar_of(source: Path, files: list[TreeFile]) -> tuple[bytes, bytes]:
    """The files as a tar file, and their SHA-256 as `sha256sum -c` wants them."""
    made, sums = io.BytesIO(), bytearray()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for file in files:
            content = (source / file.path).read_bytes()
            info = tarfile.TarInfo(file.path)
            info.size, info.mode = len(content), file.mode & 0o755 | 0o600
            info.mtime = file.state.modified // 10**9
            tar.addfile(info, io.BytesIO(content))
            sums += sum_line(file.path, hashlib.sha256(content).hexdigest())
    return made.getvalue(), bytes(sums)


def sum_line(path: str, digest: str) -> bytes:
    """A line for `sha256sum -c`, which wants a backslash in front where a name has to be written with some."""
    name = path.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return os.fsencode(f"{'' if name == path else chr(92)}{digest}  {name}\n")


def _tar_of_links(links: list[tuple[str, str]]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path, target in links:
            info = tarfile.TarInfo(path)
            info.type, info.linkname = tarfile.SYMTYPE, target
            tar.addfile(info)
    return made.getvalue()


def _sum(place: Path) -> str:
    total = hashlib.sha256()
    with place.open("rb") as file:
        while piece := file.read(1 << 20):
            total.update(piece)
    return total.hexdigest()


def _piece(place: Path, offset: int) -> bytes:
    with place.open("rb") as file:
        file.seek(offset)
        return file.read(_PIECE)
