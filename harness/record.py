"""Records a terminal session as an SVG picture: real commands, their real output.

usage: python -m harness.record OUT.svg TITLE COMMAND...

Each command is a line for sh and is shown behind a prompt. It runs on a terminal of its own, so that it prints what a
person would see; a line that updates itself is shown as it was last.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

COLUMNS, ROWS = 118, 40
_ERASED = re.compile(r"[^\n]*\r(?:\x1b\[2?K|(?=[^\n]))")
THEME = TerminalTheme(
    (22, 27, 34),
    (201, 209, 217),
    [
        (72, 79, 88),
        (255, 123, 114),
        (63, 185, 80),
        (210, 153, 34),
        (88, 166, 255),
        (188, 140, 255),
        (57, 197, 207),
        (177, 186, 196),
    ],
)


def main(arguments: list[str]) -> int:
    """Record; the result is the exit status of the first command that failed, else 0."""
    target, title, *commands = arguments
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    status = 0
    for command in commands:
        print(f"$ {command}", file=sys.stderr)
        output, code = run(command)
        status = status or code
        show(console, Text.assemble(("$ ", "bold green"), (command, "bold")))
        if output := settled(output):
            show(console, Text.from_ansi(output))
    Path(target).write_text(self_contained(console.export_svg(title=title, theme=THEME)))
    return status


def run(command: str) -> tuple[str, int]:
    """What a command prints on a terminal, and its exit status."""
    terminal, other_end = pty.openpty()
    fcntl.ioctl(other_end, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    with subprocess.Popen(["sh", "-c", command], stdin=subprocess.DEVNULL, stdout=other_end, stderr=other_end) as child:
        os.close(other_end)
        output = b""
        with contextlib.suppress(OSError):  # a terminal whose other end is closed answers with EIO
            while piece := os.read(terminal, 65536):
                output += piece
        os.close(terminal)
    return output.decode(errors="replace"), child.returncode


def show(console: Console, text: Text) -> None:
    """Print as a terminal does: lines are broken at its width, wherever that is."""
    for line in text.split("\n"):
        for piece in line.divide(range(COLUMNS, len(line), COLUMNS)):
            console.print(piece, no_wrap=True, overflow="ignore", crop=False)


def settled(output: str) -> str:
    """The output as it stands on the screen at the end: no line that was erased or written over, no path of here."""
    lines = output.replace("\r\n", "\n").replace(os.getcwd(), "~/towline")
    return _ERASED.sub("", lines).rstrip("\n")


def self_contained(svg: str) -> str:
    """The picture without fonts from elsewhere; the reader's own monospaced one is used."""
    return re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
