"""One conversation with a program that runs the bootstrap line: feed it the payload, take the answer apart.

The program is `ssh` or a local shell. What it all means (which ending) is decided by the room's other modules from
the `Talk` that comes back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import cast

from towline.models.errors import TowlineError
from towline.remote.archive import Payload
from towline.remote.base import Ending, Operation, Outcome, Sink
from towline.remote.framing import FrameReader

_AFTERMATH = 5.0
"""Seconds that a program may take to end after it gave its whole answer."""
_DRAIN = 1.0
"""Seconds to read on after the program itself ended, while something it left behind holds its output open."""


@dataclass(frozen=True)
class Talk:
    """What happened in one conversation.

    Attributes:
        out, err: the two streams, taken apart.
        stdout, stderr: the data in them; stdout is empty when a sink took it.
        sent: every byte of the payload was handed to the program.
        timed_out: the time limit ended it.
        status: the program's exit status; None when it had to be killed, negative for a signal.
    """

    out: FrameReader
    err: FrameReader
    stdout: bytes
    stderr: bytes
    sent: bool
    timed_out: bool
    status: int | None

    @property
    def words(self) -> str:
        """What came on stderr outside the marks: the transport's own words, and the login shell's."""
        return self.err.outside.text().strip()

    @property
    def ending(self) -> Ending | None:
        """How it ended, as far as the marks tell; None when everything was sent and no mark came."""
        if self.timed_out:
            return Ending.TIMED_OUT if self.sent else Ending.NOT_STARTED
        if self.out.ended:
            return Ending.DONE
        if self.out.started:
            return Ending.UNKNOWN
        return Ending.NOT_STARTED if self.out.refused or not self.sent else None

    def outcome(self, host: str, ending: Ending, detail: str = "") -> Outcome:
        """The outcome with this talk's data."""
        code = self.out.code if ending is Ending.DONE else None
        return Outcome(ending, code, self.stdout, self.stderr, host, detail)


async def converse(
    argv: Sequence[str], payload: Payload, operation: Operation, nonce: str, *, sink: Sink | None, patience: float
) -> Talk:
    """Start the program, send the payload, collect the answer.

    When the caller is cancelled, the time is over or the sink raises, the program's stdin is closed (which ends the
    operation on the other side), and after `patience` seconds the program is killed.

    Args:
        argv: the program and its arguments.
        payload: what it gets on stdin, which then stays open as the life line.
        operation: for its time limit and whether it survives.
        nonce: this call's.
        sink: takes the data on stdout.
        patience: seconds.
    """
    loop = asyncio.get_running_loop()
    _, channel = await loop.subprocess_exec(
        lambda: _Channel(nonce, sink), *argv, start_new_session=True, close_fds=True
    )
    timed_out = False
    grace = 0.0 if operation.survives else patience
    try:
        try:
            await asyncio.wait_for(channel.talk(payload), operation.timeout)
            grace = grace if channel.failure else _AFTERMATH
        except asyncio.TimeoutError:
            timed_out = True
    finally:
        status = await channel.shut(grace)
    if channel.failure:
        raise channel.failure
    return channel.result(timed_out=timed_out, status=status)


class _Channel(asyncio.SubprocessProtocol):
    """The program's pipes. Data goes to the readers as it arrives, so nothing piles up but what the caller wants."""

    def __init__(self, nonce: str, sink: Sink | None) -> None:
        self.readers = {1: FrameReader(nonce), 2: FrameReader(nonce)}
        self.kept = {1: bytearray(), 2: bytearray()}
        self.sink = sink
        self.sent = False
        self.failure: Exception | None = None
        self._over = asyncio.Event()
        self._exited = asyncio.Event()
        self._gone = asyncio.Event()
        self._free = asyncio.Event()
        self._free.set()

    # --- what the event loop tells ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)
        self._stdin = cast("asyncio.WriteTransport", self._transport.get_pipe_transport(0))

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        self._take(fd, self.readers[fd].feed(cast("bytes", data)))
        out, err = self.readers[1], self.readers[2]
        if (out.ended and err.ended) or out.refused:
            self._finish()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd in self.readers:
            self._take(fd, self.readers[fd].finish())
        else:
            self._free.set()

    def process_exited(self) -> None:
        self._exited.set()
        asyncio.get_running_loop().call_later(_DRAIN, self._finish)

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone.set()
        self._finish()

    def pause_writing(self) -> None:
        if not self._over.is_set():
            self._free.clear()

    def resume_writing(self) -> None:
        self._free.set()

    # --- what the caller does ---

    async def talk(self, payload: Payload) -> None:
        """Send everything and wait until the answer is whole or nothing more can come."""
        try:
            await self._send(payload)
        except TowlineError as error:
            self.failure = error
            return
        await self._over.wait()

    async def shut(self, grace: float) -> int | None:
        """Close stdin, give the program `grace` seconds to end, then kill it; returns its exit status."""
        if not self._stdin.is_closing():  # known before `pipe_connection_lost` tells
            self._stdin.abort()  # what was not taken yet must not start anything now
        try:
            if grace:
                await asyncio.wait_for(self._exited.wait(), grace)
        except asyncio.TimeoutError:
            pass
        finally:
            status = self._transport.get_returncode()
            await self._end()
        return status

    async def _end(self) -> None:
        # Bounded: a process that not even SIGKILL ends (a dead network disk) must not take the caller along.
        if self._transport.get_returncode() is None:
            with suppress(ProcessLookupError):
                self._transport.kill()
            await _at_most(self._exited)
        self._transport.close()
        await _at_most(self._gone)

    def result(self, *, timed_out: bool, status: int | None) -> Talk:
        """Everything that came back."""
        out, err = self.readers[1], self.readers[2]
        return Talk(out, err, bytes(self.kept[1]), bytes(self.kept[2]), self.sent, timed_out, status)

    async def _send(self, payload: Payload) -> None:
        left = payload.size
        for chunk in payload.chunks():
            if self._over.is_set() or self._stdin.is_closing():
                return
            left -= len(chunk)
            self.sent = not left
            self._stdin.write(chunk)
            await asyncio.sleep(0)
            await self._free.wait()

    def _take(self, fd: int, data: bytes) -> None:
        if not data or self.failure:
            return
        if fd == 2 or self.sink is None:
            self.kept[fd] += data
            return
        try:
            self.sink(data)
        except Exception as error:  # the caller's own, handed back to it
            self.failure = error
            self._finish()

    def _finish(self) -> None:
        self._over.set()
        self._free.set()


async def _at_most(event: asyncio.Event) -> None:
    with suppress(asyncio.TimeoutError):
        await asyncio.wait_for(event.wait(), _AFTERMATH)
