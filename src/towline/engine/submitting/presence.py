"""Who is at it right now: a process that submits a job holds a lock, and loses it with its life."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator
from pathlib import Path

from towline.models.errors import ConfigError
from towline.remote.locks import try_lock


@contextlib.contextmanager
def submitting(state: Path, job_id: str) -> Generator[None, None, None]:
    """Be known as the one who submits this job, to all processes that share the state directory.

    Raises:
        ConfigError: there is no room for that, or no right.
    """
    path = _path(state, job_id)
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise ConfigError(
            f"the state directory {state} cannot be written, so nothing was submitted",
            why=error.strerror or str(error),
            fix="Free the disk or choose another place with TOWLINE_STATE_DIR.",
        ) from error
    try:
        with contextlib.suppress(OSError):  # without locks there, age decides
            try_lock(handle)
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)


def is_submitting(state: Path, job_id: str) -> bool | None:
    """Whether a living process of this machine submits the job; None where the file system cannot tell."""
    path = _path(state, job_id)
    try:
        handle = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    except OSError:
        return None
    try:
        if not try_lock(handle):
            return True
        path.unlink(missing_ok=True)  # of a process that was killed
        return False
    except OSError:
        return None
    finally:
        os.close(handle)


def _path(state: Path, job_id: str) -> Path:
    return state / "submitting" / job_id
