"""Putting a job's log on this process's stdout and stderr: unchanged bytes, made safe where a terminal reads them."""

from __future__ import annotations

import codecs
import sys
from typing import TextIO

from towline.cli.terminal import RESET, LogFilter, clean
from towline.engine.events import LogChunk


class LogWriter:
    """Writes log chunks: `out` to stdout, `err` to stderr. A line tells where another role's text begins.

    Args:
        role: write this role's log only.
    """

    def __init__(self, role: str = "") -> None:
        self._filters = {name: LogFilter() for name, stream in _streams().items() if stream.isatty()}
        self._open_line = False
        self._only = role
        self._role = ""
        self._whole_line = True

    def write(self, chunk: LogChunk) -> None:
        """Write one chunk at once."""
        if self._only and chunk.role != self._only:
            return
        if chunk.role and chunk.role != self._role and not self._only:
            self._put("out", f"{'' if self._whole_line else chr(10)}==> {chunk.role} <==\n".encode())
        self._role, self._whole_line = chunk.role, chunk.data.endswith(b"\n")
        found = self._filters.get(chunk.stream)
        self._put(chunk.stream, found.feed(chunk.data) if found else chunk.data)

    def finish(self) -> None:
        """Write what filters kept back, and end the line on a terminal, so that other text can follow."""
        for name, found in self._filters.items():
            self._put(name, found.close())
            self._filters[name] = LogFilter()
        if self._open_line:
            sys.stderr.write("\n")
            self._open_line = False

    def _put(self, name: str, data: bytes) -> None:
        if not data:
            return
        stream = _streams()[name]
        stream.flush()
        stream.buffer.write(data)
        stream.buffer.flush()
        if stream.isatty() and data != RESET.encode():
            self._open_line = not data.endswith(b"\n")


class HeadedLog(LogWriter):
    """One of several logs on the same streams; a line tells where the text changes from one to another.

    Args:
        title: names the log.
        turns: shared by all of them; its last entry is the title whose text came last.
        role: write this role's log only.
    """

    def __init__(self, title: str, turns: list[str], role: str = "") -> None:
        super().__init__(role)
        self._title = title
        self._turns = turns

    def write(self, chunk: LogChunk) -> None:
        """Write one chunk, under its heading if another log's text came last."""
        if self._turns[-1:] != [self._title]:
            self._put("out", f"{chr(10) if self._turns else ''}==> {clean(self._title)} <==\n".encode())
            self._turns[:] = [self._title]
            self._role = ""
        super().write(chunk)


class LogText:
    """Log chunks as text for JSON: characters cut between chunks are put together again."""

    def __init__(self) -> None:
        self._decoders: dict[tuple[str, str], codecs.IncrementalDecoder] = {}

    def feed(self, chunk: LogChunk) -> str:
        """The chunk's text; a character that is not whole yet comes with the next one."""
        key = (chunk.stream, chunk.role)
        if key not in self._decoders:
            self._decoders[key] = codecs.getincrementaldecoder("utf-8")("replace")
        return self._decoders[key].decode(chunk.data)

    def rest(self) -> list[tuple[str, str, str]]:
        """What is left at the end: stream, role, and the replacement for a character that never became whole."""
        return [(*key, text) for key, decoder in self._decoders.items() if (text := decoder.decode(b"", True))]


def _streams() -> dict[str, TextIO]:
    return {"out": sys.stdout, "err": sys.stderr}
