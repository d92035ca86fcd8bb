"""What names of checkpoints tell: which files and directories are some, of which epoch and step."""

import os
import re
from typing import Optional

NOT_THEIRS = frozenset({"inputs", "ptm", "__pycache__"})
"""Directories whose files a job got and did not make."""
DIRECTORY = re.compile(r"(?:global_?)?(?:epoch|step|iter|checkpoint)[_-]?\d+", re.IGNORECASE)
_EPOCH = re.compile(r"(?:epoch|(?<![a-z])ep|best)[_=-]?(\d+)", re.IGNORECASE)
_STEP = re.compile(r"(?:step|iter|iteration|checkpoint-)[_=-]?(\d+)", re.IGNORECASE)
_PLAIN = re.compile(r"(\d+)(?:\.[^.]+)?")


def epoch_of(path: str) -> Optional[int]:
    """The epoch that a path names; None when it names none."""
    found = [int(number) for number in _EPOCH.findall(path)]
    if found:
        return max(found)
    plain = _PLAIN.fullmatch(os.path.basename(path))
    return int(plain.group(1)) if plain else None


def step_of(path: str) -> Optional[int]:
    """The step or iteration that a path names; None when it names none."""
    found = [int(number) for number in _STEP.findall(path)]
    return max(found) if found else None
