"""Log bytes as whole lines: for merging several logs into one, for filtering, and where progress bars would flood."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

from towline.cli.logtimes import Since

LONGEST = 1 << 16
"""Bytes of a line that is not whole yet that are kept; what is longer is cut into several."""
PROGRESS_SECONDS = 10.0
"""A line that is written over and over is shown at most so often before it is whole."""
_ESCAPES = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]")


class Lines:
    """Takes a stream in chunks of any size and gives its lines; of what carriage returns write over, the last stays."""

    def __init__(self) -> None:
        self._held = b""
        self._shown = time.monotonic()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The lines that are whole now, each with its end."""
        *whole, held = (self._held + data).split(b"\n")
        for line in whole:
            yield overwritten(line) + b"\n"
        if b"\r" in held.rstrip(b"\r"):
            yield from self._progress(held)
            held = held[held.rstrip(b"\r").rfind(b"\r") + 1 :]
        while len(held) > LONGEST:
            yield held[:LONGEST] + b"\n"
            held = held[LONGEST:]
        self._held = held

    def close(self) -> Iterator[bytes]:
        """The last line, if it has no end."""
        held, self._held = self._held, b""
        if line := overwritten(held):
            yield line + b"\n"

    def _progress(self, held: bytes) -> Iterator[bytes]:
        if time.monotonic() - self._shown >= PROGRESS_SECONDS:
            self._shown = time.monotonic()
            yield overwritten(held[: held.rfind(b"\r")]) + b"\n"


def overwritten(line: bytes) -> bytes:
    """What a terminal shows of a line at last, more or less: the text after the last carriage return that has any."""
    return line.rstrip(b"\r").rpartition(b"\r")[2]


def thinned(data: bytes) -> bytes:
    """The same bytes for a terminal without what they themselves write over."""
    if b"\r" not in data:
        return data
    lines = data.split(b"\n")
    return b"\n".join([*map(_thin, lines[:-1]), _thin(lines[-1])])


def _thin(line: bytes) -> bytes:
    body = line.rstrip(b"\r")
    before, mark, last = body.rpartition(b"\r")
    returns = line[len(body) : len(body) + 1]
    return (b"\r" if mark or before else b"") + last + returns


def bare(line: bytes) -> str:
    """A line's text without end and colours, for matching."""
    return _ESCAPES.sub(b"", line.rstrip(b"\r\n")).decode(errors="replace")


class LineFilter:
    """Which lines are wanted.

    Args:
        grep: those in which this is found.
        since: those that are new enough.
    """

    def __init__(self, grep: re.Pattern[str] | None = None, since: Since | None = None) -> None:
        self._grep = grep
        self._since = since

    def wants(self, source: str, line: bytes) -> bool:
        """Whether this line of that source is wanted; every line has to be asked for, in order."""
        text = bare(line)
        new = self._since is None or self._since.reached(source, text)
        return new and (self._grep is None or bool(self._grep.search(text)))
