"""Files that come home as a tar stream, written as parts while they arrive.

The stream was made from a tree that a job wrote and is not trusted: only regular files that were asked for are taken,
and none gets its final name here.
"""

from __future__ import annotations

import contextlib
import os
import tarfile
import threading
from collections.abc import Callable, Mapping
from typing import IO, Any, cast

from towline.models.tree import FileState
from towline.remote.files.parts import Parts


class Unpacker:
    """Takes a tar stream piece by piece and writes the files in it.

    Args:
        parts: where to.
        sources: name in the stream → the file's path on the other side, and its state as it was just before.
        written: called in another thread with the bytes of each piece written, and with whether a file became whole.

    Attributes:
        whole: names of the files that arrived whole.

    Use it as a context manager: leaving it waits until the last byte is written. An error while writing
    (disk full, no right) is raised by `feed` or at the end, a stream that breaks off at the end.
    """

    def __init__(
        self, parts: Parts, sources: Mapping[str, tuple[str, FileState]], written: Callable[[int, bool], None]
    ) -> None:
        self.whole: set[str] = set()
        self._parts = parts
        self._sources = sources
        self._written = written
        self._error: BaseException | None = None

    def __enter__(self) -> Unpacker:
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
        except BaseException as error:  # handed to the thread that waits for it
            self._error = error

    def _take(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        name = member.name.removeprefix("./")
        asked = self._sources.get(name)
        content = tar.extractfile(member) if member.isreg() else None
        if asked is None or content is None:
            return
        source, state = asked
        # A file that has become longer since is taken as it was; of a shorter one nothing is known.
        if member.size >= state.size and self._write(content, self._parts.open(source, state), state.size):
            self.whole.add(name)
            self._written(0, True)

    def _write(self, content: IO[bytes], descriptor: int, size: int) -> bool:
        with open(descriptor, "wb", buffering=0) as file:
            while size and (piece := content.read(min(size, 1 << 20))):
                size -= len(piece)
                self._written(len(piece), False)
                view = memoryview(piece)
                while view:
                    view = view[file.write(view) :]
        return not size
