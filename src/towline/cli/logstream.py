"""Putting a job's log on this process's stdout and stderr: unchanged bytes, made safe where a terminal reads them."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Iterable
from dataclasses import replace
from typing import TextIO

from towline.cli.loglines import LineFilter, Lines, thinned
from towline.cli.output import DIM, paint
from towline.cli.terminal import RESET, LogFilter, clean
from towline.engine.events import LogChoice, LogChunk


class LogWriter:
    """Writes log chunks: `out` to stdout, `err` to stderr.

    A log that comes alone passes as it is; of several (ranks, nodes, roles, tasks) whole lines come as they arrive,
    with `3: ` or `policy: ` before them.

    Args:
        choice: what was asked for; it needs no name before the lines.
        only: write those lines only.
    """

    def __init__(self, choice: LogChoice | None = None, only: LineFilter | None = None) -> None:
        self._filters = {name: LogFilter() for name, stream in _streams().items() if stream.isatty()}
        self._lines: dict[tuple[str, str], Lines] = {}
        self._attempts: dict[tuple[str, str], int] = {}
        self._open_line = False
        self._only = only
        self._choice = choice or LogChoice()

    def write(self, chunk: LogChunk) -> None:
        """Write one chunk at once."""
        source = self._source(chunk)
        if source or self._only:
            key = chunk.stream, source
            lines = self._lines.setdefault(key, Lines())
            if self._attempts.setdefault(key, chunk.attempt) != chunk.attempt:  # it goes on in another file
                self._attempts[key] = chunk.attempt
                self._put_lines(*key, lines.close())
            self._put_lines(*key, lines.feed(chunk.data))
            return
        found = self._filters.get(chunk.stream)
        self._put(chunk.stream, thinned(found.feed(chunk.data)) if found else chunk.data)

    def _source(self, chunk: LogChunk) -> str:
        chosen = self._choice
        role = "" if chosen.role else chunk.role
        node = "" if chosen.node or chosen.rank is not None else chunk.node
        return replace(chunk, role=role, node=node, rank=None if chosen.rank is not None else chunk.rank).source

    def pause(self) -> None:
        """End the line and its colours on a terminal, so that other text can follow; what was kept back is kept on."""
        for name, found in self._filters.items():
            self._put(name, found.pause())
        self._end_line()

    def finish(self) -> None:
        """Write what filters kept back, and end the line on a terminal, so that other text can follow."""
        for (stream, source), lines in self._lines.items():
            self._put_lines(stream, source, lines.close())
        self._lines.clear()
        for name, found in self._filters.items():
            self._put(name, found.close())
            self._filters[name] = LogFilter()
        self._end_line()

    def _end_line(self) -> None:
        if self._open_line:
            sys.stderr.write("\n")
            self._open_line = False

    def _put_lines(self, stream: str, source: str, lines: Iterable[bytes]) -> None:
        label = f"{clean(source)}: " if source else ""
        key = f"{stream} {source}"
        wanted = [line for line in lines if not self._only or self._only.wants(key, line)]
        if stream in self._filters:
            wanted = [_for_terminal(line) for line in wanted]
        painted = paint(label, DIM, _streams()[stream]).encode()
        self._put(stream, b"".join(painted + line for line in wanted))

    def _put(self, name: str, data: bytes) -> None:
        if not data:
            return
        stream = _streams()[name]
        stream.flush()
        stream.buffer.write(data)
        stream.buffer.flush()
        if stream.isatty() and data != RESET.encode():
            self._open_line = not data.endswith(b"\n")


def _for_terminal(line: bytes) -> bytes:
    """One line, which leaves no colour behind."""
    own = LogFilter()
    text = own.feed(line.rstrip(b"\n"))
    return text + own.close() + b"\n"


class HeadedLog(LogWriter):
    """One of several logs on the same streams; a line tells where the text changes from one to another.

    Args:
        title: names the log.
        turns: shared by all of them; its last entry is the title whose text came last.
        choice, only: as `LogWriter` takes them.
    """

    def __init__(
        self,
        title: str,
        turns: list[str],
        choice: LogChoice | None = None,
        only: LineFilter | None = None,
    ) -> None:
        super().__init__(choice, only)
        self._title = title
        self._turns = turns

    def _put(self, name: str, data: bytes) -> None:
        if data and data != RESET.encode() and self._turns[-1:] != [self._title]:
            super()._put("out", f"{chr(10) if self._turns else ''}==> {clean(self._title)} <==\n".encode())
            self._turns[:] = [self._title]
        super()._put(name, data)


class LogText:
    """Log chunks as text for JSON: characters cut between chunks are put together again.

    Args:
        only: give those lines only, whole.
    """

    def __init__(self, only: LineFilter | None = None) -> None:
        self._only = only
        self._decoders: dict[LogChunk, codecs.IncrementalDecoder] = {}
        self._lines: dict[LogChunk, Lines] = {}

    def feed(self, chunk: LogChunk) -> str:
        """The chunk's text; a character, or with a filter a line, that is not whole yet comes with the next one."""
        key = replace(chunk, data=b"")
        if self._only:
            return self._matching(key, self._lines.setdefault(key, Lines()).feed(chunk.data))
        if key not in self._decoders:
            self._decoders[key] = codecs.getincrementaldecoder("utf-8")("replace")
        return self._decoders[key].decode(chunk.data)

    def rest(self) -> list[tuple[LogChunk, str]]:
        """What is left at the end: whose it is, and its text, or a replacement for a character that never was whole."""
        ends = [(key, decoder.decode(b"", True)) for key, decoder in self._decoders.items()]
        ends += [(key, self._matching(key, lines.close())) for key, lines in self._lines.items()]
        return [(key, text) for key, text in ends if text]

    def _matching(self, whose: LogChunk, lines: Iterable[bytes]) -> str:
        key = f"{whose.stream} {whose.source}"
        found = (line for line in lines if self._only and self._only.wants(key, line))
        return b"".join(found).decode(errors="replace")


def _streams() -> dict[str, TextIO]:
    return {"out": sys.stdout, "err": sys.stderr}
