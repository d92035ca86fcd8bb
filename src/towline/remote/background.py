"""Programs of this machine that go on alone, whatever becomes of the process that started them."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

# The shell is gone at once, so nobody has to wait for the program's end. Without `exec` it would get no stdin.
_APART = 'exec 3<&0; "$@" <&3 3<&- >/dev/null 2>&1 &'


def start(argv: Sequence[str], text: str, *, keep: int | None = None) -> None:
    """Start a program in a session and a working directory of its own.

    Args:
        argv: the program and its arguments, which other users of this machine can see.
        text: what it reads from stdin.
        keep: a descriptor that it inherits under the same number.

    Raises:
        OSError: it could not be started.
    """
    process = subprocess.Popen(
        ["/bin/sh", "-c", _APART, "sh", *argv],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
        pass_fds=() if keep is None else (keep,),
        text=True,
    )
    process.communicate(text)
