"""The contract of the remote room: an operation goes in, an outcome comes back, and nothing is known of Slurm.

An operation is one POSIX sh script with files beside it. It runs once on one login host. Every call ends in one
of four ways; only `NOT_STARTED` says for certain that nothing happened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Protocol, runtime_checkable


class Ending(str, Enum):
    """How a call ended."""

    DONE = "done"
    """The script ran to its end; the exit code is its own."""
    TIMED_OUT = "timed-out"
    """The time limit passed; the script was told to stop and may have run."""
    NOT_STARTED = "not-started"
    """No byte of the script ran; another host or another try is safe."""
    UNKNOWN = "unknown"
    """The connection was lost after the start; the script may have run in part or whole."""


@dataclass(frozen=True)
class Operation:
    """One script to run on a login host.

    Attributes:
        name: a word for messages, for example `submit`.
        script: POSIX sh. Its working directory is a fresh private directory that holds the
            files; stdin is empty.
        args: positional parameters; any text without NUL.
        files: relative path → content, or a local file to send.
        timeout: seconds until the call ends as timed out; None waits for ever.
        survives: whether the script goes on when the caller is cancelled or the
            connection is lost (a submission does; everything else is stopped).
        where: an absolute directory of the other side in which the operation's own directory is
            made, so that its files can be renamed into place; empty for the usual place.
        repeats: whether running it twice does no harm, as with what only reads. When the connection is lost
            before it has answered it runs again, on another host if need be, instead of ending as unknown.
        sent: told the number of bytes of each piece that was handed to the connection.
    """

    name: str
    script: str
    args: tuple[str, ...] = ()
    files: Mapping[str, bytes | Path] = field(default_factory=dict[str, "bytes | Path"], repr=False)
    timeout: float | None = 60.0
    survives: bool = False
    where: str = ""
    repeats: bool = False
    sent: Callable[[int], None] | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Outcome:
    """What came back.

    Attributes:
        ending: how the call ended.
        exit_code: the script's exit code when done, else None.
        stdout: what the script wrote, without anything the login shell printed; empty when a
            sink took it.
        stderr: likewise.
        host: the login host that served the call; empty when none was reached.
        detail: the transport's own words when the call is not done.
    """

    ending: Ending
    exit_code: int | None = None
    stdout: bytes = b""
    stderr: bytes = b""
    host: str = ""
    detail: str = ""

    @property
    def ok(self) -> bool:
        """Whether the script ran to its end with exit code 0."""
        return self.ending is Ending.DONE and self.exit_code == 0


Sink = Callable[[bytes], None]
"""Takes stdout as it arrives; an exception from it stops the operation and is passed on."""


class Remote(Protocol):
    """A way to run operations on one cluster's login hosts.

    Attributes:
        calls: how many operations were sent so far; each is one round trip.
    """

    calls: int

    async def run(self, operation: Operation, *, sink: Sink | None = None) -> Outcome:
        """Run one operation and wait for its end.

        Raises:
            AccessRefused: key or host key were refused; trying again would not help.
            ConfigError: the local side is set up wrong (no ssh, key file readable by others).
        """
        ...

    async def close(self) -> None:
        """End what this object started; a connection that the user opened stays."""
        ...


@runtime_checkable
class Lends(Protocol):
    """A remote that lends a channel of its connection to a program of this machine (rsync)."""

    def lend(self, line: str) -> AbstractAsyncContextManager[tuple[str, ...]]:
        """The command that runs a line, and words added to it, on the host that worked last; for the time of the block.

        Raises:
            AccessRefused, ConfigError: as `Remote.run` does.
            Unreachable: there is no connection, and none could be made.
        """
        ...


@runtime_checkable
class HandsOver(Protocol):
    """A remote that lets a person, or a pipe, talk with a program of the other side."""

    async def hand_over(self, line: str, *, terminal: bool) -> int:
        """Run a line on the host that worked last, with this process's stdin, stdout and stderr; gives its exit code.

        Args:
            line: what the login shell gets.
            terminal: whether the program gets a terminal, of the size of ours; then keys go there as they are.

        Raises:
            AccessRefused, ConfigError: as `Remote.run` does.
            Unreachable: there is no connection, and none could be made.
        """
        ...
