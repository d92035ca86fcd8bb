"""A program that has this process's own stdin, stdout and stderr, as one that a person started."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence


async def attended(argv: Sequence[str]) -> int:
    """Run it to its end; gives its exit code, or 128 and the number of the signal that ended it.

    When the caller is cancelled the program is told to end.
    """
    process = await asyncio.create_subprocess_exec(*argv)
    try:
        code = await process.wait()
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGHUP)
            await process.wait()
    return code if code >= 0 else 128 - code
