"""How many channels a server allows on one connection (sshd's MaxSessions), found by opening some."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

WANTED = 4
"""So many channels are tried: with one only, calls wait for each other; from here on more hardly matter."""
_SECONDS = 15.0
"""For one channel to open."""
_CLOSING = 0.3
"""Seconds in which a server has closed a channel of before."""

Command = Callable[[str, str], Sequence[str]]
"""The program that runs a line in a channel of its own; see `Master.command`."""


@dataclass(frozen=True)
class Sessions:
    """What came of opening channels.

    Attributes:
        opened: how many were open at a time.
        wanted: how many were tried.
    """

    opened: int
    wanted: int = WANTED


async def count_sessions(command: Command, wanted: int = WANTED) -> Sessions:
    """Open channels at the same time, and close them again; nothing runs in them but a shell that waits."""
    opened = await _open(command, wanted)
    if opened < 2:  # a channel that has just ended may still have counted
        await asyncio.sleep(_CLOSING)
        opened = await _open(command, wanted)
    return Sessions(opened, wanted)


async def _open(command: Command, wanted: int) -> int:
    started = await asyncio.gather(*(_start(command) for _ in range(wanted)))
    try:
        answers = await asyncio.gather(*(_is_open(process, nonce) for process, nonce in started))
    finally:
        await asyncio.gather(*(_end(process) for process, _ in started))
    return sum(answers)


async def _start(command: Command) -> tuple[asyncio.subprocess.Process, str]:
    nonce = secrets.token_hex(16)
    # The shell waits for stdin's end; a login shell of any kind understands the line.
    argv = command(nonce, f"exec /bin/sh -c 'echo open-{nonce}; read -r line'")
    pipe = asyncio.subprocess.PIPE
    quiet = asyncio.subprocess.DEVNULL
    return await asyncio.create_subprocess_exec(*argv, stdin=pipe, stdout=pipe, stderr=quiet), nonce


async def _is_open(process: asyncio.subprocess.Process, nonce: str) -> bool:
    with suppress(asyncio.TimeoutError):
        return await asyncio.wait_for(_hear(process, f"open-{nonce}".encode()), _SECONDS)
    return False


async def _hear(process: asyncio.subprocess.Process, word: bytes) -> bool:
    """Whether the word comes before the end; what a login prints before it does not matter."""
    heard = b""
    while process.stdout and (data := await process.stdout.read(4096)):
        heard += data
        if word in heard:
            return True
    return False


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.stdin:
        process.stdin.close()
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGTERM)  # `terminate` may take the status from the event loop
    await process.wait()
