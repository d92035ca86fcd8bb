"""What the lab's users must be able to read, whoever brings the lab up."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator


@contextlib.contextmanager
def readable_by_all() -> Generator[None]:
    """Files and folders made meanwhile, by child processes too, can be read by everybody."""
    before = os.umask(0o022)
    try:
        yield
    finally:
        os.umask(before)
