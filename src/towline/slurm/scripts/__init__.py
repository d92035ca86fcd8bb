"""The scripts that run on a login host: POSIX sh, static, with their values in arguments and files."""

from __future__ import annotations

import functools
import re
from importlib import resources
from typing import Literal

ScriptName = Literal[
    "facts",
    "look",
    "queue",
    "stage",
    "again",
    "release",
    "pause",
    "adopt",
    "submit",
    "find",
    "poll",
    "cancel",
    "why",
    "inside",
    "gpus",
    "doctor",
    "deep",
    "deep-job",
    "registry-login",
    "candidates",
    "registry-check",
    "prepare",
    "image-find",
    "prepared",
    "prepared-of",
    "data-find",
    "data-job",
    "deliver-job",
    "image-job",
    "images",
    "images-remove",
]

_INCLUDE = re.compile(r"^(?:# shellcheck source=\S+\n)?\. \./(\w+\.sh)\n", re.MULTILINE)
_SHEBANG = "#!/bin/sh\n"


def filled(text: str) -> str:
    """A script of another room with the files of this one that it reads written into it."""
    return _INCLUDE.sub(lambda found: _body(found[1]), text)


@functools.cache
def script(name: ScriptName) -> str:
    """The script as one self-contained text: where it reads a file beside it, that file is written into it."""
    return _SHEBANG + filled(_body(f"{name}.sh"))


def part(file: str) -> str:
    """A file that scripts read, for a script that finds it beside itself."""
    return _SHEBANG + _body(file)


def _body(file: str) -> str:
    return (resources.files("towline.slurm.scripts") / file).read_text(encoding="utf-8").removeprefix(_SHEBANG)
