"""Locks that count for all processes of this machine, and end with the process that has them."""

from __future__ import annotations

import fcntl


def try_lock(descriptor: int) -> bool:
    """Lock an open file or directory, if nobody else has; closing it ends the lock.

    Raises:
        OSError: the file system has no such locks.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # the latter where a network file system imitates it (fcntl(2))
        return False
    return True
