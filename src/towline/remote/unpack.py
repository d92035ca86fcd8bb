"""Bytes that come home as a tar stream, written below one directory while they arrive.

The stream was made from a tree that a job wrote and is not trusted. Files arrive whole: each under a temporary
name beside its place, then renamed. Links are made last, so that no file is ever written through one.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tarfile
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

Admit = Callable[[tarfile.TarInfo], "str | None"]
"""Says the path below the destination for a member, or None when the member is refused."""


@dataclass
class Unpacked:
    """What was written so far.

    Attributes:
        files: number of regular files.
        bytes: their content's size together.
        refused: names of the members that were not written, with the reason.
    """

    files: int = 0
    bytes: int = 0
    refused: list[str] = field(default_factory=list[str])


class Unpacker:
    """Takes a tar stream piece by piece and writes it below `destination`, which it makes.

    Args:
        destination: the directory.
        admit: decides where a member goes.
        written: called in another thread with the bytes of each piece written, and with
            whether a file became whole.

    Use it as a context manager: leaving it waits until the last byte is on disk. An error while writing
    (disk full, no right) is raised by `feed` or at the end.
    """

    def __init__(self, destination: Path, admit: Admit, written: Callable[[int, bool], None]) -> None:
        self._destination = destination
        self._admit = admit
        self._written = written
        self._links: list[tuple[tarfile.TarInfo, str]] = []
        self._error: BaseException | None = None
        self.unpacked = Unpacked()

    def __enter__(self) -> Unpacker:
        self._destination.mkdir(parents=True, exist_ok=True)
        # That the destination itself may be a link is the caller's own wish; below it no link is followed.
        self._destination = self._destination.resolve()
        source, self._pipe = os.pipe()
        self._thread = threading.Thread(target=self._drain, args=(source,), name="towline-unpack", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        with contextlib.suppress(OSError):
            os.close(self._pipe)
        self._thread.join()
        if kind is None and self._error:
            raise self._error

    def feed(self, data: bytes) -> None:
        """Take the next piece of the stream."""
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._pipe, view) :]
        except BrokenPipeError:
            self._thread.join()
            raise self._error or OSError("the stream could not be unpacked") from None

    def _drain(self, source: int) -> None:
        try:
            with open(source, "rb", buffering=1 << 20) as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
                for member in tar:
                    self._take(tar, member)
                    cast("Any", tar).members.clear()  # tarfile would keep every header of a tree of any size
                while stream.read(1 << 20):
                    pass
            self._make_links()
        except BaseException as error:  # handed to the thread that waits for it
            self._error = error

    def _take(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        path = self._admit(member)
        if path is None:
            self.unpacked.refused.append(member.name.removeprefix("./"))
        elif member.isdir():
            self._place(path).mkdir(parents=True, exist_ok=True)
        elif member.isreg():
            content = tar.extractfile(member)
            if content:
                self._write(content, member, path)
        else:
            self._links.append((member, path))

    def _place(self, path: str) -> Path:
        """The place for a path, after a look that no part of the way is a link."""
        place = self._destination
        for part in Path(path).parts:
            if place.is_symlink():
                raise OSError(f"{place} is a link; the files below it cannot be put there")
            place = place / part
        return place

    def _write(self, content: IO[bytes], member: tarfile.TarInfo, path: str) -> None:
        place = self._place(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=place.parent, prefix=".towline-")
        try:
            with open(handle, "wb") as file:
                while piece := content.read(1 << 20):
                    file.write(piece)
                    self.unpacked.bytes += len(piece)
                    self._written(len(piece), False)
            os.chmod(temporary, (member.mode & 0o755) | 0o600)
            os.utime(temporary, (member.mtime, member.mtime))
            os.replace(temporary, place)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        self.unpacked.files += 1
        self._written(0, True)

    def _make_links(self) -> None:
        for member, path in self._links:
            place = self._place(path)
            place.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileNotFoundError):
                place.unlink()
            if member.issym():
                place.symlink_to(member.linkname)
            else:
                self._copy_of(member, place)

    def _copy_of(self, member: tarfile.TarInfo, place: Path) -> None:
        """A hard link within the tree comes home as a file of its own."""
        source = self._place(os.path.normpath(member.linkname))
        if source.is_symlink() or not source.is_file():
            self.unpacked.refused.append(member.name.removeprefix("./"))
            return
        shutil.copy2(source, place)
        self.unpacked.files += 1
        self._written(0, True)
