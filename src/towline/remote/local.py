"""The local twin: the same bootstrap, run by a shell on this machine.

For work on a login node itself, and for trying scripts without a network.
"""

from __future__ import annotations

import secrets

from towline.remote.attended import attended
from towline.remote.base import Ending, Operation, Outcome, Sink
from towline.remote.wire.archive import Payload
from towline.remote.wire.channel import Talk, converse
from towline.remote.wire.framing import bootstrap_line

_APART = 'exec 3<&0; "$0" -c "$1" <&3 3<&- & exec 3<&-; wait "$!"'
"""Runs the line in a process of its own, so that an operation that survives outlives what we would kill."""
_PATIENCE = 7.0
"""Seconds that an operation gets to stop: the runner gives it five before it kills."""


class Local:
    """Runs operations on this machine.

    Args:
        shell: a POSIX shell to use instead of /bin/sh.

    Attributes:
        calls: operations so far.
    """

    def __init__(self, *, shell: str = "/bin/sh") -> None:
        self.calls = 0
        self._shell = shell

    async def run(self, operation: Operation, *, sink: Sink | None = None) -> Outcome:
        """Run one operation; see `Remote.run`.

        Raises:
            TransferFailed: a local file could not be read.
        """
        nonce = secrets.token_hex(16)
        payload = Payload.of(operation, nonce, shell=self._shell)
        argv = (self._shell, "-c", _APART, self._shell, bootstrap_line(self._shell))
        self.calls += 1
        talk = await converse(argv, payload, operation, nonce, sink=sink, patience=_PATIENCE)
        return _judge(talk)

    async def hand_over(self, line: str, *, terminal: bool) -> int:
        """The user's own terminal or pipes; see `HandsOver`."""
        del terminal
        return await attended((self._shell, "-c", line))

    async def close(self) -> None:
        """Nothing to end."""


def _judge(talk: Talk) -> Outcome:
    ending = talk.ending or Ending.NOT_STARTED
    return talk.outcome("localhost", ending, "" if ending is Ending.DONE else _detail(talk, ending))


def _detail(talk: Talk, ending: Ending) -> str:
    if talk.timed_out:
        return "the time limit passed"
    if ending is Ending.UNKNOWN:
        return "the shell ended before its script did"
    return talk.words or "the shell ended without starting the script"
