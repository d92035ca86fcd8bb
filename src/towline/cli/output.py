"""Text for people: tables, sizes, durations, the one line that updates, and colours where they are wanted."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Sequence
from typing import TextIO

from towline.cli.terminal import RESET, clean
from towline.engine.redaction import redacted
from towline.models.units import duration as duration
from towline.models.units import size as size

RED, GREEN, YELLOW, DIM, BOLD = "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[2m", "\x1b[1m"
_ERASE_LINE = "\r\x1b[2K"


def colours_on(stream: TextIO) -> bool:
    """Whether Towline's own text on this stream may be coloured (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, colour: str, stream: TextIO) -> str:
    """The text in a colour where the stream takes colours."""
    return f"{colour}{text}{RESET}" if colour and colours_on(stream) else text


def width_of(stream: TextIO) -> int | None:
    """Columns of the terminal behind the stream; None when there is none."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, width: int | None = None) -> str:
    """Columns set apart by two blanks, cells cleaned, lines cut at `width` columns."""
    cells = [list(header), *([clean(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = ["  ".join(cell.ljust(size) for cell, size in zip(row, widths, strict=True)).rstrip() for row in cells]
    return "\n".join(shorten(line, width) for line in lines) + "\n"


def shorten(line: str, width: int | None) -> str:
    """The line, cut with an ellipsis when it is longer than `width`."""
    return line if width is None or len(line) <= width else line[: max(width - 1, 0)] + "…"


def moment(seconds: float | None) -> str:
    """A point in time in this machine's zone; `-` when not known."""
    return "-" if seconds is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


class StatusLine:
    """News for a person on stderr: one line that updates on a terminal, a plain line for each change elsewhere.

    Args:
        quiet: say nothing (machine-readable output was asked for).
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._shown = ""
        self._last_change = ""

    def update(self, text: str, *, suffix: str = "") -> None:
        """Show what is going on now; `suffix` (a clock) changes without being a change."""
        if self._quiet:
            return
        if sys.stderr.isatty():
            line = shorten(f"towline: {clean(redacted(text))}{suffix}", width_of(sys.stderr))
            self._write(_ERASE_LINE + paint(line, DIM, sys.stderr))
            self._shown = line
        elif text != self._last_change:
            self._write(f"towline: {clean(redacted(text))}\n")
        self._last_change = text

    def clear(self) -> None:
        """Take the updating line away, so that other output can follow."""
        if self._shown:
            self._write(_ERASE_LINE)
            self._shown = ""

    def say(self, text: str, colour: str = "") -> None:
        """Print a line that stays."""
        if self._quiet:
            return
        self.clear()
        self._write(paint(f"towline: {clean(redacted(text))}", colour, sys.stderr) + "\n")

    @staticmethod
    def _write(text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()
