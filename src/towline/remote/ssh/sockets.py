"""Where control sockets live: a private directory with a short path, and a lock per connection in it."""

from __future__ import annotations

import asyncio
import os
import re
import stat
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from towline.models.errors import ConfigError
from towline.remote.locks import try_lock

_SOCKET_PATH_LIMIT = 104
"""Bytes with the closing NUL; Linux allows 108, the BSDs and macOS 104."""
_NAME = 16
_SSH_SUFFIX = 17
"""ssh binds `<path>.<16 random characters>` first and then renames."""
_SAFE = re.compile(r"/[A-Za-z0-9_./+@-]*")
_LOCK_INTERVAL = 0.05


def control_directory(wanted: Path | None = None) -> Path:
    """A directory of mode 0700 for control sockets, made if it is missing.

    Args:
        wanted: used when its path is short and plain enough, else one under /tmp is. None takes
            `$XDG_RUNTIME_DIR/towline`.

    Raises:
        ConfigError: the directory belongs to somebody else, or others may enter it.
    """
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if wanted is None and runtime and os.access(runtime, os.W_OK | os.X_OK):
        wanted = Path(runtime) / "towline"
    if wanted is None or not _fits(wanted):
        wanted = Path("/tmp") / f"towline-{os.getuid()}"  # noqa: S108  checked below
    _make_private(wanted)
    return wanted


def _fits(path: Path) -> bool:
    length = len(os.fsencode(path)) + 1 + _NAME + _SSH_SUFFIX + 1
    return length <= _SOCKET_PATH_LIMIT and bool(_SAFE.fullmatch(str(path)))


def _make_private(path: Path) -> None:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.lstat()
    except OSError as error:
        raise ConfigError(f"no place for ssh's control sockets: {path}", why=error.strerror or str(error)) from None
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise ConfigError(
            f"{path} cannot hold ssh's control sockets",
            why="It must be a directory of your own that nobody else may enter.",
            fix=f"Look at it, then: rm -rf {path}  (or chmod 700 {path} if it is yours)",
        )


@asynccontextmanager
async def locked(path: Path) -> AsyncGenerator[None, None]:
    """Hold a file lock that counts for all processes of this machine."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while not try_lock(descriptor):  # noqa: ASYNC110  no event crosses processes
            await asyncio.sleep(_LOCK_INTERVAL)
        yield
    finally:
        os.close(descriptor)
