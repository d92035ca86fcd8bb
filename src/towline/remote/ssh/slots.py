"""How many channels of one connection are used at a time: a limit that learns what the server allows."""

from __future__ import annotations

import asyncio
from collections import deque

_REGROW = 64
"""Good calls after which one more channel is tried."""


class Slots:
    """An asynchronous context manager that bounds how many are inside.

    Args:
        most: the upper bound; a server that refuses channels (MaxSessions) lowers it, success raises it again.
    """

    def __init__(self, most: int) -> None:
        self.limit = most
        self.busy = 0
        self._most = most
        self._good = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def __aenter__(self) -> None:
        while self.busy >= self.limit:
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled():
                    self._wake()
                raise
        self.busy += 1

    async def __aexit__(self, *exc: object) -> None:
        self.busy -= 1
        self._wake()

    def refused(self) -> None:
        """The server refused the caller's channel: as many as the others hold is what it allows."""
        self.limit = max(1, min(self.limit, self.busy - 1))
        self._good = 0

    def worked(self) -> None:
        """The caller's channel was opened."""
        self._good += 1
        if self._good >= _REGROW and self.limit < self._most:
            self.limit, self._good = self.limit + 1, 0
            self._wake()

    def _wake(self) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
