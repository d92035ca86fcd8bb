"""Channels that stay open and serve one operation after another, and the pool that holds them between calls.

A kept channel saves a call the opening of a channel, the start of a login shell and one round trip. It belongs to
the event loop that opened it, and ends with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from towline.remote.base import Operation
from towline.remote.wire.archive import Channel, Payload
from towline.remote.wire.channel import AFTERMATH, Call, Program, Talk
from towline.remote.wire.framing import STOP

_SPARE = 0.2
"""Of the time that one idle channel stays, the others get this part."""


class Kept:
    """A channel whose other side is the server.

    Args:
        program: the running `ssh` or shell, to which nothing was sent yet.
        generation: the number of the connection that it belongs to.
        shell: the POSIX shell on the other side.
        nonce: what the program says that it has no connection with, when the first call is not known yet.
    """

    def __init__(self, program: Program, generation: int = 0, *, shell: str = "/bin/sh", nonce: str = "") -> None:
        self.generation = generation
        self._nonce = nonce
        self._program = program
        self._shell = shell
        self._fresh = True
        self._loop = asyncio.get_running_loop()
        self._leave = asyncio.Event()
        self._expiry: asyncio.TimerHandle | None = None
        # Cancelled when the loop ends (`asyncio.run` does that), so that no process is left behind.
        self._task = asyncio.create_task(self._own())

    @classmethod
    async def open(cls, argv: Sequence[str], generation: int = 0, *, shell: str = "/bin/sh", nonce: str = "") -> Kept:
        """Start the program; the first call's bytes make it a server."""
        return cls(await Program.start(argv), generation, shell=shell, nonce=nonce)

    @property
    def usable(self) -> bool:
        """Whether it can take a call in the running loop."""
        here = asyncio.get_running_loop() is self._loop
        return here and not self._task.done() and not self._leave.is_set() and self._program.usable

    async def converse(self, operation: Operation, nonce: str, *, patience: float) -> Talk:
        """Run one operation; the next may follow when the channel is still `usable`.

        When the caller is cancelled or the time is over the other side is told to stop the operation; without an
        answer within `patience` seconds the channel is ended, which stops it as well. One that survives is left
        alone, and the channel ended.
        """
        first, self._fresh = self._fresh, False
        nonce = self._nonce if first and self._nonce else nonce
        kind = Channel.FIRST if first else Channel.SERVING
        chunks = Payload.of(operation, nonce, shell=self._shell, to=kind).chunks()
        call = Call(nonce, None)
        timed_out = False
        status: int | None = None
        try:
            try:
                await asyncio.wait_for(self._program.talk(call, chunks), operation.timeout)
            except asyncio.TimeoutError:
                timed_out = True
        finally:
            try:
                if not call.whole:
                    status = await self._break_off(call, operation, patience)
            finally:
                if not call.whole:
                    self._leave.set()
        return call.result(timed_out=timed_out, status=status, first=first)

    async def _break_off(self, call: Call, operation: Operation, patience: float) -> int | None:
        """Have the answer's end after all, or end the channel; gives the program's exit status."""
        if call.sent and not call.over.is_set() and not operation.survives:
            self._program.say(STOP)
            await _within(call.over, patience)
        if call.whole:
            return None
        self._leave.set()
        return await self._program.shut(AFTERMATH if call.over.is_set() and not call.failure else 0.0)

    def rest(self, seconds: float) -> None:
        """Leave after so many seconds without a call."""
        self._expiry = self._loop.call_later(seconds, self._leave.set)

    def wake(self) -> None:
        """Do not leave now."""
        if self._expiry:
            self._expiry.cancel()

    async def close(self) -> None:
        """End it; returns when the program is gone."""
        self.wake()
        self._leave.set()
        await self.gone()

    async def gone(self) -> None:
        """Wait until the program is gone; at once where another loop has started it."""
        if asyncio.get_running_loop() is self._loop:
            await asyncio.wait([self._task])

    async def _own(self) -> None:
        waits = [asyncio.ensure_future(event.wait()) for event in (self._leave, self._program.exited)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            self.wake()
            await self._program.shut(0.0)


class Pool:
    """The channels of one host: those in use are counted, those that are kept and idle are held.

    Args:
        stay: seconds that one channel stays open without a call; the others stay shorter.
    """

    def __init__(self, stay: float) -> None:
        self._stay = stay
        self._used = 0
        self._idle: list[Kept] = []

    def __len__(self) -> int:
        return len(self._usable())

    @asynccontextmanager
    async def place(self, limit: int) -> AsyncGenerator[None, None]:
        """Room for one more channel: of so many, one that is idle is ended for it."""
        self._used += 1
        try:
            await self.trim(limit - self._used)
            yield
        finally:
            self._used -= 1

    @asynccontextmanager
    async def channel(self, argv: Sequence[str], generation: int, limit: int) -> AsyncGenerator[Kept, None]:
        """A channel of that connection for one call: the idle one used last, or a new one."""
        kept = self._take(generation)
        async with self.place(limit):
            kept = kept or await Kept.open(argv, generation)
            try:
                yield kept
            finally:
                await self._put(kept, room=limit - self._used + 1)

    async def add(self, kept: Kept) -> None:
        """Hold a channel that nobody has used yet."""
        await self._put(kept, room=len(self) + 1)

    def _take(self, generation: int) -> Kept | None:
        for kept in reversed(self._usable()):
            if kept.generation == generation:
                self._idle.remove(kept)
                kept.wake()
                return kept
        return None

    async def _put(self, kept: Kept, *, room: int) -> None:
        if not kept.usable or len(self) >= room:
            await kept.close()
            return
        kept.rest(self._stay if not self._idle else self._stay * _SPARE)
        self._idle.append(kept)

    async def trim(self, room: int) -> None:
        """End those idle longest until there are no more than so many."""
        idle = self._usable()
        while len(idle) > max(0, room):
            kept = idle.pop(0)
            self._idle.remove(kept)
            await kept.close()

    async def close(self) -> None:
        """End all that are idle."""
        await self.trim(0)

    def _usable(self) -> list[Kept]:
        self._idle = [kept for kept in self._idle if kept.usable]
        return list(self._idle)


async def _within(event: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except asyncio.TimeoutError:
        return
