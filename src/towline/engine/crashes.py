"""Reports of errors that nobody foresaw, kept in the state directory for the one who mends them."""

from __future__ import annotations

import os
import sys
import time
import traceback
from pathlib import Path

from towline.config.paths import state_dir
from towline.engine.redaction import redacted
from towline.models.errors import ConfigError


def write_crash_report(error: BaseException) -> Path | None:
    """Write the error's traceback into a file of mode 0600; None when there is no place for it.

    The command line is left out, since it may hold values of `--env`.
    """
    try:
        path = state_dir() / "crashes" / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.txt"
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(redacted(f"Python {sys.version}\n{''.join(traceback.format_exception(error))}"))
    except (ConfigError, OSError, UnicodeError):
        return None
    return path
