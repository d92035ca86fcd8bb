"""A relay before a server of the lab: it counts what the server sends, and lets it send only so fast."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress

_CHUNK = 1 << 16


class Relay:
    """Bytes that came from the server so far.

    Attributes:
        port: where the relay listens.
        sent: bytes to all clients; reset it as you like.
    """

    def __init__(self, address: str, behind: tuple[str, int], rate: float) -> None:
        self.port = 0
        self.sent = 0
        self._address, self._behind, self._rate = address, behind, rate
        self._due = 0.0
        self._held: set[asyncio.Task[None]] = set()

    async def serve(self, ready: threading.Event) -> None:
        """Go on until cancelled."""
        server = await asyncio.start_server(self._accept, self._address, 0, limit=_CHUNK)
        self.port = int(server.sockets[0].getsockname()[1])
        ready.set()
        async with server:
            await server.serve_forever()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._connect(reader, writer))
        self._held.add(task)  # the loop alone would let it be collected
        task.add_done_callback(self._held.discard)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection(*self._behind, limit=_CHUNK)
        with suppress(OSError, asyncio.CancelledError):
            await asyncio.gather(_pass(reader, there_writer), self._give(there_reader, writer))
        writer.close()
        there_writer.close()

    async def _give(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        while data := await source.read(_CHUNK):
            self._due = max(self._due, loop.time()) + len(data) / self._rate  # all connections share the rate
            await asyncio.sleep(self._due - loop.time())
            target.write(data)
            await target.drain()
            self.sent += len(data)
        target.write_eof()


async def _pass(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while data := await source.read(_CHUNK):
        target.write(data)
        await target.drain()
    target.write_eof()


@contextmanager
def counted(address: str, behind: tuple[str, int], rate: float) -> Generator[Relay]:
    """A relay to a server.

    Args:
        address: where the relay listens.
        behind: the server's address and port.
        rate: bytes a second for all connections together.
    """
    relay, ready = Relay(address, behind, rate), threading.Event()
    loop = asyncio.new_event_loop()
    task = loop.create_task(relay.serve(ready))

    def run() -> None:
        with suppress(asyncio.CancelledError):
            loop.run_until_complete(task)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    if not ready.wait(10):
        raise OSError(f"nothing can listen on {address}")
    try:
        yield relay
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join(10)
