"""What goes over the wire besides the archive: the bootstrap line, the header and the marks around the answers.

The login shell, whatever it is (bash, zsh, csh, tcsh, fish), gets one constant line. `/bin/sh` then reads from
stdin a header line (with `read`, which takes no byte more), and as many bytes of tar as the header says, and runs
the archive's `runner`. The answers come back between marks that carry this call's nonce:

    stdout  …chatter… towline-<nonce>-start⏎ data towline-<nonce>-end:<exit code>⏎
    stdout  …chatter… towline-<nonce>-refused⏎        the archive could not be unpacked; nothing ran
    stderr  …chatter… towline-<nonce>-start⏎ data towline-<nonce>-end:<exit code>⏎
    stderr  towline-<nonce>-unattached⏎               said by our ssh's ProxyCommand: there was no connection to share

A channel that serves many operations begins in the same way; the runner of its first archive goes on to read one
header and archive after another from stdin.

The nonce has 128 random bits, and nothing that the script can see holds it, so no data looks like a mark.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from towline.models.errors import UsageError

_LINE = (
    "exec /bin/sh -c '"
    "umask 077; "
    "read -r towline_nonce towline_size towline_mode towline_where || exit 97; "
    'towline_gone() { rm -rf "$towline_dir"; }; '
    # GNU tar reads a pipe to its end, and stdin has none while the client is there: hence head.
    'towline_dir=$(mktemp -d "${towline_where:-${TMPDIR:-/tmp}}/.towline-XXXXXX") && '
    'trap towline_gone EXIT && trap "exit 97" HUP INT PIPE TERM && '
    'head -c "$towline_size" | tar xmf - -C "$towline_dir" && '
    '. "$towline_dir/runner"; '
    'echo "towline-$towline_nonce-refused"; exit 97'
    "'"
)
_SHELL = "/bin/sh"
_CLIP = 4096
"""Bytes kept of each end of what is outside the marks."""
_WORD = re.compile(rb"start|end:[0-9]{1,3}|refused|unattached")
_LONGEST = len("unattached")


def bootstrap_line(shell: str = _SHELL) -> str:
    """The line for the login shell; free of newline, `!`, backslash and inner single quotes.

    Args:
        shell: the POSIX shell on the other side; anything but /bin/sh is for tests.
    """
    return _LINE.replace(_SHELL, shell)


def runner(shell: str = _SHELL) -> bytes:
    """The sh program that runs one operation, the last member of its archive."""
    return _program("runner.sh", shell) + b"towline_operation\n"


def server(shell: str = _SHELL) -> bytes:
    """The sh program that runs the operation and goes on to those that follow on stdin."""
    return _program("runner.sh", shell) + _program("server.sh", shell)


def header(nonce: str, size: int, mode: str, where: str = "") -> bytes:
    """The line in front of the archive of `size` bytes.

    Args:
        nonce: this call's.
        size: bytes of the archive.
        mode: what becomes of the operation when the client goes, `stop` or `survive`.
        where: the directory to unpack in; empty for the other side's place for temporary files.

    Raises:
        UsageError: the directory's name does not fit on the line.
    """
    if where.strip() != where or "\n" in where or "\0" in where or (where not in ("", TEXT) and where[0] != "/"):
        raise UsageError(
            f"{where!r} cannot be unpacked in", why="It must be absolute, without a newline or outer spaces."
        )
    return f"{nonce} {size} {mode} {where}".rstrip().encode("utf-8", "surrogateescape") + b"\n"


TEXT = "-"
"""In place of a directory: what follows is no archive but a script."""
STOP = b"stop\n"
"""In place of a header: ends the operation that a serving channel is busy with."""


@cache
def _program(name: str, shell: str) -> bytes:
    return Path(__file__).with_name(name).read_bytes().replace(_SHELL.encode(), shell.encode())


def mark(nonce: str, word: str) -> bytes:
    """A mark without its newline."""
    return f"towline-{nonce}-{word}".encode()


@dataclass
class Clip:
    """The first and the last few KiB of a stream of any length."""

    head: bytes = b""
    tail: bytes = b""

    def add(self, data: bytes) -> None:
        """Take more of the stream."""
        room = _CLIP - len(self.head)
        self.head += data[:room] if room else b""
        self.tail = (self.tail + data[room:])[-_CLIP:]

    def text(self) -> str:
        """What was kept, undecodable bytes replaced."""
        return (self.head + self.tail).decode(errors="replace")


@dataclass
class FrameReader:
    """Takes one stream in chunks of any size and hands out the data between its marks, in constant memory.

    Attributes:
        nonce: this call's.
        started: the start mark was seen.
        ended: the end mark was seen.
        refused: the other side said that it could not unpack the archive.
        unattached: ssh said that it had no connection to share.
        code: the exit code in the end mark.
        outside: what came before and after the marks.
    """

    nonce: str
    started: bool = False
    ended: bool = False
    refused: bool = False
    unattached: bool = False
    code: int | None = None
    outside: Clip = field(default_factory=Clip)
    _held: bytes = b""

    def feed(self, chunk: bytes) -> bytes:
        """Take the next chunk; returns the data in it, held back only where a mark may have begun."""
        held, prefix, data = self._held + chunk, mark(self.nonce, ""), b""
        while (at := held.find(prefix)) >= 0:
            word, newline, rest = held[at + len(prefix) :].partition(b"\n")
            data += self._sort(held[:at])
            held = held[at:]
            if newline and _WORD.fullmatch(word):
                self._note(word)
                held = rest
            elif newline or len(word) > _LONGEST:  # no mark after all
                data += self._sort(prefix)
                held = held[len(prefix) :]
            else:
                break
        else:
            keep = _overlap(held, prefix)
            data += self._sort(held[: len(held) - keep])
            held = held[len(held) - keep :]
        self._held = held
        return data

    def finish(self) -> bytes:
        """The stream is over; returns data that was held back for a mark that did not come."""
        held, self._held = self._held, b""
        return self._sort(held)

    def _sort(self, data: bytes) -> bytes:
        if self.started and not self.ended:
            return data
        self.outside.add(data)
        return b""

    def _note(self, word: bytes) -> None:
        name, _, value = word.partition(b":")
        if name == b"start":
            self.started = True
        elif name == b"end":
            self.ended, self.code = True, int(value)
        elif name == b"refused":
            self.refused = True
        elif name == b"unattached":
            self.unattached = True


def _overlap(data: bytes, prefix: bytes) -> int:
    """How many of the last bytes of the data may be the beginning of the prefix."""
    lengths = range(min(len(prefix) - 1, len(data)), 0, -1)
    return next((length for length in lengths if data.endswith(prefix[:length])), 0)
