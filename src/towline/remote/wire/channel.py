"""One conversation with a program that runs the bootstrap line: feed it the payload, take the answer apart.

The program is `ssh` or a local shell. What it all means (which ending) is decided by the room's other modules from
the `Talk` that comes back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fcntl import fcntl
from typing import cast

from towline.models.errors import TowlineError
from towline.remote.base import Ending, Operation, Outcome, Sink
from towline.remote.wire.archive import Payload
from towline.remote.wire.framing import FrameReader

AFTERMATH = 5.0
"""Seconds that a program may take to end after it gave its whole answer."""
_F_SETPIPE_SZ, _PIPE = 1031, 1 << 18
"""Linux: a larger pipe, so that a fast stream wakes us less often."""
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
        status: the program's exit status; None when it had to be killed or goes on, negative for a signal.
        first: the program was started for this conversation.
    """

    out: FrameReader
    err: FrameReader
    stdout: bytes
    stderr: bytes
    sent: bool
    timed_out: bool
    status: int | None
    first: bool = True

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
    program = await Program.start(argv)
    call = Call(nonce, sink)
    timed_out = False
    grace = 0.0 if operation.survives else patience
    try:
        try:
            await asyncio.wait_for(program.talk(call, payload.chunks()), operation.timeout)
            grace = grace if call.failure else AFTERMATH
        except asyncio.TimeoutError:
            timed_out = True
    finally:
        status = await program.shut(grace)
    return call.result(timed_out=timed_out, status=status)


class Call:
    """One conversation as it stands. Data goes to the readers as it arrives, so only what is wanted piles up.

    Attributes:
        out, err: the two streams.
        sent: the last byte was handed to the program.
        failure: what the payload or the sink raised.
        over: set when the answer is whole, or nothing more can come.
    """

    def __init__(self, nonce: str, sink: Sink | None) -> None:
        self.out, self.err = FrameReader(nonce), FrameReader(nonce)
        self.sent = False
        self.failure: Exception | None = None
        self.over = asyncio.Event()
        self._stdout, self._stderr = bytearray(), bytearray()
        self._sink = sink

    @property
    def whole(self) -> bool:
        """Whether both streams gave their end mark."""
        return self.out.ended and self.err.ended

    def feed(self, fd: int, data: bytes) -> None:
        """Take what came on the program's stdout (1) or stderr (2)."""
        if fd == 1:
            self._take(self.out.feed(data))
        else:
            self._stderr += self.err.feed(data)
        if self.whole or self.out.refused:
            self.over.set()

    def finish(self, fd: int) -> None:
        """The stream is over."""
        if fd == 1:
            self._take(self.out.finish())
        else:
            self._stderr += self.err.finish()

    def result(self, *, timed_out: bool, status: int | None, first: bool = True) -> Talk:
        """Everything that came back; raises what the payload or the sink raised."""
        if self.failure:
            raise self.failure
        streams = bytes(self._stdout), bytes(self._stderr)
        return Talk(self.out, self.err, *streams, self.sent, timed_out, status, first)

    def _take(self, data: bytes) -> None:
        if not data or self.failure:
            return
        if self._sink is None:
            self._stdout += data
            return
        try:
            self._sink(data)
        except Exception as error:  # the caller's own, handed back to it
            self.failure = error
            self.over.set()


