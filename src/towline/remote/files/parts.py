"""What has arrived of files that are not whole yet: kept under names that tell of what they are a part.

A part is called after the file's path on the other side, its size and its time there. So a later call finds it, goes
on where an earlier one was cut, and knows a part of an older content for what it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import re
import shutil
import stat
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

from towline.models.errors import TransferFailed
from towline.models.tree import FileState
from towline.remote.locks import try_lock

_LOOKS, _LOOK_EVERY = 20, 0.1
"""How often a directory that another transfer has is looked at, and seconds between two looks."""
_NAME = re.compile(r"\.towline-([0-9a-f]{16})\.([0-9]+)\.(-?[0-9]+)\.part")


@dataclass(frozen=True)
class Parts:
    """A directory that holds parts.

    Attributes:
        folder: the directory, on the file system that the files are to be on.
    """

    folder: Path

    def of(self, source: str, state: FileState) -> Path:
        """Where the part of that content of a file is, or would be."""
        return self.folder / f".towline-{_key(source)}.{state.size}.{state.modified}.part"

    def find(self, source: str) -> tuple[FileState, int] | None:
        """What is here of a file: of which of its contents, and how many bytes."""
        for path in self.folder.glob(f".towline-{_key(source)}.*.part"):
            with contextlib.suppress(OSError):
                if (found := _NAME.fullmatch(path.name)) and stat.S_ISREG((status := path.lstat()).st_mode):
                    return FileState(int(found[2]), int(found[3])), status.st_size
        return None

    def forget(self, source: str, *, but: FileState | None = None) -> None:
        """Remove what is here of a file; what is of one of its contents may stay."""
        for path in self.folder.glob(f".towline-{_key(source)}.*.part"):
            if but is None or path != self.of(source, but):
                path.unlink(missing_ok=True)

    def open(self, source: str, state: FileState, offset: int = 0) -> int:
        """A descriptor to write the content from that offset on."""
        descriptor = os.open(self.of(source, state), os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        os.ftruncate(descriptor, offset)
        os.lseek(descriptor, offset, os.SEEK_SET)
        return descriptor


def put(part: Path, place: Path, state: FileState, *, mode: int) -> None:
    """Rename a whole file to its place, with its time and mode."""
    os.chmod(part, mode & 0o755 | 0o600)
    os.utime(part, ns=(state.modified, state.modified))
    os.replace(part, place)


def is_here(place: Path, state: FileState) -> bool:
    """Whether a file of that size and time is in place; a file system here may keep whole seconds only."""
    try:
        found = place.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    second = state.modified // 10**9 * 10**9
    return stat.S_ISREG(found.st_mode) and found.st_size == state.size and found.st_mtime_ns in (state.modified, second)


def check_room(folder: Path, needed: int) -> None:
    """See that so many bytes fit into a directory.

    Raises:
        TransferFailed: they do not.
    """
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise TransferFailed(
            f"{folder} has no room for what is to be brought there",
            why=f"{needed} bytes are missing, and {free} are free.",
            fix="Free the space or choose another directory, then try again.",
        )


@contextlib.asynccontextmanager
async def claimed(folder: Path) -> AsyncGenerator[int, None]:
    """Have a directory for oneself, so that nobody else cleans up or writes the same parts; gives the lock.

    Raises:
        TransferFailed: another process has it, and goes on to have it.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for _ in range(_LOOKS):
            if _may_have(descriptor):
                break
            await asyncio.sleep(_LOOK_EVERY)  # what a killed transfer started takes a moment to end
        else:
            raise TransferFailed(
                f"another transfer is writing into {folder}",
                fix="Wait for its end, or choose another directory.",
            )
        yield descriptor
    finally:
        os.close(descriptor)


def _may_have(descriptor: int) -> bool:
    try:
        return try_lock(descriptor)
    except OSError:  # a network file system without locks on directories
        return True


def _key(source: str) -> str:
    return hashlib.sha256(source.encode("utf-8", "surrogateescape")).hexdigest()[:16]
