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


def replace(path: Path, text: str, mode: int, owner: tuple[int, int] = (0, 0)) -> bool:
    """Make a file hold `text`; True when it did not before.

    Another file takes its place, as what somebody may just be reading needs it: a script that a shell runs, a
    configuration that daemons read again when they are told to.
    """
    if holds(path, text) and path.stat().st_mode & 0o7777 == mode:
        os.chown(path, *owner)
        return False
    fresh = path.with_name(f"{path.name}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    os.chown(fresh, *owner)
    fresh.chmod(mode)
    fresh.replace(path)
    return True


def holds(path: Path, text: str) -> bool:
    """Whether a file is there and holds exactly `text`."""
    return path.exists() and path.read_text() == text