class Program(asyncio.SubprocessProtocol):
    """A running program and its pipes, for one call at a time.

    Attributes:
        exited: set when it ended.
    """

    def __init__(self) -> None:
        self.exited = asyncio.Event()
        self._call: Call | None = None
        self._early: list[tuple[int, bytes]] = []
        self._broken = False
        self._gone = asyncio.Event()
        self._free = asyncio.Event()
        self._free.set()

    @classmethod
    async def start(cls, argv: Sequence[str]) -> Program:
        """Start it in a session of its own, so that a Ctrl-C at the terminal reaches only us."""
        loop = asyncio.get_running_loop()
        _, program = await loop.subprocess_exec(cls, *argv, start_new_session=True, close_fds=True)
        return program

    @property
    def usable(self) -> bool:
        """Whether another call may be sent."""
        return not (self._broken or self.exited.is_set() or self._stdin.is_closing())

    async def talk(self, call: Call, chunks: Iterable[bytes]) -> None:
        """Send everything and wait until the answer is whole or nothing more can come."""
        self._call = call
        while self._early:  # a login shell's chatter
            call.feed(*self._early.pop(0))
        try:
            await self._send(call, chunks)
        except TowlineError as error:
            call.failure = error
            return
        if not self.usable:
            self._end_soon()
        await call.over.wait()

    def say(self, line: bytes) -> None:
        """Write a few bytes, if that still goes."""
        if self.usable:
            self._stdin.write(line)

    async def shut(self, grace: float) -> int | None:
        """Close stdin, give the program `grace` seconds to end, then kill it; returns its exit status."""
        if not self._stdin.is_closing():  # known before `pipe_connection_lost` tells
            self._stdin.abort()  # what was not taken yet must not start anything now
        self._free.set()
        try:
            if grace:
                await asyncio.wait_for(self.exited.wait(), grace)
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
            await _at_most(self.exited)
        self._transport.close()
        await _at_most(self._gone)

    async def _send(self, call: Call, chunks: Iterable[bytes]) -> None:
        last: bytes | None = None
        for chunk in chunks:
            if last is not None and not await self._write(call, last):
                return
            last = chunk
        if last is not None and not (call.over.is_set() or not self.usable):
            call.sent = True
            self._stdin.write(last)
            await asyncio.sleep(0)
            await self._free.wait()

    async def _write(self, call: Call, chunk: bytes) -> bool:
        if call.over.is_set() or not self.usable:
            return False
        self._stdin.write(chunk)
        await asyncio.sleep(0)
        await self._free.wait()
        return True

    def _end_soon(self) -> None:
        """Nothing can be sent; what is still to come may come."""
        if self.exited.is_set():
            asyncio.get_running_loop().call_later(_DRAIN, self._finish)

    def _finish(self) -> None:
        if self._call:
            self._call.over.set()
        self._free.set()

    # --- what the event loop tells ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The program runs."""
        self._transport = cast("asyncio.SubprocessTransport", transport)
        self._stdin = cast("asyncio.WriteTransport", self._transport.get_pipe_transport(0))
        for fd in (0, 1):
            pipe = cast("asyncio.BaseTransport", self._transport.get_pipe_transport(fd))
            with suppress(OSError, AttributeError, ValueError):  # it may be closed already
                fcntl(pipe.get_extra_info("pipe"), _F_SETPIPE_SZ, _PIPE)

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        """It wrote something."""
        if not self._call:
            self._early.append((fd, cast("bytes", data)))
            return
        self._call.feed(fd, cast("bytes", data))
        if self._call.over.is_set():
            self._free.set()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """It closed a pipe."""
        self._broken = True
        if fd == 0:
            self._free.set()
        elif self._call:
            self._call.finish(fd)

    def process_exited(self) -> None:
        """It ended; what it left behind may hold the pipes open."""
        self.exited.set()
        asyncio.get_running_loop().call_later(_DRAIN, self._finish)

    def connection_lost(self, exc: Exception | None) -> None:
        """It ended and all pipes are closed."""
        self._gone.set()
        self._finish()

    def pause_writing(self) -> None:
        """It does not read as fast as we write."""
        if not (self._call and self._call.over.is_set()):
            self._free.clear()

    def resume_writing(self) -> None:
        """It read what was written."""
        self._free.set()


async def _at_most(event: asyncio.Event) -> None:
    with suppress(asyncio.TimeoutError):
        await asyncio.wait_for(event.wait(), AFTERMATH)
