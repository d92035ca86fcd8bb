"""The network between a client and the login hosts, which carries so many bytes and then has an accident."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Awaitable, Callable

ADDRESSES = ("127.0.0.2", "127.0.0.3")
"""What the client takes for the first and the second login host."""
_CHUNK = 1 << 16
_RESET = struct.pack("ii", 1, 0)


def listeners() -> tuple[int, list[socket.socket]]:
    """A port, and a listening socket on it for each address."""
    while True:
        first = _listening(ADDRESSES[0], 0)
        port = int(first.getsockname()[1])
        try:
            return port, [first, *(_listening(address, port) for address in ADDRESSES[1:])]
        except OSError:
            first.close()


def _listening(address: str, port: int) -> socket.socket:
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((address, port))
        made.listen(16)
    except OSError:
        made.close()
        raise
    return made


class Wire:
    """Carries bytes until one of two numbers is reached; then `accident` is awaited, once, and it goes on.

    Args:
        hosts: where each address leads.
        up, down: the numbers; None for never.
        accident: what happens then.
        port: the hosts' port.

    Attributes:
        up, down: bytes carried so far.
        away: hosts that take no connection for now.
    """

    def __init__(
        self,
        hosts: tuple[str, ...],
        up: int | None,
        down: int | None,
        accident: Callable[[], Awaitable[None]],
        port: int = 22,
    ) -> None:
        self.up = self.down = 0
        self.away: set[str] = set()
        self._hosts = hosts
        self._port = port
        self._limits = {"up": up, "down": down}
        self._accident = accident
        self._servers: list[asyncio.Server] = []
        self._lines: set[asyncio.StreamWriter] = set()
        self._struck = False

    async def serve(self, sockets: list[socket.socket]) -> None:
        """Begin to carry."""
        for listener, host in zip(sockets, self._hosts, strict=True):
            self._servers.append(await asyncio.start_server(self._connected_to(host), sock=listener))

    def cut(self) -> None:
        """Reset every connection that there is."""
        for line in list(self._lines):
            with contextlib.suppress(OSError, AttributeError):
                line.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            line.transport.abort()

    def lose_first_host(self) -> None:
        """Reset every connection, and take no more to the first host."""
        self._servers[0].close()
        self.cut()

    def close(self) -> None:
        """End everything."""
        for server in self._servers:
            server.close()
        self.cut()

    def _connected_to(self, host: str) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if host in self.away:
                writer.transport.abort()
                return
            self._lines.add(writer)
            try:
                there_reader, there_writer = await asyncio.open_connection(host, self._port)
            except OSError:
                writer.transport.abort()
                return
            self._lines.add(there_writer)
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await asyncio.gather(self._carry("up", reader, there_writer), self._carry("down", there_reader, writer))
            for line in (writer, there_writer):
                self._lines.discard(line)
                line.close()

        return connected

    async def _carry(self, way: str, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while data := await source.read(_CHUNK):
            limit, carried = self._limits[way], getattr(self, way)
            if limit is not None and not self._struck and carried + len(data) >= limit:
                head, data = data[: limit - carried], data[limit - carried :]
                self._struck = True
                target.write(head)
                await target.drain()
                await self._accident()
            target.write(data)
            setattr(self, way, carried + len(data))
            await target.drain()
        with contextlib.suppress(OSError):
            target.write_eof()
