"""Writing the lab's files."""

from __future__ import annotations

import os
from pathlib import Path


def write_in_place(path: Path, text: str, mode: int, owner: tuple[int, int] = (0, 0)) -> bool:
    """Make a file hold `text`; True when it did not before.

    The file keeps its inode, since hosts have such files bind-mounted and would go on seeing a replaced one.
    """
    changed = not path.exists() or path.read_text() != text
    if changed:
        fresh = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        with os.fdopen(fresh, "w") as file:
            file.write(text)
    path.chmod(mode)
    os.chown(path, *owner)
    return changed
