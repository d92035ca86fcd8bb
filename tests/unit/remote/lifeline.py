"""Waiting for the end of processes that nobody here is the parent of."""

from __future__ import annotations

import os
import select
from pathlib import Path


class LifeLine:
    """A FIFO that a script holds open for writing, with all that it starts: when it ends, so have they.

    `script` is what a script begins with; its first positional parameter is the FIFO.
    """

    script = 'exec 9>"$1"; echo up; '

    def __init__(self, folder: Path) -> None:
        self.path = folder / "lifeline"
        os.mkfifo(self.path)
        self._end = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)

    def ended(self, seconds: float = 20) -> bool:
        """Wait until nobody holds the other end; False when somebody still does after so many seconds."""
        poll = select.poll()
        poll.register(self._end, select.POLLIN)
        while poll.poll(seconds * 1000):
            if not os.read(self._end, 4096):
                return True
        return False

    def said(self, seconds: float = 20) -> bytes:
        """What somebody wrote into it."""
        poll = select.poll()
        poll.register(self._end, select.POLLIN)
        return os.read(self._end, 4096) if poll.poll(seconds * 1000) else b""

    def close(self) -> None:
        os.close(self._end)
