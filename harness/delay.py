"""A relay that delays: what a network far away does to a connection, on a kernel that cannot do it itself."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress

_CHUNK = 1 << 18
_WINDOW = 32 << 20
"""Bytes on the way in one direction; more than a real network holds at these rates, so that only time is added."""
_HOST = "127.0.0.1"


@contextmanager
def delayed(port: int, seconds: float) -> Generator[int]:
    """A port that leads to the local `port`, each byte `seconds` later, in both directions."""
    argv = (sys.executable, "-m", __name__, str(port), str(seconds))
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as relay:
        assert relay.stdin
        assert relay.stdout
        try:
            yield int(relay.stdout.readline())
        finally:
            relay.stdin.close()


class _Relay:
    def __init__(self, port: int, seconds: float) -> None:
        self._port = port
        self._seconds = seconds

    async def serve(self) -> None:
        """Say the port, and go on until stdin ends."""
        self._loop, over = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._connect, _HOST, 0, limit=_CHUNK)
        print(server.sockets[0].getsockname()[1], flush=True)
        self._loop.add_reader(0, over.set)
        await over.wait()
        server.close()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection(_HOST, self._port, limit=_CHUNK)
        with suppress(OSError, asyncio.CancelledError):
            await asyncio.gather(self._pipe(reader, there_writer), self._pipe(there_reader, writer))
        writer.close()
        there_writer.close()

    async def _pipe(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        line: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_WINDOW // _CHUNK * 8)
        sending = asyncio.create_task(self._send(line, target))
        try:
            while data := await source.read(_CHUNK):
                await line.put((self._loop.time() + self._seconds, data))
            await line.put((self._loop.time() + self._seconds, b""))
            await sending
        finally:
            sending.cancel()

    async def _send(self, line: asyncio.Queue[tuple[float, bytes]], target: asyncio.StreamWriter) -> None:
        while True:
            due, data = await line.get()
            if (wait := due - self._loop.time()) > 0:
                await asyncio.sleep(wait)
            if not data:
                target.write_eof()
                return
            target.write(data)
            await target.drain()


if __name__ == "__main__":
    asyncio.run(_Relay(int(sys.argv[1]), float(sys.argv[2])).serve())
