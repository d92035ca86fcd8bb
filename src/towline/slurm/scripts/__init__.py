"""The scripts that run on a login host: POSIX sh, static, with their values in arguments and files."""

from __future__ import annotations

import functools
from importlib import resources
from typing import Literal

ScriptName = Literal["facts", "stage", "submit", "poll", "cancel"]

_INCLUDE = "# shellcheck source=src/towline/slurm/scripts/"


@functools.cache
def script(name: ScriptName) -> str:
    """The script as one self-contained text, what it shares with the others written into it."""
    raise NotImplementedError
